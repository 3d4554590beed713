"""What extenders say about nodes, in one cycle: who passes, what is told of the others, and what scores come to."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from extender.client.http_extender import HTTPExtender
from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.scheduler.extenders import (
    bound_by_extender,
    find_nodes_that_pass_extenders,
    schedule_pod_with_extenders,
    scores_of_extenders,
)
from extender.engine.scheduler.schedule_pod import FitError, ScheduleResult, SchedulingAlgorithm
from extender.engine.snapshot import Rows, Snapshot
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Extender, ExtenderManagedResource
from tests.extender.plugins_by_table import Refuses, Scores
from tests.kit.tables import cases

POD = make_pod("p")
UNKNOWN_NODE = {"Nodes": {"items": [{"metadata": {"name": "x"}}]}}

Says = Callable[[Any], Any]


def an_extender(says: Says, calls: list[Any] | None = None, **options: Any) -> HTTPExtender:
    """An extender that answers each call by what `says` makes of its arguments; a number is a status."""

    def answer(request: httpx.Request) -> httpx.Response:
        arguments = json.loads(request.content)
        if calls is not None:
            calls.append(arguments)
        reply = says(arguments)
        return httpx.Response(reply) if isinstance(reply, int) else httpx.Response(200, json=reply)

    verbs: dict[str, Any] = {"filter_verb": "filter", "prioritize_verb": "prioritize", "bind_verb": "bind"}
    defaults: dict[str, Any] = {"weight": 1, "node_cache_capable": True}
    return HTTPExtender(Extender(url_prefix="http://e", **(verbs | defaults | options)), httpx.MockTransport(answer))


def says(value: Any) -> Says:
    return lambda _: value


def scoring(*scores: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"Host": host, "Score": score} for host, score in scores]


def three_nodes() -> Snapshot:
    return make_snapshot(*map(make_node, ("a", "b", "c")))


def passing(*extenders: HTTPExtender, rows: Rows | None = None) -> tuple[list[str], Mapping[str, fwk.Status]]:
    passed, statuses = asyncio.run(find_nodes_that_pass_extenders(extenders, POD.obj(), rows or Rows.of(three_nodes())))
    return passed.names, statuses


def scores_of(*extenders: HTTPExtender) -> list[int]:
    scores: list[int] = asyncio.run(scores_of_extenders(extenders, POD.obj(), Rows.of(three_nodes()))).tolist()
    return scores


def test_the_nodes_come_in_the_order_of_the_extender_and_each_once() -> None:
    assert passing(an_extender(says({"NodeNames": ["c", "a", "c"]})))[0] == ["c", "a"]


def test_unresolvable_refusal_of_an_extender_outweighs_its_other_answers() -> None:
    answer = {
        "NodeNames": ["a"],
        "FailedNodes": {"a": "odd", "b": "no"},
        "FailedAndUnresolvableNodes": {"b": "never", "x": "?"},
    }

    names, statuses = passing(an_extender(says(answer)))

    assert names == ["a"]
    assert statuses == {"a": fwk.unschedulable("odd"), "b": fwk.unresolvable("never"), "x": fwk.unresolvable("?")}


def test_extenders_are_not_asked_when_no_node_is_left() -> None:
    calls: list[Any] = []

    names, _ = passing(an_extender(says({})), an_extender(says({"NodeNames": ["a"]}), calls))

    assert (names, calls) == ([], [])


def test_nodes_in_full_are_sent_and_come_back() -> None:
    """They are known by their names. Upstream would go on with what came back, and without the pods on it."""
    calls: list[Any] = []
    back = {"Nodes": {"items": [{"metadata": {"name": "b", "labels": {"made": "up"}}}]}, "NodeNames": ["a"]}

    names, _ = passing(an_extender(says(back), calls, node_cache_capable=False))

    assert names == ["b"]
    assert calls[0]["NodeNames"] is None
    assert [node["metadata"]["name"] for node in calls[0]["Nodes"]["items"]] == ["a", "b", "c"]


@cases(
    "extender",
    ("by name", an_extender(says({"NodeNames": ["x"]}), ignorable=True)),
    ("in full", an_extender(says(UNKNOWN_NODE), node_cache_capable=False, ignorable=True)),
    ("fails", an_extender(says(503), ignorable=True)),
)
def test_an_ignorable_extender_that_goes_wrong_changes_nothing(extender: HTTPExtender) -> None:
    assert passing(extender) == (["a", "b", "c"], {})


def test_extender_that_invents_nodes_fails() -> None:
    with pytest.raises(fwk.ExtenderError) as caught:
        passing(an_extender(says(UNKNOWN_NODE), node_cache_capable=False))

    why = 'claims a filtered node "x" which is not found in the input node list'
    assert str(caught.value) == f'extender "http://e" {why}'


def test_scores_are_weighed_and_brought_to_the_scale_of_plugins() -> None:
    """All entries of a node count, and those of unknown nodes do not."""
    first = an_extender(says(scoring(("a", 10), ("b", 1), ("b", 2))), weight=5)
    second = an_extender(says(scoring(("c", 1), ("x", 10))), weight=2)
    not_asked = an_extender(says(500), prioritize_verb="")

    assert scores_of(first, second, not_asked) == [500, 150, 20]


def test_scores_that_do_not_fit_wrap_as_in_go() -> None:
    extender = an_extender(says(scoring(("a", 10))), weight=2**60)

    assert scores_of(extender) == [((100 * 2**60 + 2**63) % 2**64) - 2**63, 0, 0]


@pytest.mark.parametrize("score", [11, 50, 100, -3, 2**63 - 1, -(2**63)])
def test_scores_beyond_what_the_protocol_asks_for_count_and_are_warned_of_once(
    score: int, caplog: pytest.LogCaptureFixture
) -> None:
    extender = an_extender(says(scoring(("b", 1), ("a", score))), weight=3)

    for _ in range(3):
        scores = scores_of(extender)
        assert scores == [((score * 30 + 2**63) % 2**64) - 2**63, 30, 0]

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert f"http://e gives node a the score {score}; it is used unchanged" in warnings[0]


def test_scores_of_an_extender_that_fails_are_complained_about_once(caplog: pytest.LogCaptureFixture) -> None:
    extender = an_extender(says(scoring(("a", 0.5))))

    for _ in range(3):
        scores = scores_of(extender)
        assert scores == [0, 0, 0]

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "http://e: json: cannot unmarshal number" in warnings[0]


def scheduled(pod: PodBuilder, *extenders: HTTPExtender, plugins: tuple[fwk.Plugin, ...] = ()) -> ScheduleResult:
    cycle = Cycle(make_framework(*plugins), three_nodes(), pod.obj())
    return asyncio.run(schedule_pod_with_extenders(SchedulingAlgorithm(), extenders, cycle, 0))


def test_extenders_outweigh_plugins_if_their_weight_does() -> None:
    extender = an_extender(lambda arguments: scoring(("c", 10)), filter_verb="", weight=2)

    assert scheduled(POD, extender, plugins=(Scores("fit", {"a": 100, "b": 50, "c": 0}),)) == ScheduleResult("c", 3, 3)


def test_nominated_node_is_passed_to_extenders_alone_first() -> None:
    calls: list[Any] = []
    extender = an_extender(lambda arguments: {"NodeNames": arguments["NodeNames"]}, calls)

    assert scheduled(POD.nominated_node("b"), extender) == ScheduleResult("b", 1, 1)
    assert [arguments["NodeNames"] for arguments in calls] == [["b"]]


@pytest.mark.parametrize("says_of_b", [{"NodeNames": []}, {"Error": "hm"}], ids=["refused", "failed"])
def test_other_nodes_are_tried_when_extenders_refuse_the_nominated_one(says_of_b: Any) -> None:
    calls: list[Any] = []
    says_of_all = {"NodeNames": ["a"]}
    extender = an_extender(lambda arguments: says_of_b if arguments["NodeNames"] == ["b"] else says_of_all, calls)

    assert scheduled(POD.nominated_node("b"), extender) == ScheduleResult("a", 1, 3)
    assert [arguments["NodeNames"] for arguments in calls] == [["b"], ["a", "b", "c"]]


def test_the_diagnosis_holds_what_plugins_and_extenders_say() -> None:
    """The extender has the last word on a node. One that it drops without a word is refused for good, for no reason."""
    refusing = Refuses("full", {"a": fwk.unschedulable("full")})
    extender = an_extender(says({"NodeNames": [], "FailedNodes": {"a": "and ugly", "b": "ugly"}}))

    with pytest.raises(FitError) as caught:
        scheduled(POD, extender, plugins=(refusing,))

    assert str(caught.value) == "0/3 nodes are available: 1 and ugly, 1 ugly."
    diagnosis = caught.value.diagnosis
    assert diagnosis.unschedulable_plugins == {"full", "Extender"}
    assert diagnosis.statuses.of("b") == fwk.unschedulable("ugly")
    assert diagnosis.statuses.of("c") == fwk.unresolvable()


def test_extenders_are_not_asked_when_plugins_leave_nothing() -> None:
    calls: list[Any] = []
    no = fwk.unschedulable("full")

    with pytest.raises(FitError) as caught:
        scheduled(POD, an_extender(says({}), calls), plugins=(Refuses("full", dict.fromkeys("abc", no)),))

    assert calls == []
    assert caught.value.diagnosis.unschedulable_plugins == {"full"}


def bound(*extenders: HTTPExtender) -> fwk.Status | None:
    return asyncio.run(bound_by_extender(extenders, make_pod("p").obj(), "a"))


def test_first_extender_with_a_bind_verb_gets_pod_and_node() -> None:
    calls: list[Any] = []
    pod = make_pod("p").namespace("web").obj()

    extenders = [an_extender(says(500), bind_verb=""), an_extender(says({}), calls)]
    status = asyncio.run(bound_by_extender(extenders, pod, "a"))

    assert status == fwk.SUCCESS
    assert calls == [{"PodName": "p", "PodNamespace": "web", "PodUID": pod.uid, "Node": "a"}]


def test_a_binder_is_asked_for_pods_of_its_resources_only() -> None:
    calls: list[Any] = []
    binder = an_extender(says({}), calls, managed_resources=(ExtenderManagedResource("example.com/gpu"),))

    status = asyncio.run(bound_by_extender([binder], POD.obj(), "a"))
    of_its_resource = asyncio.run(bound_by_extender([binder], POD.req({"example.com/gpu": "1"}).obj(), "a"))

    assert (status, of_its_resource, len(calls)) == (None, fwk.SUCCESS, 1)


def test_an_error_of_the_binder_is_the_error_of_the_binding() -> None:
    assert bound(an_extender(says({"Error": "node is on fire"}))) == fwk.error("node is on fire")


def test_an_ignorable_binder_that_fails_leaves_it_to_the_others() -> None:
    frail = an_extender(says({"Error": "no"}), ignorable=True)

    assert bound(frail) is None
    assert bound(frail, an_extender(says({}))) == fwk.SUCCESS


def test_extender_does_not_bind_when_writing_is_not_allowed() -> None:
    calls: list[Any] = []
    binder = an_extender(says({}), calls, ignorable=True)

    status = asyncio.run(bound_by_extender([binder], POD.obj(), "a", lambda: "the lease is lost"))

    assert status == fwk.error("the lease is lost")
    assert calls == []


def test_an_array_of_no_extenders_scores_nothing() -> None:
    assert scores_of() == [0, 0, 0]
