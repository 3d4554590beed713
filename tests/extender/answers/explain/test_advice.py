"""What plugins advise about a pod that no node takes: those of the profile, and those of strangers."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from extender.answers.explain.advice import Advice, Refusals, nearest_nodes
from extender.answers.explain.fixes import fixes
from extender.answers.phrases import noun
from extender.answers.types import Fix, Lack, NearNode
from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Int64s
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod, make_snapshot
from extender.values.objects.decoding import replaced

FREE, WANTED = "example.com/free-licenses", "example.com/licenses"


@pytest.mark.parametrize(
    ("resource", "short", "word"), [("pods", "1", "pod"), ("pods", "2", "pods"), ("cpu", "1", "cpu")]
)
def test_noun_of_a_lack_is_singular_for_one(resource: str, short: str, word: str) -> None:
    assert noun(Lack(resource=resource, asks=short, free="0", short=short)) == word


def test_a_lack_is_what_is_requested_beyond_what_is_free() -> None:
    snapshot = make_snapshot(make_node("a").capacity(cpu=4), pods=[make_pod("p").req(cpu="2500m").node("a")])
    advice = Advice(make_framework(NodeResourcesFit), snapshot, make_pod().req(cpu=2).obj(), NO_NOMINATIONS)

    assert advice.lacks(0) == (Lack(resource="cpu", asks="2", free="1500m", short="500m"),)


def test_room_nominated_to_a_pod_of_equal_or_higher_priority_is_not_free() -> None:
    cache = make_cache(make_node("a").capacity(cpu=4))
    first = make_pod("first").req(cpu=3).priority(5).obj()
    nominations = Nominations({"a": ((cache.nominate(first), first),)})
    snapshot = cache.update_snapshot()

    def lacks(priority: int) -> tuple[Lack, ...]:
        return Advice(
            make_framework(NodeResourcesFit), snapshot, make_pod().req(cpu=2).priority(priority).obj(), nominations
        ).lacks(0)

    assert lacks(5) == (Lack(resource="cpu", asks="2", free="1", short="1"),)
    assert lacks(6) == ()


class Licenses(fwk.FilterPlugin, fwk.AdvicePlugin):
    """A stranger's plugin: a pod takes so many licenses, and a node has so many."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(self._free(rows) < self._num_licenses(pod), "node(s) had too few licenses")

    def shortages(self, pod: fwk.Pod, rows: fwk.Rows) -> list[fwk.Shortage]:
        return [fwk.Shortage("licenses", self._num_licenses(pod), self._free(rows))]

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        for number in sorted({*self._free(rows).tolist()} - {0}, reverse=True):
            changed = replaced(
                pod, metadata=replaced(pod.metadata, annotations={**pod.annotations, WANTED: str(number)})
            )
            yield fwk.Suggestion("other", f"do with {number} licenses", changed)

    def _num_licenses(self, pod: fwk.Pod) -> int:
        return int(pod.annotations.get(WANTED, 0))

    def _free(self, rows: fwk.Rows) -> Int64s:
        return np.maximum(rows.label_number(FREE), 0)


class Failing(Licenses):
    """Knows no advice."""

    def shortages(self, pod: fwk.Pod, rows: fwk.Rows) -> list[fwk.Shortage]:
        raise RuntimeError("no shortages today")

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        yield from ()
        raise RuntimeError("no suggestions today")


SNAPSHOT = make_snapshot(
    make_node("none").capacity(cpu=4),
    make_node("two").capacity(cpu=4).label({FREE: "2"}),
    make_node("three").capacity(cpu=1).label({FREE: "3"}),
)
WANTING = make_pod().req(cpu=2).annotation({WANTED: "5"})


def explained(
    framework: Framework, pod: PodBuilder, snapshot: Snapshot = SNAPSHOT
) -> tuple[tuple[NearNode, ...], tuple[Fix, ...]]:
    evaluation = asyncio.run(evaluate(Cycle(framework, snapshot, pod.obj(), NO_NOMINATIONS)))
    refusals, advice = Refusals.of(evaluation), Advice(framework, snapshot, pod.obj(), NO_NOMINATIONS)
    assert refusals is not None
    return nearest_nodes(refusals, advice), fixes(evaluation, refusals, advice, framework, pod.obj(), NO_NOMINATIONS)


def test_out_of_tree_plugin_advises_what_a_pod_lacks_and_what_to_change() -> None:
    """
    The nodes come in the order of what they lack, and what is suggested is tried on all plugins before it is shown.
    """
    near, fixes = explained(make_framework(NodeResourcesFit, Licenses), WANTING)

    assert [(near_node.node, [(lack.resource, lack.short) for lack in near_node.lacks]) for near_node in near] == [
        ("two", [("licenses", "3")]),
        ("none", [("licenses", "5")]),
        ("three", [("cpu", "1"), ("licenses", "2")]),
    ]
    assert [(fix.kind, fix.text, fix.opens, fix.nodes) for fix in fixes] == [
        ("other", "do with 2 licenses", 1, ("two",))
    ]


def test_changes_that_several_plugins_suggest_are_made_together_where_none_helps_alone() -> None:
    snapshot = make_snapshot(make_node("three").capacity(cpu=1).label({FREE: "3"}))

    _, fixes = explained(make_framework(NodeResourcesFit, Licenses), WANTING, snapshot)

    assert [(fix.text, fix.opens) for fix in fixes] == [("ask for 1 of cpu instead of 2, and do with 3 licenses", 1)]


def test_a_plugin_that_fails_to_advise_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The answer has what the others advise, and the log the reason."""
    near, fixes = explained(make_framework(NodeResourcesFit, Failing), WANTING)

    assert [(near_node.node, [lack.resource for lack in near_node.lacks]) for near_node in near] == [
        ("none", []),
        ("two", []),
        ("three", ["cpu"]),
    ]
    assert fixes == ()
    assert "no shortages today" in caplog.text
    assert "no suggestions today" in caplog.text
