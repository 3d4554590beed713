"""The victims that are found by summing up room are those that are found by a trial for each unit."""

import asyncio
import random
from dataclasses import dataclass
from typing import final

from hypothesis import given, settings, strategies as st

from extender.testing import make_node, make_pod, make_pod_group
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import PodGroup
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.pod import Pod
from tests.extender.engine.preemption.test_budgets import budget
from tests.kit.examples import examples
from tests.kit.told_groups import ToldGroups

NODES = 5


@final
@dataclass(frozen=True, slots=True)
class Case:
    objects: list[HasMetadata]
    group: PodGroup
    members: list[Pod]


def a_case(seed: int, most_pods: int = 14) -> Case:
    """A cluster that is nearly full of pods by themselves and in groups, some protected by a budget, and a group that
    wants some of its room.
    """
    rng = random.Random(seed)
    objects: list[HasMetadata] = [
        make_node(f"n{number}")
        .label({"kubernetes.io/hostname": f"n{number}"})
        .capacity(cpu=str(rng.randint(2, 6)), memory="64Gi", pods=rng.choice([4, 110]))
        .obj()
        for number in range(NODES)
    ]
    wholes = [make_pod_group(f"v{number}", 1, priority=rng.choice([5, 10, 60])) for number in range(rng.randint(0, 2))]
    objects += [
        replaced(whole, spec=replaced(whole.spec, disruption_mode=rng.choice(["Pod", "PodGroup"]))) for whole in wholes
    ]
    free_ports = set(range(NODES))  # no node runs two pods with one host port
    for number in range(rng.randint(0, most_pods)):
        on = rng.randrange(NODES)
        pod = make_pod(f"r{number}").uid(f"r{number}").label(app=rng.choice("ab"))
        pod = pod.priority(rng.choice([5, 10, 10, 50, 200])).req(cpu=rng.choice(["500m", "1", "2"]))
        pod = pod.node(f"n{on}").phase("Running").start_time(f"2026-01-01T00:{rng.randrange(60):02}:00Z")
        if wholes and rng.random() < 0.4:
            pod = pod.group(rng.choice(wholes).name)
        if rng.random() < 0.2 and on in free_ports:
            free_ports.remove(on)
            pod = pod.host_port(80)
        objects.append(pod.obj())
    if rng.random() < 0.4:
        objects.append(budget(1, LabelSelector(match_labels={"app": "a"})))
    count = rng.randint(1, 6)
    group = make_pod_group("g", rng.choice([None, *range(1, count + 1)]), priority=100)
    builder = make_pod("m").group("g").priority(100).req(cpu=rng.choice(["500m", "1", "2"]))
    if rng.random() < 0.2:
        builder = builder.host_port(80)
    members = [builder.name(f"g{number}").uid(f"g{number}").obj() for number in range(count)]
    return Case([*objects, group, *members], group, members)


def units_of(case: Case, victim_uids: list[str]) -> list[set[str]]:
    """The victims that can only go together: the pods of a group that is disrupted as a whole, or a pod by itself."""
    wholes = {obj.name for obj in case.objects if isinstance(obj, PodGroup) and obj.goes_as_a_whole}
    units: dict[str, set[str]] = {}
    for pod in case.objects:
        if isinstance(pod, Pod) and pod.uid in victim_uids:
            group = pod.spec.scheduling_group
            name = group.pod_group_name if group is not None and group.pod_group_name in wholes else pod.uid
            units.setdefault(name, set()).add(pod.uid)
    return [*units.values()]


async def both_ways(case: Case) -> list[tuple[str, list[str]]]:
    stage = ToldGroups(*case.objects)
    results = []
    for one_by_one in (False, True):
        victims = await stage.victims(case.group, case.members, one_by_one=one_by_one)
        names = [] if victims.candidate is None else [pod.name for pod in victims.candidate.victims]
        results.append((victims.status.message, names))
    return results


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10**9))
def test_room_that_is_summed_up_leads_to_the_victims_of_trials_one_by_one(seed: int) -> None:
    quickly, slowly = asyncio.run(both_ways(a_case(seed)))

    assert quickly == slowly


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**9))
def test_once_the_victims_are_gone_the_group_fits_and_no_single_one_of_them_could_have_stayed(seed: int) -> None:
    async def tell() -> None:
        case = a_case(seed)
        victims = await ToldGroups(*case.objects).victims(case.group, case.members)
        uids = [] if victims.candidate is None else [pod.uid for pod in victims.candidate.victims]
        if not victims.status.is_success:
            return

        async def fits_without(removed: set[str]) -> bool:
            remaining = [obj for obj in case.objects if not (isinstance(obj, Pod) and obj.uid in removed)]
            return (await ToldGroups(*remaining).trial(case.group, case.members).run()).fits

        assert await fits_without({*uids})
        for unit in units_of(case, uids):
            assert not await fits_without({*uids} - unit)

    asyncio.run(tell())


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**9))
def test_a_trial_leaves_the_cluster_as_it_was(seed: int) -> None:
    """The pods on each node are the same, in the same order, and so is what they request."""

    async def tell() -> None:
        case = a_case(seed)
        stage = ToldGroups(*case.objects)
        cache = stage.cluster.cache
        before = cache.dump()

        await stage.trial(case.group, case.members).run()

        assert cache.dump() == before
        assert not cache.assumed_pods

    asyncio.run(tell())
