"""What becomes of pod groups, step by step, as it became of them with kube-scheduler and the gates on."""

import itertools
import random
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from extender.rules.api_resources import EVENTS, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, PRIORITY_CLASSES, Object
from tests.kit.many_cases import each_case
from tests.kit.objects import GROUP_GATES, members, node, pod, pod_group, resource_of
from tests.kit.scene import Scene, a_scene, remote
from tests.kit.scene.stages import InMemory
from tests.parity.cases import component_cases

SETTLING = 60.0
"""Seconds of virtual time after each step. A group that is tried in vain is tried again within ten."""
SEEDS = 24
"""Equally good nodes and placements are chosen by chance, there as here. A case is played until chance has chosen as it
did there.
"""
MOMENT = 0.02
"""Seconds in which a scheduler has tried whatever waits. Objects of a step were created one after the other, so that it
may have come to some of a group before the others were there. A case that does not agree with all at once is played
with such moments in between, again by chance.
"""
VICTIMS = ("p50", "p10", "p50")
FINAL = ("Scheduled", "Preempted")
"""The reasons of events about final outcomes. Of those about attempts in between there may be more or fewer."""
MEMBER = re.compile(r"\b(g|h|v\d+-)\d+\b")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _cases(*, stable: bool) -> list[dict[str, Any]]:
    return [case for case in component_cases("podgroups") if case["stable"] is stable]


@each_case(lambda: _cases(stable=True))
def test_pod_groups(case: dict[str, Any]) -> None:
    """
    After each step the same pods are on the same nodes, gone or waiting, and the groups say the same about themselves.
    """
    _agrees(case["steps"], case["expect"], case["expect"])


@each_case(lambda: _cases(stable=False))
def test_pod_groups_of_which_two_runs_differ(case: dict[str, Any]) -> None:
    """What two runs of kube-scheduler agree on is so here, too."""
    _agrees(case["steps"], *case["seen"])


def test_members_that_arrive_one_by_one_are_played_so() -> None:
    """A group that makes room in two steps evicts others than one that does so at once. No recorded case here has that;
    those of other seeds do.
    """
    running = [pod(f"v{place}", "1", nodeName="n", priorityClassName=name) for place, name in enumerate(VICTIMS)]
    arriving = [members(1, cpu=cpu, priority="p100", first=place)[0] for place, cpu in enumerate(("1", "2", "1"))]
    steps = [[node("n", "4"), *running], [pod_group(priority="p100"), *arriving]]

    one_by_one, at_once = _played(steps, 3, one_by_one=True), _played(steps, 3)

    assert _compared(one_by_one[1]) != _compared(at_once[1])
    _agrees(steps, one_by_one, one_by_one)
    with pytest.raises(pytest.fail.Exception):
        _agrees(steps, [at_once[0], at_once[0]], [at_once[0], at_once[0]])


def _agrees(steps: Sequence[list[Object]], first: Sequence[Object], second: Sequence[Object]) -> None:
    disputed = [_disputed(_compared(one), _compared(other)) for one, other in zip(first, second, strict=True)]
    theirs = [_undisputed(_compared(step), names) for step, names in zip(first, disputed, strict=True)]

    at_once: list[Object] = []
    for one_by_one, seed in itertools.product((False, True), range(SEEDS)):
        played = _played(steps, seed, one_by_one=one_by_one)
        ours = [_undisputed(_compared(step), names) for step, names in zip(played, disputed, strict=True)]
        if ours == theirs:
            return
        at_once = at_once or ours

    pytest.fail(_differences(at_once, theirs))


def _played(steps: Iterable[list[Object]], seed: int, *, one_by_one: bool = False) -> list[Object]:
    states: list[Object] = []
    InMemory().run(_play(steps, seed, states, random.Random(seed) if one_by_one else None))
    return states


async def _play(
    steps: Iterable[list[Object]], seed: int, states: list[Object], moments: random.Random | None = None
) -> None:
    async with a_scene(controllers=False, features=GROUP_GATES, seed=seed) as scene:
        for value in (5, 10, 50, 100, 500):
            scene.api.create(PRIORITY_CLASSES, "", {"metadata": {"name": f"p{value}"}, "value": value})
        for step in steps:
            for obj in step:
                _do(scene, obj)
                if moments is not None and moments.random() < 0.5:
                    await scene.passes(MOMENT)
            await scene.passes(SETTLING)
            states.append(_state(scene))


def _do(scene: Scene, obj: Object) -> None:
    if "delete" in obj:
        scene.api.delete(PODS, "default", obj["name"], {"gracePeriodSeconds": 0})
        return
    resource = resource_of(obj)
    scene.api.create(
        resource,
        "default" if resource.namespaced else "",
        {key: value for key, value in obj.items() if key != "status"},
    )
    if "status" in obj:
        name = obj["metadata"]["name"]
        namespace = "default" if resource in (PODS, POD_DISRUPTION_BUDGETS) else ""
        remote.change(
            scene.api, resource, namespace, name, lambda item: item.update(status=obj["status"]), subresource="status"
        )


def _state(scene: Scene) -> Object:
    """The cluster as the recording tells of it."""
    pods: dict[str, Any] = {}
    grouped: dict[str, list[Any]] = {}
    for obj in scene.api.list(PODS, "default"):
        group = (obj["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if group is None:
            pods[obj["metadata"]["name"]] = _pod(obj)
        else:
            grouped.setdefault(group, []).append(_pod(obj))
    groups = {group["metadata"]["name"]: _conditions(group) for group in scene.api.list(POD_GROUPS, "default")}
    return {
        "pods": pods,
        "members": {name: sorted(member_states, key=str) for name, member_states in grouped.items()},
        "groups": {name: conditions for name, conditions in groups.items() if conditions},
        "events": sorted({_event(event) for event in scene.api.list(EVENTS, "default")}),
    }


def _pod(obj: Object) -> Object:
    scheduled: Object = next(
        (condition for condition in obj["status"].get("conditions", ()) if condition["type"] == "PodScheduled"), {}
    )
    return {
        "node": obj["spec"].get("nodeName"),
        "nominated": obj["status"].get("nominatedNodeName"),
        "scheduled": [scheduled.get("status"), scheduled.get("reason") or None, scheduled.get("message") or None],
    }


def _conditions(group: Object) -> list[list[str]]:
    conditions = (group.get("status") or {}).get("conditions") or ()
    return [[row["type"], row["status"], row["reason"], row.get("message", "")] for row in conditions]


def _event(event: Object) -> tuple[str, ...]:
    about = event["involvedObject"]
    name, message = MEMBER.sub(r"\1*", about["name"]), MEMBER.sub(r"\1*", UID.sub("UID", event["message"]))
    return event["reason"], about["kind"], name, message


def _compared(step: Object) -> Object:
    """What is compared of a step: by kind, by name."""
    return {
        "pods": step["pods"],
        "members": {name: sorted(member_states, key=str) for name, member_states in step["members"].items()},
        "groups": {name: conditions for name, conditions in step["groups"].items() if conditions},
        "events": {tuple(event): True for event in step["events"] if event[0] in FINAL},
    }


def _disputed(one: Object, other: Object) -> set[tuple[str, Any]]:
    """The names that two runs do not agree on."""
    return {
        (kind, name)
        for kind in one
        for name in {*one[kind], *other[kind]}
        if one[kind].get(name) != other[kind].get(name)
    }


def _undisputed(compared: Object, disputed: set[tuple[str, Any]]) -> Object:
    return {
        kind: {name: outcome for name, outcome in by_name.items() if (kind, name) not in disputed}
        for kind, by_name in compared.items()
    }


def _differences(ours: list[Object], theirs: list[Object]) -> str:
    lines = []
    for place, (our_step, other) in enumerate(zip(ours, theirs, strict=True)):
        lines += [
            f"step {place}, {what}:\n  ours   {our_step[what]}\n  theirs {other[what]}"
            for what in our_step
            if our_step[what] != other.get(what)
        ]
    return "\n".join(lines)
