"""What becomes of pod groups, step by step, as it became of them with kube-scheduler and the gates on."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from extender.cluster.api_resources import EVENTS, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, PRIORITY_CLASSES, Object
from tests.each_case import each_case
from tests.parity.cases import component_cases
from tests.stories import remote
from tests.stories.scenery import resource_of
from tests.stories.stages import InMemory
from tests.stories.telling import Scene, a_scene

GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
SETTLING = 60.0
"""Seconds of virtual time after each step. A group that is tried in vain is tried again within ten."""
SEEDS = 24
"""Equally good nodes and placements are chosen by chance, there as here. A case is played until chance has chosen as it
did there.
"""
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
    """
    What two runs of kube-scheduler agree on is so here, too.
    """
    _agrees(case["steps"], *case["seen"])


def _agrees(steps: Sequence[list[Object]], first: Sequence[Object], second: Sequence[Object]) -> None:
    disputed = [_disputed(_compared(one), _compared(other)) for one, other in zip(first, second, strict=True)]
    theirs = [_without(_compared(step), names) for step, names in zip(first, disputed, strict=True)]

    ours: list[Object] = []
    for seed in range(SEEDS):
        ours = [_without(_compared(step), names) for step, names in zip(_played(steps, seed), disputed, strict=True)]
        if ours == theirs:
            break

    assert ours == theirs, _differences(ours, theirs)


def _played(steps: Iterable[list[Object]], seed: int) -> list[Object]:
    seen: list[Object] = []
    InMemory().run(_play(steps, seed, seen))
    return seen


async def _play(steps: Iterable[list[Object]], seed: int, seen: list[Object]) -> None:
    async with a_scene(controllers=False, features=dict.fromkeys(GATES, True), seed=seed) as scene:
        for value in (5, 10, 50, 100, 500):
            scene.api.create(PRIORITY_CLASSES, "", {"metadata": {"name": f"p{value}"}, "value": value})
        for step in steps:
            for obj in step:
                _do(scene, obj)
            await scene.passes(SETTLING)
            seen.append(_state(scene))


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
            scene.api, resource, namespace, name, lambda found: found.update(status=obj["status"]), subresource="status"
        )


def _state(scene: Scene) -> Object:
    """The cluster as the recording tells of it."""
    pods: dict[str, Any] = {}
    members: dict[str, list[Any]] = {}
    for pod in scene.api.list(PODS, "default"):
        group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if group is None:
            pods[pod["metadata"]["name"]] = _pod(pod)
        else:
            members.setdefault(group, []).append(_pod(pod))
    groups = {group["metadata"]["name"]: _conditions(group) for group in scene.api.list(POD_GROUPS, "default")}
    return {
        "pods": pods,
        "members": {name: sorted(each, key=str) for name, each in members.items()},
        "groups": {name: conditions for name, conditions in groups.items() if conditions},
        "events": sorted({_event(event) for event in scene.api.list(EVENTS, "default")}),
    }


def _pod(pod: Object) -> Object:
    scheduled: Object = next(
        (each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"), {}
    )
    return {
        "node": pod["spec"].get("nodeName"),
        "nominated": pod["status"].get("nominatedNodeName"),
        "scheduled": [scheduled.get("status"), scheduled.get("reason") or None, scheduled.get("message") or None],
    }


def _conditions(group: Object) -> list[list[str]]:
    conditions = (group.get("status") or {}).get("conditions") or ()
    return [[each["type"], each["status"], each["reason"], each.get("message", "")] for each in conditions]


def _event(event: Object) -> tuple[str, ...]:
    about = event["involvedObject"]
    named, said = MEMBER.sub(r"\1*", about["name"]), MEMBER.sub(r"\1*", UID.sub("UID", event["message"]))
    return event["reason"], about["kind"], named, said


def _compared(step: Object) -> Object:
    """What is compared of a step: by kind, by name."""
    return {
        "pods": step["pods"],
        "members": {name: sorted(each, key=str) for name, each in step["members"].items()},
        "groups": {name: each for name, each in step["groups"].items() if each},
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


def _without(compared: Object, disputed: set[tuple[str, Any]]) -> Object:
    return {
        kind: {name: each for name, each in named.items() if (kind, name) not in disputed}
        for kind, named in compared.items()
    }


def _differences(ours: list[Object], theirs: list[Object]) -> str:
    lines = []
    for place, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        lines += [
            f"step {place}, {what}:\n  ours   {own[what]}\n  theirs {other[what]}"
            for what in own
            if own[what] != other.get(what)
        ]
    return "\n".join(lines)
