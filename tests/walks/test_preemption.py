"""Walk (c): a pod that fits nowhere, and the room that is made for it. Read it beside ARCHITECTURE.md."""

import asyncio
import random

import pytest

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.registry import Registry
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.testing import PodBuilder, make_cache, make_node, make_pod
from extender.values.config.configuration import Configuration
from tests.extender.engine.preemption.test_budgets import budget


def test_a_pod_that_fits_nowhere_makes_room_for_itself() -> None:
    # Three nodes of two cores, all full. On `cheap` the pods matter little; on `dear` one matters much; `guarded` has a
    # pod with a budget that allows no disruption. And there is a node that no eviction opens.
    def running(name: str, on: str, priority: int) -> PodBuilder:
        return make_pod(name).req(cpu=1).priority(priority).node(on)

    cache = make_cache(
        *(make_node(name).capacity(cpu=2) for name in ("dear", "cheap", "guarded")),
        make_node("closed").capacity(cpu=2).unschedulable(),
        pods=[
            running("d1", "dear", 5), running("d2", "dear", 1),
            running("c1", "cheap", 2), running("c2", "cheap", 1),
            make_pod("g1").label(app="web").req(cpu=2).priority(0).node("guarded"),
        ],
        objects=[budget(0)],
    )  # fmt: skip
    (framework,) = Registry(IN_TREE, ()).make_frameworks(Configuration(), random.Random(0)).values()
    algorithm = SchedulingAlgorithm()
    preemptor = make_pod("important").req(cpu=2).priority(10).obj()

    # 1 The scheduling cycle finds no node, and says why.
    with pytest.raises(FitError) as caught:
        algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), preemptor))
    assert str(caught.value) == "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu."

    # 2 DefaultPreemption asks: may it preempt, where might that help, who would have to go? All lower pods leave all
    # three nodes at once and come back one by one where there is still room. `guarded` would break a budget, `dear`
    # would cost a pod of priority 5: `cheap` it is.
    state = Cycle(framework, cache.update_snapshot(), preemptor)
    state.run_pre_filter_plugins()
    result = asyncio.run(run_post_filter_plugins(state, caught.value.diagnosis.statuses))
    outcome = result.preemption

    assert result.status.is_success
    assert outcome is not None
    assert outcome.potential_nodes == ("dear", "cheap", "guarded")
    assert outcome.candidates is not None
    assert {
        one.node: ([pod.name for pod in one.victims], one.num_pdb_violations) for one in outcome.candidates.listed()
    } == {"dear": (["d1", "d2"], 0), "cheap": (["c1", "c2"], 0), "guarded": (["g1"], 1)}
    assert result.nominated_node == "cheap"
    assert result.candidate is not None
    assert [pod.name for pod in result.candidate.victims] == ["c1", "c2"]

    # 3 The pod is nominated, and its victims are asked to leave. While they do, the room they leave is its own: others,
    # less important, do not get it ...
    nominated = make_pod("important").req(cpu=2).priority(10).nominated_node("cheap").obj()
    nominations = Nominations({"cheap": ((cache.nominate(nominated), nominated),)})
    for victim in result.candidate.victims:
        cache.remove_pod(victim)
    with pytest.raises(FitError):
        algorithm.schedule_pod(
            Cycle(framework, cache.update_snapshot(), make_pod("late").req(cpu=1).obj(), nominations)
        )

    # ... but one that matters more does, for a promise is no reservation.
    urgent = make_pod("urgent").req(cpu=1).priority(11).obj()
    assert (
        algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), urgent, nominations)).suggested_host == "cheap"
    )

    # 4 When the pod's turn comes again its nominated node is looked at first, and it fits.
    placement = algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), nominated, nominations))
    assert (placement.suggested_host, placement.feasible_nodes) == ("cheap", 1)
