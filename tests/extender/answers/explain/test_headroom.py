"""What a node is short of, as Kubernetes writes it."""

import pytest

from extender.answers.explain.headroom import Headroom, as_quantity, resource_of
from extender.answers.phrases import in_words, noun
from extender.answers.types import Lack
from extender.runtime.nominations import NO_NOMINATIONS, Nominations
from extender.testing import make_cache, make_node, make_pod, make_snapshot

GI = 1024**3


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        pytest.param("cpu", 2000, "2", id="whole cores"),
        pytest.param("cpu", 1500, "1500m", id="millicores"),
        pytest.param("cpu", -200, "-200m", id="more is promised than there is"),
        pytest.param("cpu", 0, "0", id="nothing"),
        pytest.param("memory", 64 * GI, "64Gi", id="memory in powers of two"),
        pytest.param("memory", -GI, "-1Gi", id="below zero, too"),
        pytest.param("memory", 1000, "1k", id="too little for that"),
        pytest.param("ephemeral-storage", 3 * GI, "3Gi", id="storage"),
        pytest.param("hugepages-2Mi", 4 * 1024**2, "4Mi", id="huge pages"),
        pytest.param("example.com/gpu", 3, "3", id="things that are counted"),
        pytest.param("pods", 110, "110", id="pods"),
    ],
)
def test_amounts_are_written_as_canonical_quantities(resource: str, amount: int, text: str) -> None:
    assert as_quantity(resource, amount) == text


@pytest.mark.parametrize(
    ("resource", "quantity", "words"),
    [
        ("cpu", "60100m", "60.1"),
        ("cpu", "-50m", "-0.05"),
        ("cpu", "3", "3"),
        ("cpu", "10", "10"),
        ("cpu", "1k", "1000"),
        ("memory", "1500Mi", "1500Mi"),
        ("example.com/gpu", "10", "10"),
    ],
)
def test_people_read_cpu_in_cores(resource: str, quantity: str, words: str) -> None:
    assert in_words(resource, quantity) == words


@pytest.mark.parametrize(("resource", "short", "word"), [("pods", "1", "pod"), ("pods", "2", "pods"), ("cpu", "1", "cpu")])
def test_one_pod_is_one(resource: str, short: str, word: str) -> None:
    assert noun(Lack(resource=resource, asks=short, free="0", short=short)) == word


@pytest.mark.parametrize(
    ("reason", "resource"),
    [
        ("Insufficient cpu", "cpu"),
        ("Insufficient example.com/gpu", "example.com/gpu"),
        ("Too many pods", "pods"),
        ("node(s) were unschedulable", ""),
    ],
)
def test_a_reason_names_the_resource_it_is_about(reason: str, resource: str) -> None:
    assert resource_of(reason) == resource


def test_a_lack_is_what_is_asked_for_beyond_what_is_free() -> None:
    snapshot = make_snapshot(make_node("a").capacity(cpu=4), pods=[make_pod("p").req(cpu="2500m").node("a")])

    assert Headroom(snapshot, make_pod().req(cpu=2).obj(), NO_NOMINATIONS).lack("cpu", 0) == Lack(
        resource="cpu", asks="2", free="1500m", short="500m"
    )


def test_a_resource_that_no_node_has_is_short_by_all_of_it() -> None:
    snapshot = make_snapshot(make_node("a").capacity(cpu=4))

    assert Headroom(snapshot, make_pod().req({"example.com/gpu": 2}).obj(), NO_NOMINATIONS).lack("example.com/gpu", 0) == Lack(
        resource="example.com/gpu", asks="2", free="0", short="2"
    )


def test_the_number_of_pods_is_a_resource_of_its_own() -> None:
    snapshot = make_snapshot(make_node("a").capacity(cpu=4, pods=1), pods=[make_pod("p").node("a")])

    assert Headroom(snapshot, make_pod().obj(), NO_NOMINATIONS).lack("pods", 0) == Lack(resource="pods", asks="1", free="0", short="1")


def test_room_that_is_promised_to_a_pod_that_goes_first_is_not_free() -> None:
    cache = make_cache(make_node("a").capacity(cpu=4))
    first = make_pod("first").req(cpu=3).priority(5).obj()
    nominations = Nominations({"a": ((cache.nominate(first), first),)})
    snapshot = cache.update_snapshot()

    assert Headroom(snapshot, make_pod().req(cpu=2).priority(5).obj(), nominations).free("cpu").tolist() == [1000]
    assert Headroom(snapshot, make_pod().req(cpu=2).priority(6).obj(), nominations).free("cpu").tolist() == [4000]
