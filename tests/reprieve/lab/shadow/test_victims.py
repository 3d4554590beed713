"""Victims of another scheduler are compared with those that the shadow would take on the same node."""

import asyncio

import pytest

from extender.testing import make_node, make_pod, virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition, HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab.agreement import Agreement
from reprieve.lab.shadow.shadow import Shadow

FULL = "0/1 nodes are available: 1 Insufficient cpu."


def running(name: str, started: str | None) -> Pod:
    pod = make_pod(name).uid(name).req(cpu="1").node("n").obj()
    return pod if started is None else started_at(pod, started)


def started_at(pod: Pod, time: str) -> Pod:
    return replaced(pod, status=replaced(pod.status, start_time=f"2026-11-23T{time}Z"))


def with_condition(pod: Pod, **condition: str) -> Pod:
    return replaced(pod, status=replaced(pod.status, conditions=(Condition(**condition),)))


def evicting(victim: Pod, *pods: Pod, just_started: tuple[Pod, Pod] | None = None) -> Agreement:
    """What the shadow finds of a scheduler that evicts a pod for an urgent one, where the node is full of pods that
    were seen in this order.
    """
    urgent = make_pod("urgent").uid("urgent").req(cpu="1").priority(1000).obj()
    refused = with_condition(urgent, type="PodScheduled", status="False", reason="Unschedulable", message=FULL)
    nominated = replaced(refused, status=replaced(refused.status, nominated_node_name="n"))
    evicted = with_condition(victim, type="DisruptionTarget", status="True", reason="PreemptionByScheduler")

    async def story() -> Agreement:
        shadow = Shadow(Configuration())
        follows = asyncio.create_task(shadow.run())
        await tell(shadow, (None, make_node("n").capacity(cpu=str(len(pods))).obj()), *((None, pod) for pod in pods))
        await asyncio.sleep(10)
        await tell(
            shadow, *([just_started] if just_started else []), (None, urgent), (urgent, nominated), (victim, evicted)
        )
        await shadow.caught_up()
        follows.cancel()
        return shadow.agreement()

    return virtual_time.run(story())


async def tell(shadow: Shadow, *changes: tuple[HasMetadata | None, HasMetadata | None]) -> None:
    for old, new in changes:
        shadow.changed(old, new)
        await asyncio.sleep(0)


def clearly_spared(agreement: Agreement) -> list[str]:
    assert (agreement.total.decisions, agreement.total.different, agreement.evicted) == (1, 0, 1)
    return [item.pod.name for item in agreement.differences if item.kind == "spared" and item.is_clear]


@pytest.mark.parametrize("victim", ["a", "b", "c"])
def test_a_victim_that_is_as_important_as_ours_is_as_good(victim: str) -> None:
    pods = {name: running(name, "05:00:00") for name in "abc"}

    assert clearly_spared(evicting(pods[victim], *pods.values())) == []


def test_a_victim_that_is_more_important_than_ours_would_have_been_spared() -> None:
    old, young = running("old", "05:00:00"), running("young", "05:00:01")

    assert clearly_spared(evicting(young, old, young)) == []
    assert clearly_spared(evicting(old, old, young)) == ["old"]


def test_a_pod_that_starts_when_victims_are_chosen_may_have_counted_as_the_youngest() -> None:
    """The scheduler had not heard yet that it runs."""
    before, other = running("starts", None), running("other", "05:00:02")
    starts = started_at(before, "05:00:01")

    assert clearly_spared(evicting(starts, before, other, just_started=(before, starts))) == []
    assert clearly_spared(evicting(starts, starts, other)) == ["starts"]
