"""A group that asks for them by its annotation gets the fewest victims, and of equally few those of the lowest
priority.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, count

import pytest
from hypothesis import given, settings, strategies as st

from extender.engine.preemption.minimal_victims import ANNOTATION, seconds_to_search, why_ignored
from extender.engine.preemption.pod_group_victims import GroupVictims
from extender.testing import make_node, make_pod, make_pod_group
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import PodDisruptionBudget, PodGroup, group_of
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.extender.engine.scheduler.test_pod_group_victims import Case, a_case
from tests.kit.examples import examples
from tests.kit.told_groups import ToldGroups

Cost = tuple[int, int]
"""The number of units, and the sum of their priorities."""
WAYS = pytest.mark.parametrize("one_by_one", [False, True], ids=["by room", "by trials"])


def asking(group: PodGroup, how: str = "true") -> PodGroup:
    return replaced(group, metadata=replaced(group.metadata, annotations={ANNOTATION: how}))


def find(
    objects: Sequence[HasMetadata], group: PodGroup, members: Sequence[Pod], *, one_by_one: bool = False
) -> GroupVictims:
    async def run() -> GroupVictims:
        return await ToldGroups(*objects, group, *members).victims(group, members, one_by_one=one_by_one)

    return asyncio.run(run())


def units_in(case: Case) -> list[tuple[int, list[Pod]]]:
    """The priority and the pods of each unit that may go."""
    wholes = {obj.name: obj for obj in case.objects if isinstance(obj, PodGroup) and obj.goes_as_a_whole}
    units: dict[str, tuple[int, list[Pod]]] = {}
    for pod in (obj for obj in case.objects if isinstance(obj, Pod) and obj.spec.node_name):
        whole = wholes.get((group_of(pod) or ("", ""))[1])
        name, priority = (whole.name, whole.priority) if whole is not None else (pod.uid, pod.priority)
        units.setdefault(name, (priority, []))[1].append(pod)
    return [unit for unit in units.values() if unit[0] < case.group.priority]


def cost_of(case: Case, victims: Sequence[Pod]) -> Cost:
    uids = {pod.uid for pod in victims}
    priorities = [priority for priority, pods in units_in(case) if pods[0].uid in uids]
    return len(priorities), sum(priorities)


async def cheapest(case: Case) -> Cost:
    """By a trial without each set of units."""
    stage = ToldGroups(*case.objects)
    cache, trial, units = stage.cluster.cache, stage.trial(case.group, case.members), units_in(case)
    for size in count():
        fitting = []
        for chosen in combinations(units, size):
            pods = [pod for _, unit_pods in chosen for pod in unit_pods]
            for pod in pods:
                cache.remove_pod(pod)
            if (await trial.run(post_filters=False)).fits:
                fitting.append(sum(priority for priority, _ in chosen))
            for pod in pods:
                cache.add_pod(pod)
        if fitting:
            return size, min(fitting)
    raise AssertionError


@WAYS
@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10**9))
def test_no_set_of_victims_is_smaller_or_as_small_and_of_lower_priority(seed: int, one_by_one: bool) -> None:
    case = a_case(seed, most_pods=8)
    case = replace(case, objects=[obj for obj in case.objects if not isinstance(obj, PodDisruptionBudget)])
    victims = find(case.objects, asking(case.group), case.members, one_by_one=one_by_one)
    if victims.candidate is None:
        return

    assert cost_of(case, victims.candidate.victims) == asyncio.run(cheapest(case))


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10**9))
def test_both_ways_find_victims_that_cost_the_same_and_violate_no_more_budgets(seed: int) -> None:
    case = a_case(seed, most_pods=9)
    plain = find(case.objects, case.group, case.members)
    quickly, slowly = (find(case.objects, asking(case.group), case.members, one_by_one=slow) for slow in (False, True))

    assert quickly.status == slowly.status == plain.status
    if plain.candidate is None or quickly.candidate is None or slowly.candidate is None:
        return
    costs = [cost_of(case, way.candidate.victims) for way in (quickly, slowly, plain) if way.candidate is not None]
    assert costs[0] == costs[1] <= costs[2]
    assert quickly.instead_of in (None, plain.candidate)
    if any(isinstance(obj, PodDisruptionBudget) for obj in case.objects):
        protected = [
            sum(pod.labels.get("app") == "a" for pod in way.victims) for way in (quickly.candidate, plain.candidate)
        ]
        assert protected[0] <= max(protected[1], 1)


def small_and_large(name: str, number: int, cpu: str, priority: int) -> list[Pod]:
    return [
        make_pod(f"{name}{n}").uid(f"{name}{n}").node("n").phase("Running").priority(priority).req(cpu=cpu).obj()
        for n in range(number)
    ]


@WAYS
def test_one_large_pod_goes_instead_of_ten_small_ones_that_are_less_important(one_by_one: bool) -> None:
    """After volcano#5984: ten evicted where one was needed."""
    low, large = small_and_large("low", 10, "1", 5), small_and_large("large", 1, "10", 10)
    group = make_pod_group("g", 5, priority=100)
    members = [make_pod(f"g{n}").uid(f"g{n}").group("g").priority(100).req(cpu="2").obj() for n in range(5)]
    objects = [make_node("n").capacity(cpu="20", pods=110).obj(), *low, *large]

    plain, fewest = (find(objects, pod_group, members, one_by_one=one_by_one) for pod_group in (group, asking(group)))
    assert (plain.candidate, plain.instead_of) == (fewest.instead_of, None)
    assert fewest.candidate is not None
    assert plain.candidate is not None
    assert [[pod.name for pod in candidate.victims] for candidate in (fewest.candidate, plain.candidate)] == [
        ["large0"],
        [pod.name for pod in low],
    ]


@WAYS
def test_a_victim_that_is_leaving_already_makes_no_choice_better(one_by_one: bool) -> None:
    low, leaving = small_and_large("low", 1, "2", 5), make_pod("leaving").node("n").priority(5).req(cpu="2")
    member = make_pod("g0").uid("g0").group("g").priority(100).req(cpu="4").obj()
    objects = [make_node("n").capacity(cpu="4", pods=110).obj(), *low, leaving.terminating().obj()]

    victims = find(objects, asking(make_pod_group("g", 1, priority=100)), [member], one_by_one=one_by_one)

    assert victims.candidate is not None
    assert {pod.name for pod in victims.candidate.victims} == {"low0", "leaving"}
    assert victims.instead_of is None


def test_members_that_differ_are_tried_one_after_the_other() -> None:
    low, large = small_and_large("low", 6, "1", 5), small_and_large("large", 1, "6", 10)
    group = asking(make_pod_group("g", 2, priority=100))
    members = [make_pod(f"g{cpu}").uid(f"g{cpu}").group("g").priority(100).req(cpu=cpu).obj() for cpu in ("2", "4")]
    victims = find([make_node("n").capacity(cpu="12", pods=110).obj(), *low, *large], group, members)

    assert victims.candidate is not None
    assert [pod.name for pod in victims.candidate.victims] == ["large0"]


def test_best_victims_found_by_the_deadline_are_used() -> None:
    low, large = small_and_large("low", 10, "1", 5), small_and_large("large", 1, "10", 10)
    group = asking(make_pod_group("g", 1, priority=100), "1ms")
    member = make_pod("g0").uid("g0").group("g").priority(100).req(cpu="10").obj()
    objects = [make_node("n").capacity(cpu="20", pods=110).obj(), *low, *large, group, member]

    async def find() -> list[int]:
        sizes = []
        for steps in range(60):
            ticks = iter([0.0] * (steps + 1))
            outcome = await ToldGroups(*objects).victims(group, [member], clock=lambda ticks=ticks: next(ticks, 1.0))  # type: ignore[misc]
            sizes.append(0 if outcome.candidate is None else len(outcome.candidate.victims))
        return sizes

    sizes = asyncio.run(find())
    assert sizes == sorted(sizes, reverse=True)
    assert {sizes[0], sizes[-1]} == {10, 1}


@pytest.mark.parametrize(("how", "seconds"), [("true", 0.5), ("200ms", 0.2), ("1h", 1.0), ("false", 0.0), ("0s", 0.0)])
def test_the_annotation_says_for_how_long_to_search(how: str, seconds: float) -> None:
    assert seconds_to_search(asking(make_pod_group("g", 1), how)) == seconds
    assert seconds_to_search(make_pod_group("g", 1)) == 0.0
    assert why_ignored(asking(make_pod_group("g", 1), how)) == why_ignored(make_pod_group("g", 1)) == ""


@pytest.mark.parametrize("how", ["soon", "", "True", "yes", "5", "-1s", "1s" * 100])
def test_malformed_annotation_is_ignored_with_the_reason(how: str) -> None:
    group = asking(make_pod_group("g", 1), how)

    assert seconds_to_search(group) == 0.0
    assert f'reprieve.dev/minimal-victims is ignored: "{how[:100]}' in why_ignored(group)
    assert len(why_ignored(group)) < 250
