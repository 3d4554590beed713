"""What the log tells of a pod's way, in upstream's words and at upstream's verbosity: those who know kube-scheduler's
log can read ours.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from extender.testing import virtual_time
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene.followed import a_cluster


def logged_lines(
    tell: Callable[[], Coroutine[None, None, None]], verbosity: int, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """The lines at this verbosity and below."""
    with caplog.at_level(logging.INFO - verbosity, "extender"):
        virtual_time.run(tell())
    return caplog.messages


def in_order(lines: list[str], expected: list[str]) -> list[str]:
    """Those of the wanted lines that are there one after the other."""
    rest = iter(lines)
    return [line for line in expected if line in rest]


async def one_pod_is_bound() -> None:
    async with a_cluster(node("big")) as cluster:
        cluster.create(pod("web"))
        await asyncio.sleep(5)


async def one_pod_waits_for_a_node() -> None:
    async with a_cluster() as cluster:
        cluster.create(pod("web"))
        await asyncio.sleep(3)
        cluster.create(node("small", "100m"))
        await asyncio.sleep(10)


async def one_pod_preempts_another() -> None:
    high: dict[str, Any] = priority_class("high", 100)
    async with a_cluster(node("big", "1"), high) as cluster:
        cluster.create(pod("low"))
        await asyncio.sleep(3)
        cluster.create(pod("high", priorityClassName="high"))
        await asyncio.sleep(10)


def test_the_way_of_a_pod_to_its_node(caplog: pytest.LogCaptureFixture) -> None:
    way = [
        '"Add event for unscheduled pod" pod="default/web"',
        '"Pod moved to an internal scheduling queue" pod="default/web" event="UnschedulablePodAdd" queue="Active"',
        '"About to try and schedule pod" pod="default/web"',
        '"Attempting to schedule pod" pod="default/web"',
        '"Attempting to bind pod to node" pod="default/web" node="big"',
        '"Successfully bound pod to node" pod="default/web" node="big" evaluatedNodes=1 feasibleNodes=1',
    ]

    assert in_order(logged_lines(one_pod_is_bound, 5, caplog), way) == way


async def one_pod_has_a_choice() -> None:
    async with a_cluster(node("small", memory="0"), node("big", "8", memory="0")) as cluster:
        cluster.create(pod("web"))
        await asyncio.sleep(5)


def test_scores_of_nodes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged_lines(one_pod_has_a_choice, 10, caplog)

    by_fit = [
        line
        for line in lines
        if line.startswith('"Plugin scored node for pod" pod="default/web" plugin="NodeResourcesFit"')
    ]
    assert sorted(line.rpartition(" node=")[2] for line in by_fit) == ['"big" score=87', '"small" score=50']
    totals = [
        line
        for line in lines
        if line.startswith('"Calculated node\'s final score for pod" pod="default/web" node="big" score=')
    ]
    assert len(totals) == 1


@pytest.mark.parametrize(("verbosity", "is_logged"), [(0, False), (2, True)])
def test_a_bound_pod_is_logged_from_verbosity_two_on(
    verbosity: int, *, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert any("web" in line for line in logged_lines(one_pod_is_bound, verbosity, caplog)) == is_logged


def test_why_a_pod_waits(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged_lines(one_pod_waits_for_a_node, 3, caplog)

    assert '"Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="default/web"' in lines
    refusals = [
        line
        for line in lines
        if line.startswith('"Unable to schedule pod; no fit; waiting" pod="default/web" err="0/1 nodes are')
    ]
    assert refusals
    assert "Insufficient cpu" in refusals[0]
    moves = [line for line in lines if line.startswith('"Pod moved to an internal scheduling queue"')]
    assert moves[-1].startswith(
        '"Pod moved to an internal scheduling queue" pod="default/web" event="ScheduleAttemptFailure" '
        'queue="Unschedulable" '
    )
    assert ' hint=0 unschedulable plugins=["NodeResourcesFit"]' in moves[-1]


def test_preemption_is_logged_from_the_chosen_node_to_the_last_victim(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged_lines(one_pod_preempts_another, 2, caplog)

    way = [
        '"the target node for the preemption is determined" node="big" pod="default/high"',
        '"Start the preemption asynchronously" preemptor="default/high" node="big" numVictims=1 numVictimsToDelete=1',
        '"Preemptor Pod preempted victim Pod" preemptor="default/high" victim="default/low" node="big"',
        '"Async Preemption finished completely" preemptor="default/high" node="big" result="success"',
    ]
    assert in_order(lines, way) == way
