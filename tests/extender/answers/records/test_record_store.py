"""However much comes, what is kept stays within its limits; what is oldest goes first, and details before what they
belong to.
"""

from hypothesis import given, settings, strategies as st

from extender.answers.parts import PodName, Victim
from extender.answers.records.record_store import (
    AttemptRecord,
    CandidateRecord,
    Details,
    Limits,
    PreemptionRecord,
    RecordStore,
)
from extender.answers.types import NodeScore
from tests.kit.examples import examples

LIMITS = Limits(attempts=6, preemptions=3, attempts_of_a_pod=2, size=20_000)


def attempt(number: int, pod: str = "", message: str = "") -> AttemptRecord:
    who = PodName("default", pod or f"p{number}", pod or f"uid-{number}")
    return AttemptRecord(number, 0.0, who, "profile", "Unschedulable", message=message)


def preemption(number: int, *victims: str, preemptor: str = "high") -> PreemptionRecord:
    leaving = tuple(Victim(PodName("default", victim)) for victim in victims)
    candidates = (CandidateRecord("n", leaving, 0),)
    return PreemptionRecord(number, 0.0, PodName("default", preemptor, preemptor), "n", leaving, candidates=candidates)


def scores(num_nodes: int) -> Details:
    return Details(scores=tuple(NodeScore(node="node", total=number) for number in range(num_nodes)))


def verdicts(size: int) -> Details:
    return Details(picture=b"x" * size)


def attempt_ids(store: RecordStore, pod: str | None = None) -> list[int]:
    return [attempt.record.id for attempt in store.attempts(pod, None, None)]


def test_the_oldest_attempt_goes_when_there_are_too_many() -> None:
    store = RecordStore(LIMITS)
    store.put_attempts(attempt(number) for number in range(1, 9))

    assert attempt_ids(store) == [8, 7, 6, 5, 4, 3]
    assert store.oldest == 3


def test_attempts_of_one_pod_displace_only_its_own() -> None:
    store = RecordStore(LIMITS)
    store.put_attempts(attempt(number, "quiet") for number in (1, 2))
    store.put_attempts(attempt(number, "hot") for number in range(3, 50))

    assert attempt_ids(store, "default/quiet") == [2, 1]
    assert attempt_ids(store, "default/hot") == [49, 48]


def test_details_go_before_the_attempt() -> None:
    store = RecordStore(LIMITS)
    for number in range(1, 5):
        store.put_details(number, verdicts(12_000))
        store.put_attempts([attempt(number)])

    assert [(attempt.record.id, attempt.details is not None) for attempt in store.attempts(None, None, None)] == [
        (4, True), (3, False), (2, False), (1, False),
    ]  # fmt: skip


def test_replaced_details_count_once() -> None:
    store = RecordStore(Limits())
    store.put_details(1, verdicts(5000))
    with_one = store.size

    store.put_details(1, verdicts(5000))

    assert store.size == with_one >= 5000


def test_the_last_preemption_for_a_pod() -> None:
    store = RecordStore(LIMITS)
    store.put_preemption(preemption(1, "a", preemptor="high"))
    store.put_preemption(preemption(2, "b", preemptor="high"))

    last_preemption = store.last_preemption_for("high")
    assert last_preemption is not None
    assert last_preemption.id == 2
    for number in range(3, 6):
        store.put_preemption(preemption(number, "c", preemptor="other"))
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
def test_any_sequence_of_records_stays_within_the_limits(operations: list[tuple[str, int, int]]) -> None:
    """What is counted is at least what there is."""
    store, number = RecordStore(LIMITS), 1
    for what, which, size in operations:
        match what:
            case "attempt":
                store.put_attempts([attempt(number, f"pod-{which}", "x" * size)])
                number += 1
            case "scores" | "verdicts":
                store.put_details(number, scores(size) if what == "scores" else verdicts(8 * size))
            case "preemption":
                store.put_preemption(
                    preemption(number - which, *(f"victim-{index}" for index in range(size)), preemptor=f"pod-{which}")
                )
            case "change":
                attempts = list(store.attempts(None, None, None))
                if attempts:
                    record = attempts[which % len(attempts)].record
                    store.change(attempt(record.id, record.pod.name, "y" * size))
        _check(store)


def _check(store: RecordStore) -> None:
    attempts, preemptions = list(store.attempts(None, None, None)), list(store.preemptions(None))
    assert len(attempts) <= LIMITS.attempts
    assert len(preemptions) <= LIMITS.preemptions
    assert store.size <= LIMITS.size
    texts = [attempt.record.message for attempt in attempts]
    assert store.size >= sum(map(len, texts)) + sum(len(attempt.encoded) for attempt in attempts)
    for pod in {attempt.record.pod.key for attempt in attempts}:
        assert len(attempt_ids(store, pod)) <= LIMITS.attempts_of_a_pod
