"""Requests to the API server are counted as kube-scheduler's dashboards expect."""

from collections.abc import Iterator

import httpx
import pytest

from extender.client import errors
from extender.client.request_metrics import ATTEMPTS, request_metrics
from tests.extender.client.scripted import Scripted, answer, refusal, stream
from tests.extender.client.test_client import BINDING, PODS, client_of

HOST = "k8s.example:6443"


@pytest.fixture(autouse=True)
def _nothing_counted() -> Iterator[None]:
    ATTEMPTS.clear()
    yield
    ATTEMPTS.clear()


def durations() -> dict[tuple[str, str], float]:
    """Requests that were timed, by verb and host."""
    return {
        (sample.labels["verb"], sample.labels["host"]): sample.value
        for metric in request_metrics()
        for sample in metric.samples
        if sample.name == "rest_client_request_duration_seconds_count"
    }


async def test_each_repetition_is_counted_by_its_status_and_all_of_them_are_timed_as_one_request() -> None:
    timed_before = durations().get(("POST", HOST), 0.0)
    server = Scripted(refusal(429, "TooManyRequests", retry_after="1"), answer(201))

    await client_of(server).create(BINDING, {})

    assert dict(ATTEMPTS) == {("429", "POST", HOST): 1, ("201", "POST", HOST): 1}
    assert durations()["POST", HOST] == timed_before + 1


async def test_a_request_without_an_answer_is_counted_as_an_error() -> None:
    with pytest.raises(errors.Unreachable):
        await client_of(Scripted(httpx.ConnectError("refused"))).create(BINDING, {})

    assert dict(ATTEMPTS) == {("<error>", "POST", HOST): 1}


async def test_a_watch_is_counted_and_not_timed() -> None:
    timed_before = durations()
    client = client_of(Scripted(stream(b'{"a":1}\n')))

    async with client.watch(PODS, params={"watch": "1"}, silence=90) as lines:
        [line async for line in lines]

    assert dict(ATTEMPTS) == {("200", "GET", HOST): 1}
    assert durations() == timed_before
