"""The judge finds what must not happen, and accuses nobody of what cannot be known."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from bench.jepsen.checker import SETTLE_SECONDS, violations
from bench.jepsen.history import (
    CLIENT,
    LEASE,
    Began,
    Ended,
    Event,
    Happened,
    Healed,
    History,
    Listed,
    Record,
    Request,
    Seen,
    read,
    write,
)

NODE = Seen("n1", "node-uid", 5, cpu=1000)
FREE = Seen("p1", "u1", 12, cpu=500, phase="Pending")
BOUND = msgspec.structs.replace(FREE, version=13, node="n1")
SECOND = Seen("p2", "u2", 15, cpu=500, phase="Pending")
SECOND_BOUND = msgspec.structs.replace(SECOND, version=16, node="n1")


def listed(resource: str, *objects: Seen, version: int = 10) -> Listed:
    return Listed(0.1, 0, "witness", resource, version, [*objects])


def event(resource: str, sight: Seen, kind: str = "MODIFIED", watch: int = 1) -> Event:
    return Event(sight.version / 10, 0, "witness", resource, watch, 10, kind, sight)


def lease(who: str, holder: str, version: int) -> list[Record]:
    request = Request(
        version / 10, version / 10, 0, who, "update", "leases", name=LEASE, status=200, version=version, holder=holder
    )
    return [request, event("leases", Seen(LEASE, "lease-uid", version, holder=holder), watch=2)]


def created(sight: Seen) -> list[Record]:
    time = sight.version / 10
    return [
        Request(time, time, 0, CLIENT, "create", "pods", "", sight.name, sight.uid, 201, sight.version),
        event("pods", sight, "ADDED"),
    ]


def binding(who: str, sight: Seen, status: int = 201, time: float = 0.0) -> Request:
    time = time or sight.version / 10 - 0.05
    return Request(
        time, sight.version / 10, 0, who, "create", "pods", "binding", sight.name, sight.uid, status, node=sight.node
    )


@dataclass
class Told:
    """Two pods that are created and bound: the first one while a1 leads, the second one while b1 does."""

    began: list[Record] = field(
        default_factory=lambda: [Began(0, 0, []), listed("leases"), listed("pods"), listed("nodes", NODE)]
    )
    first_leads: list[Record] = field(default_factory=lambda: lease("a1", "A", 11))
    first: list[Record] = field(default_factory=lambda: created(FREE))
    first_binding: list[Record] = field(default_factory=lambda: [binding("a1", BOUND)])
    first_bound: list[Record] = field(default_factory=lambda: [event("pods", BOUND)])
    second_leads: list[Record] = field(default_factory=lambda: lease("b1", "B", 14))
    second: list[Record] = field(default_factory=lambda: created(SECOND))
    second_binding: list[Record] = field(default_factory=lambda: [binding("b1", SECOND_BOUND)])
    second_bound: list[Record] = field(default_factory=lambda: [event("pods", SECOND_BOUND)])
    more: list[Record] = field(default_factory=list)
    healed: float = 3.0
    ended: list[Record] = field(default_factory=lambda: [Ended(4.0, [BOUND, SECOND_BOUND], [NODE])])

    def history(self) -> History:
        """Returns all of it, in order."""
        bindings: list[list[Record]] = [self.first_leads, self.first, self.first_binding, self.first_bound]
        bindings += [self.second_leads, self.second, self.second_binding, self.second_bound]
        parts: list[list[Record]] = [self.began, *bindings, self.more, [Healed(self.healed)], self.ended]
        return [record for part in parts for record in part]


def test_two_pods_bound_one_after_the_other_are_no_violation() -> None:
    assert violations(Told().history()) == []


def elsewhere(sight: Seen, version: int, node: str) -> Seen:
    return msgspec.structs.replace(sight, version=version, node=node)


def at_the_end(pod: Seen, **changes: Any) -> Told:
    return Told(ended=[Ended(4.0, [BOUND, msgspec.structs.replace(pod, **changes)], [NODE])])


def gap() -> list[Record]:
    """Two watches, one of which does not show that p2 is bound."""
    return [
        event("pods", elsewhere(BOUND, number, "n1"), watch=watch)
        for watch, number in ((3, 12), (3, 13), (3, 15), (3, 18), (1, 18))
    ]


NOT_SAVED: list[Record] = [Began(2.5, 1, [SECOND_BOUND])]
ANOTHER_FILE: list[Record] = [Began(2.5, 1, [BOUND], forgets=True)]
OLD_VERSIONS: list[Record] = [Began(2.5, 1, []), Listed(2.6, 1, "witness", "pods", 9, [])]

WRONG: list[tuple[str, str, Callable[[], Told]]] = [
    ("moved_pods", "is on n2", lambda: Told(more=[event("pods", elsewhere(BOUND, 17, "n2"))])),
    ("moved_pods", "is on no node", lambda: Told(more=[event("pods", elsewhere(BOUND, 17, ""))])),
    ("moved_pods", "was bound 2 times", lambda: Told(more=[binding("b1", BOUND)])),
    ("moved_pods", "nobody has asked", lambda: Told(first_binding=[])),
    ("moved_pods", "for which nobody", lambda: Told(first_binding=[binding("a1", BOUND, status=409)])),
    ("rival_writers", "while b1 led", lambda: Told(second_binding=[binding("a1", SECOND_BOUND)])),
    ("rival_writers", "while nobody led", lambda: Told(first_leads=[])),
    ("lost_pods", "u1 is gone", lambda: Told(ended=[Ended(4.0, [SECOND_BOUND], [NODE])])),
    ("lost_pods", "u1 was not saved", lambda: Told(more=NOT_SAVED)),
    ("torn_files", "and the file was", lambda: Told(more=ANOTHER_FILE)),
    (
        "crowded_nodes",
        "1200 of 1000",
        lambda: Told(second_bound=[event("pods", msgspec.structs.replace(SECOND_BOUND, cpu=700))]),
    ),
    ("watch_errors", "skips [16]", lambda: Told(more=gap())),
    ("watch_errors", "shows [12, 13, 15, 16, 16]", lambda: Told(more=[event("pods", SECOND_BOUND)])),
    ("watch_errors", "and another one", lambda: Told(more=[event("pods", elsewhere(FREE, 12, "n2"), watch=3)])),
    (
        "watch_errors",
        "not what the changes before it make: ['p2']",
        lambda: Told(more=[listed("pods", BOUND, version=16)]),
    ),
    ("watch_errors", "the one before had 16", lambda: Told(more=OLD_VERSIONS)),
    ("unsettled", "nothing is said about it", lambda: at_the_end(SECOND)),
    ("unsettled", "could be on node n1", lambda: at_the_end(SECOND, reason="Unschedulable")),
    ("unsettled", "is being deleted", lambda: at_the_end(SECOND_BOUND, is_closed=True)),
    ("unsettled", "that took", lambda: Told(ended=[Ended(3.1 + SETTLE_SECONDS, [BOUND, SECOND_BOUND], [NODE])])),
    ("unsettled", "did not come to its end", lambda: Told(ended=[])),
    ("broken_processes", "Traceback", lambda: Told(more=[Happened(2.0, "a1: Traceback", broken=True)])),
]


@pytest.mark.parametrize(("check", "words", "story"), [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in WRONG])
def test_each_forbidden_history_is_a_violation(check: str, words: str, story: Callable[[], Told]) -> None:
    sentences = violations(story().history())

    assert any(sentence.startswith(f"{check}: ") and words in sentence for sentence in sentences), sentences


OF_THE_SERVER = Seen("apiserver-x", "its-uid", 12, holder="apiserver-x_1")
"""The lease by which an API server tells that it is there."""

RIGHT: list[tuple[str, Callable[[], Told]]] = [
    (
        "the lease of an API server names no replica",
        lambda: Told(first_leads=[*lease("a1", "A", 11), event("leases", OF_THE_SERVER, watch=2)]),
    ),
    (
        "nor does it in a list",
        lambda: Told(began=[Began(0, 0, []), listed("leases", OF_THE_SERVER), *Told().began[2:]]),
    ),
    ("a binding without an answer may have been done", lambda: Told(first_binding=[binding("a1", BOUND, status=0)])),
    ("a copy that was refused has done nothing", lambda: Told(more=[binding("b1", BOUND, status=409)])),
    (
        "a write that was on its way for longer than the old leader's lease may come after the new one's",
        lambda: Told(second_binding=[binding("a1", SECOND_BOUND, time=0.3)]),
    ),
    (
        "processes that do not get a processor cannot be judged by what they have not done yet",
        lambda: Told(ended=[Ended(400.0, [BOUND, SECOND], [NODE], is_starved=True)]),
    ),
    (
        "time in which processes wait for a processor does not count",
        lambda: Told(ended=[Ended(SETTLE_SECONDS + 10, [BOUND, SECOND_BOUND], [NODE], waited=10)]),
    ),
    (
        "pods that were deleted need not be there",
        lambda: Told(
            more=[
                Request(2.0, 2.1, 0, CLIENT, "delete", "pods", "", "p1", "u1", 200),
                event("pods", msgspec.structs.replace(BOUND, version=20), "DELETED"),
            ],
            ended=[Ended(4.0, [SECOND_BOUND], [NODE])],
        ),
    ),
    (
        "pods that do not fit may wait, if they say so",
        lambda: Told(
            more=created(Seen("p3", "u3", 20, cpu=5000, phase="Pending")),
            ended=[Ended(4.0, [BOUND, SECOND_BOUND, Seen("p3", "u3", 20, cpu=5000, reason="Unschedulable")], [NODE])],
        ),
    ),
]


@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in RIGHT])
def test_each_permitted_history_is_no_violation(story: Callable[[], Told]) -> None:
    assert violations(story().history()) == []


def test_a_history_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    write(Told().history(), path)

    assert read(path) == Told().history()
