"""What evaluate() hands over as a value; that it says what the scheduler would is held by the parity cases."""

import asyncio

from extender.engine.evaluation.evaluate import evaluate
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.testing import make_framework, make_node, make_pod, make_snapshot


def test_an_evaluation_is_not_written_out_by_accident() -> None:
    """asyncio asks a finished task for the text of its result, and that of a large cluster takes seconds."""
    snapshot = make_snapshot(*(make_node(f"node-{place}").capacity(cpu=4, pods=110) for place in range(50)))
    evaluation = asyncio.run(evaluate(Cycle(make_framework(), snapshot, make_pod().obj(), NO_NOMINATIONS)))

    assert len(evaluation.feasible) == 50
    assert len(repr(evaluation)) < 100
