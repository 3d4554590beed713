"""How many nodes `who-preempted` says could have been chosen."""

from rich.console import Console

from api.cli.who_preempted import print_preemption
from extender.answers.parts import CandidateNode, PodName
from extender.answers.stories import Preemption
from tests.kit.tables import cases


def preempted_on(node: str, names: list[str], num_candidates: int) -> str:
    candidates = tuple(CandidateNode(node=name, victims=(), num_pdb_violations=0, why_not="") for name in names)
    preemptor = PodName(namespace="shop", name="urgent", priority=9)
    preemption = Preemption(
        id=1, time="2026-01-01T00:00:00Z", by=preemptor, node=node, victims=(), num_pdb_violations=0,
        candidates=candidates, num_candidates=num_candidates,
    )  # fmt: skip
    console = Console(record=True, width=200)
    print_preemption(console, preemption, wide=False)
    return console.export_text()


@cases(
    "node, names, num_candidates, expected",
    ("there was no choice", "a", ["a"], 1, ""),
    ("one of three", "a", ["a", "b", "c"], 3, "Other candidates: 2 nodes"),
    ("the best are kept", "a", ["a", "b"], 12, "Other candidates: 11 nodes"),
    ("another scheduler chose a node that was none of them", "x", ["a", "b"], 2, "Other candidates: 2 nodes"),
    ("it chose one that was not kept", "x", ["a", "b"], 12, "Other candidates: 11 nodes"),
    ("nothing is chosen yet", "", ["a", "b"], 2, "Other candidates: 2 nodes"),
    ("none is kept", "a", [], 5, "4 other nodes could have been chosen"),
)
def test_the_node_that_was_chosen_is_no_rival(node: str, names: list[str], num_candidates: int, expected: str) -> None:
    words = preempted_on(node, names, num_candidates)

    assert expected in words
    assert expected or "candidates" not in words
