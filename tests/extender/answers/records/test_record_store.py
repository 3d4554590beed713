"""However much comes, what is kept stays within its limits; what is oldest goes first, and details before what they
belong to.
"""

import numpy as np
from hypothesis import given, settings, strategies as st

from extender.answers.records.arrays import Details, KeptScores, KeptVerdicts, NodeNames, packed
from extender.answers.records.record_store import Limits, RecordStore
from extender.answers.records.values import (
    AttemptRecord,
    CandidateRecord,
    PodName,
    PreemptionRecord,
    Victim,
    size_of_attempt,
    size_of_preemption,
)
from tests.kit.examples import examples

LIMITS = Limits(attempts=6, preemptions=3, attempts_of_a_pod=2, size=20_000)


def attempt(number: int, pod: str = "", message: str = "") -> AttemptRecord:
    who = PodName("default", pod or f"p{number}", pod or f"uid-{number}")
    return AttemptRecord(number, 0.0, who, "profile", "Unschedulable", message=message)


def preemption(number: int, *victims: str, by: str = "high") -> PreemptionRecord:
    leaving = tuple(Victim(PodName("default", victim)) for victim in victims)
    return PreemptionRecord(
        number, 0.0, PodName("default", by, by), "n", leaving, candidates=(CandidateRecord("n", leaving, 0),)
    )


def names(store: RecordStore, count: int) -> NodeNames:
    return store.naming.of({f"node-{number}": number for number in range(count)})


def scores(num_nodes: int) -> Details:
    zeros = np.zeros((3, num_nodes), np.int64)
    return Details(scores=KeptScores(("node",) * num_nodes, zeros[0], (("A", 1), ("B", 2), ("C", 3)), zeros, zeros))


def verdicts(nodes: NodeNames) -> Details:
    nothing = packed(np.zeros(len(nodes.names), np.bool_))
    return Details(KeptVerdicts(nodes, len(nodes.names), None, (("Fit", nothing),), (("no room", nothing),), nothing))


def kept(store: RecordStore, pod: str | None = None) -> list[int]:
    return [each.record.id for each in store.attempts(pod, None, None)]


def test_the_oldest_attempt_goes_when_there_are_too_many() -> None:
    store = RecordStore(LIMITS)
    store.put(attempt(number) for number in range(1, 9))

    assert kept(store) == [8, 7, 6, 5, 4, 3]
    assert store.oldest == 3


def test_attempts_of_one_pod_displace_only_its_own() -> None:
    store = RecordStore(LIMITS)
    store.put(attempt(number, "quiet") for number in (1, 2))
    store.put(attempt(number, "hot") for number in range(3, 50))

    assert kept(store, "default/quiet") == [2, 1]
    assert kept(store, "default/hot") == [49, 48]


def test_details_go_before_the_attempt() -> None:
    store = RecordStore(LIMITS)
    for number in range(1, 5):
        store.put_details(number, scores(100))
        store.put([attempt(number)])

    assert [(each.record.id, each.details is not None) for each in store.attempts(None, None, None)] == [
        (4, True), (3, False), (2, False), (1, False),
    ]  # fmt: skip


def test_shared_names_count_once_while_any_details_use_them() -> None:
    store = RecordStore(Limits())
    nodes = names(store, 100)
    empty = store.size
    store.put_details(1, verdicts(nodes))
    with_one = store.size
    store.put_details(2, verdicts(nodes))

    assert empty == 0
    assert with_one - nodes.size == store.size - with_one == verdicts(nodes).size
    store.put_details(1, Details())
    store.put_details(2, Details())
    assert store.size == 2 * Details().size


def test_the_last_preemption_for_a_pod() -> None:
    store = RecordStore(LIMITS)
    store.put_preemption(preemption(1, "a", by="high"))
    store.put_preemption(preemption(2, "b", by="high"))

    found = store.last_preemption_for("high")
    assert found is not None
    assert found.id == 2
    for number in range(3, 6):
        store.put_preemption(preemption(number, "c", by="other"))
    assert store.last_preemption_for("high") is None


steps = st.one_of(
    st.tuples(st.just("attempt"), st.integers(0, 4), st.integers(0, 3000)),
    st.tuples(st.just("scores"), st.integers(1, 3), st.integers(1, 1500)),
    st.tuples(st.just("verdicts"), st.integers(1, 3), st.integers(1, 1500)),
    st.tuples(st.just("preemption"), st.integers(0, 4), st.integers(0, 20)),
    st.tuples(st.just("change"), st.integers(0, 8), st.integers(0, 3000)),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(steps, max_size=60))
def test_any_sequence_of_records_stays_within_the_limits(taken: list[tuple[str, int, int]]) -> None:
    """
    And is measured rightly: what is counted is what there is.
    """
    store, number, indexes = RecordStore(LIMITS), 1, dict[int, dict[str, int]]()
    for what, which, size in taken:
        match what:
            case "attempt":
                store.put([attempt(number, f"pod-{which}", "x" * size)])
                number += 1
            case "scores" | "verdicts":
                nodes = store.naming.of(indexes.setdefault(size, {f"n{place}": place for place in range(size)}))
                store.put_details(number, scores(len(nodes.names)) if what == "scores" else verdicts(nodes))
            case "preemption":
                store.put_preemption(
                    preemption(number - which, *(f"victim-{each}" for each in range(size)), by=f"pod-{which}")
                )
            case "change":
                known = list(store.attempts(None, None, None))
                if known:
                    made = known[which % len(known)].record
                    store.change(attempt(made.id, made.pod.name, "y" * size))
        _check(store)


def _check(store: RecordStore) -> None:
    attempts, preemptions = list(store.attempts(None, None, None)), list(store.preemptions(None, None))
    assert len(attempts) <= LIMITS.attempts
    assert len(preemptions) <= LIMITS.preemptions
    assert store.size <= LIMITS.size
    assert store.size >= sum(size_of_attempt(each.record) for each in attempts) + sum(
        map(size_of_preemption, preemptions)
    )
    for each in {each.record.pod.key for each in attempts}:
        assert len(kept(store, each)) <= LIMITS.attempts_of_a_pod
