"""The bind verb: what plugins of the user reserve is written with the binding, and those of the tree have run at the caller."""

import asyncio
import random

import pytest

from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.testing import make_node, make_pod
from extender.values.config.loading import load
from extender.values.objects.pod import Pod
from extender.verbs import VerbError, Verbs
from reprieve import plugin as fwk
from tests.kit.writes import RecordedWrites

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Seats}]}}}]
"""
SEATS = fwk.Account(1, lambda node: [1], lambda pod: [int("seat" in pod.annotations)])


class Seats(fwk.FilterPlugin, fwk.ReservePlugin, fwk.PreBindPlugin):
    """One seat on each node. In `said`, what Reserve and PreBind were asked."""

    refuses = False

    def __init__(self, arguments: object = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self.said = SAID

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.left(SEATS)[:, 0] < 1, "no seat")

    def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.said.append(f"reserve {pod.name}")
        state.write(fwk.BINDING_ANNOTATIONS, {"seat": "1"})
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        self.said.append(f"unreserve {pod.name}")

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.said.append(f"pre_bind {pod.name}")
        reserved = state.read(fwk.BINDING_ANNOTATIONS)
        state.write(fwk.BINDING_ANNOTATIONS, {**reserved, "row": "2"})
        return fwk.error("no door") if Seats.refuses else fwk.SUCCESS


SAID: list[str] = []


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    SAID.clear()
    Seats.refuses = False


def verbs_for(*pods: Pod) -> tuple[Verbs, Cluster, RecordedWrites]:
    cluster = Cluster()
    for obj in (make_node("a").capacity(cpu=8).obj(), *pods):
        cluster.changed(None, obj)
    writes = RecordedWrites(cluster.cache)
    registry = Registry(IN_TREE, (), also={"Seats": Seats})
    frameworks = registry.make_frameworks(load(PROFILE), random.Random(1))
    return Verbs(frameworks, cluster, dispatcher=writes), cluster, writes


ASKED, SECOND = make_pod("asked").obj(), make_pod("second").obj()


def test_a_binding_carries_what_plugins_reserved() -> None:
    verbs, _, writes = verbs_for(ASKED)

    asyncio.run(verbs.bind("asked", "default", ASKED.uid, "a"))
    asyncio.run(verbs.bind("asked", "default", ASKED.uid, "a"))  # asked again, as after an answer that was lost

    assert writes.calls == [fwk.BindPod.of(ASKED, "a", {"seat": "1", "row": "2"})] * 2
    assert SAID == ["reserve asked", "pre_bind asked"]


async def test_what_was_reserved_counts_for_the_next_pod() -> None:
    verbs, _, _ = verbs_for(ASKED, SECOND)
    binds = (verbs.bind(pod.name, "default", pod.uid, "a") for pod in (ASKED, SECOND))
    first, second = await asyncio.gather(*binds, return_exceptions=True)

    assert first is None
    assert "Seats refused it: no seat" in str(second)


@pytest.mark.parametrize("in_pre_bind", [True, False])
def test_a_binding_that_fails_gives_all_back(in_pre_bind: bool) -> None:
    verbs, cluster, writes = verbs_for(ASKED)
    Seats.refuses = in_pre_bind
    writes.fail(fwk.BindPod, fwk.CallError("refused"))

    with pytest.raises(VerbError, match="no door" if in_pre_bind else "refused"):
        asyncio.run(verbs.bind("asked", "default", ASKED.uid, "a"))

    assert SAID == ["reserve asked", "pre_bind asked", "unreserve asked"]
    assert fwk.Rows.of(cluster.cache.update_snapshot()).left(SEATS).tolist() == [[1]]
