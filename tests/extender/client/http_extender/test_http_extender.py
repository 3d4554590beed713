"""Whom an extender is asked about, and what of its answers is believed."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from extender.client.http_extender import HTTPExtender, reads_whole
from extender.engine.framework import Candidate, ExtenderError
from extender.testing import PodBuilder, make_cache, make_node, make_pod
from extender.values.config.configuration import Extender, ExtenderManagedResource


def answering(value: Any, **options: Any) -> HTTPExtender:
    verbs: dict[str, Any] = {
        "filter_verb": "filter",
        "preempt_verb": "preempt",
        "bind_verb": "bind",
        "prioritize_verb": "prioritize",
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=value))
    return HTTPExtender(Extender(url_prefix="http://e/", **(verbs | options)), transport)


GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("managed", "pod", "is_interested"),
    [
        pytest.param([], make_pod(), True, id="manages nothing in particular"),
        pytest.param([GPU], make_pod().req(cpu=1), False, id="asks for nothing of it"),
        pytest.param([GPU], make_pod().req(**{GPU: 1}), True, id="asks for it"),
        pytest.param([GPU], make_pod().req(**{GPU: 0}), True, id="asks for none of it"),
        pytest.param(
            [GPU, "example.com/fan"], make_pod().req(**{"example.com/fan": 1}), True, id="asks for one of two"
        ),
        pytest.param([GPU], make_pod().overhead(**{GPU: 1}), False, id="overhead does not count"),
    ],
)
def test_pods_of_interest(managed: list[str], pod: PodBuilder, is_interested: bool) -> None:
    extender = answering({}, managed_resources=tuple(map(ExtenderManagedResource, managed)))

    assert extender.is_interested(pod.obj()) is is_interested


def preempted(value: Any) -> list[Candidate]:
    pods = [make_pod("on-a").node("a").obj(), make_pod("on-b").node("b").obj()]
    cache = make_cache(make_node("a"), make_node("b"), pods=pods)
    promised = make_pod("promised").nominated_node("a").obj()
    cache.nominate(promised)
    answer = json.loads(
        json.dumps(value).replace("$promised", promised.uid).replace("$a", pods[0].uid).replace("$b", pods[1].uid)
    )
    extender = answering({"NodeNameToMetaVictims": answer})
    victims = [Candidate("a", (pods[0],), 0)]
    return asyncio.run(extender.process_preemption(make_pod("p").obj(), victims, cache.update_snapshot()))


def test_an_extender_may_name_other_victims_on_other_nodes() -> None:
    """As long as they are there."""
    (victims,) = preempted({"b": {"Pods": [{"UID": "$b"}], "NumPDBViolations": 3}})

    assert (victims.node, [pod.name for pod in victims.victims], victims.num_pdb_violations) == ("b", ["on-b"], 3)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        pytest.param({"x": {"Pods": [{"UID": "$a"}]}}, 'nodeinfo not found for node name "x"', id="unknown node"),
        pytest.param({"a": {"Pods": [{"UID": "$b"}]}}, "but the pod is not found on that node", id="on another node"),
        pytest.param(
            {"a": {"Pods": [{"UID": "nobody"}]}}, "claims to preempt pod (UID: &{nobody}) on node: a", id="unknown pod"
        ),
        pytest.param({"a": {"Pods": [{"UID": ""}]}}, "claims to preempt pod (UID: &{}) on node: a", id="no UID"),
        pytest.param(
            {"a": {"Pods": [{"UID": "$promised"}]}}, "but the pod is not found on that node", id="not there yet"
        ),
        pytest.param({"a": None}, "claims to preempt pods on node: a, but has null for them", id="null for victims"),
        pytest.param(
            {"a": {"Pods": [None]}}, "claims to preempt pods on node: a, but has null for them", id="null for a victim"
        ),
        pytest.param(
            {"a": {"Pods": [], "NumPDBViolations": -1}}, "claims -1 PDB violations on node: a", id="negative violations"
        ),
    ],
)
def test_victims_that_are_not_believed(value: Any, error: str) -> None:
    with pytest.raises(ExtenderError) as caught:
        preempted(value)

    assert error in str(caught.value)


def test_extender_without_filter_verb_passes_all_nodes() -> None:
    nodes = [make_node("a").obj()]

    filtered = asyncio.run(answering({"Error": "no"}, filter_verb="").filter(make_pod().obj(), nodes))

    assert (filtered.nodes, filtered.failed, filtered.failed_and_unresolvable) == (nodes, {}, {})


def test_extender_without_a_verb_is_not_called_for_it() -> None:
    cache = make_cache(make_node("a"))

    with pytest.raises(ExtenderError, match="unexpected empty bindVerb in extender"):
        asyncio.run(answering({}, bind_verb="").bind(make_pod().obj(), "a"))
    with pytest.raises(
        ExtenderError, match="preempt verb is not defined for extender http://e/ but run into ProcessPreemption"
    ):
        asyncio.run(answering({}, preempt_verb="").process_preemption(make_pod().obj(), [], cache.update_snapshot()))
    assert asyncio.run(answering({}, prioritize_verb="").prioritize(make_pod().obj(), [])) == []


@pytest.mark.parametrize(
    ("extenders", "remembered"),
    [
        ([], []),
        ([Extender(url_prefix="e", filter_verb="f", preempt_verb="p", node_cache_capable=True)], ["waiting"]),
        ([Extender(url_prefix="e", prioritize_verb="p")], ["waiting", "node"]),
        ([Extender(url_prefix="e", preempt_verb="p")], ["waiting", "bound"]),
        ([Extender(url_prefix="e", bind_verb="b")], ["waiting"]),
    ],
    ids=["no extender", "one that knows the nodes", "one that gets nodes", "one that gets victims", "one that binds"],
)
def test_informers_remember_no_more_than_extenders_get(extenders: list[Extender], remembered: list[str]) -> None:
    is_whole = reads_whole(extenders)
    objects = [make_pod("waiting").obj(), make_pod("bound").node("n").obj(), make_node("node").obj()]

    assert [obj.name for obj in objects if is_whole(obj)] == remembered
