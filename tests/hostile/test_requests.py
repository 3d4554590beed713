"""The doors of requests: bodies of the verbs, questions, what is written to the cluster of its own, and connections.
Whatever a caller sends is answered, and so are the others meanwhile.

Tokens that nobody knows, and handshakes that do not come to an end: `tests/api/test_access.py` and
`tests/api/test_tls_handshakes.py`. Bodies that are no JSON or too large: `tests/api/test_bad_input.py` and
`tests/api/test_limits.py`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.api.raw_http import connected, head
from tests.api.test_hang_up import replicas
from tests.api.test_questions import pod
from tests.hostile.attacks import BEYOND, PODS, Object, hostile_pod, nodes, shop
from tests.hostile.test_objects import IN_SHOP, dump, why_not
from tests.kit.service import Service, serving

NUM_NODES, NUM_PODS = 1000, 3000
ASKED = pod("asked", "100m")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A thousand nodes with three pods each; nobody decides."""
    running = [pod(f"web-{number}", "1", nodeName=f"node-{number % NUM_NODES}") for number in range(NUM_PODS)]
    state = dump(tmp_path_factory.mktemp("large"), shop(*nodes(NUM_NODES), *running))
    with serving(state=state, schedule=False) as service:
        yield service


def answers_others(service: Service) -> bool:
    """Whether a probe and a filter call are answered as if nobody else asked."""
    return service.client.get("/livez").status_code == 200 and why_not(service, ASKED, "node-0") == (200, "")


# Verbs.


@pytest.mark.parametrize("in_full", [False, True], ids=["by UID", "in full"])
def test_a_preemption_with_victims_on_every_node_is_answered(in_full: bool, large: Service) -> None:
    running = large.client.get(IN_SHOP).json()["items"]
    victims: dict[str, Object] = {}
    for obj in running:
        node_victims = victims.setdefault(obj["spec"]["nodeName"], {"Pods": [], "NumPDBViolations": 0})
        node_victims["Pods"].append(obj if in_full else {"UID": obj["metadata"]["uid"]})
    candidates = {"NodeNameToVictims" if in_full else "NodeNameToMetaVictims": victims}

    answer = large.call("preempt", {"Pod": pod("urgent", "4", priority=100), **candidates})

    assert len(answer.json()["NodeNameToMetaVictims"]) == NUM_NODES
    assert answers_others(large)


def test_calls_with_unknown_nodes_in_full_are_answered(large: Service) -> None:
    """Every call has other nodes."""
    calls = [[obj | {"metadata": {"name": f"{turn}-{key}"}} for key, obj in enumerate(nodes(3000))] for turn in (0, 1)]

    lists = [large.call("filter", {"Pod": ASKED, "Nodes": {"items": unknown}}).json()["Nodes"] for unknown in calls]

    assert [len(node_list["items"]) for node_list in lists] == [3000, 3000]
    assert answers_others(large)


# Questions.


@pytest.mark.parametrize(
    ("path", "question", "codes"),
    [
        pytest.param("/v1/whatif", {"create": [replicas(1_000_000)]}, {413, 422}, id="a million pods"),
        pytest.param(
            "/v1/capacity", hostile_pod("p", PODS["resources"](BEYOND)), {200}, id="a pod that demands too much"
        ),
        pytest.param(
            "/v1/evaluate", {"pod": {}, "objects": {"nodes": [1] * 4_000_000}}, {413, 422}, id="millions of tiny values"
        ),
        pytest.param(
            "/v1/whatif",
            {
                "create": [ASKED],
                "configuration": {"profiles": [{"schedulerName": f"s{number}"} for number in range(10_000)]},
            },
            {422},
            id="a configuration of ten thousand profiles",
        ),
    ],
)
def test_a_question_that_asks_too_much_is_refused_or_answered(
    path: str, question: object, codes: set[int], large: Service
) -> None:
    answer = large.post(path, question)

    assert answer.status_code in codes, answer.text[:500]
    assert answers_others(large)


def test_other_requests_are_answered_while_questions_run(large: Service) -> None:
    """More of them than may wait. Their callers hang up in the end."""
    body = json.dumps({"create": [replicas(5000)]}).encode()
    question = head("/v1/whatif", Content_Length=len(body)) + body

    with ExitStack() as callers:
        for _ in range(12):
            callers.enter_context(connected(large.port)).send(question)
        answered = [answers_others(large) for _ in range(5)]

    assert all(answered)


# The API of the cluster of its own.


@pytest.mark.parametrize("attack", ["anti-affinity", "containers"])
def test_a_pod_that_demands_much_is_written_in_every_way(attack: str, large: Service) -> None:
    evil = hostile_pod("evil", PODS[attack](BEYOND // 4))
    del evil["spec"]["priority"]
    created, applied = json.dumps(evil).encode(), json.dumps({**evil, "apiVersion": "v1", "kind": "Pod"}).encode()
    path = f"{IN_SHOP}/evil"

    def code(method: str, where: str, media_type: str, body: bytes) -> int:
        headers = {"content-type": f"application/{media_type}"}
        return large.client.request(method, where, content=body, headers=headers).status_code

    codes = [code("POST", IN_SHOP, "json", created)]
    stored = large.client.get(path).json()
    stored["metadata"]["labels"]["app"] = "another"
    codes += [
        code("PUT", path, "json", json.dumps(stored).encode()),
        code("PATCH", path, "merge-patch+json", b'{"metadata": {"labels": {"app": "third"}}}'),
        code("PATCH", path, "strategic-merge-patch+json", created),
        code("PATCH", f"{path}?fieldManager=tenant&force=true", "apply-patch+yaml", applied),
        code("DELETE", path, "json", b'{"gracePeriodSeconds": 0}'),
    ]

    assert codes == [201, 200, 200, 200, 200, 200]
    assert answers_others(large)


def test_an_object_that_is_too_large_is_refused(large: Service) -> None:
    evil = hostile_pod("evil", PODS["tolerations"](2**21))
    del evil["spec"]["priority"]

    refused = large.post(IN_SHOP, evil)

    assert (refused.status_code, refused.json()["message"]) == (500, "etcdserver: request is too large")
    assert answers_others(large)


LABELS = "labelSelector=" + ",".join(f"app!=web-{number}" for number in range(3000))


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(LABELS, id="labels"),
        pytest.param("fieldSelector=" + ",".join(["spec.nodeName!=none"] * 2000), id="fields"),
        pytest.param(f"watch=1&timeoutSeconds=1&{LABELS}", id="a watch"),
    ],
)
def test_a_selector_of_thousands_of_terms_selects(query: str, large: Service) -> None:
    answer = large.client.get(f"{IN_SHOP}?{query}")

    assert answer.status_code == 200
    assert len({*re.findall(r'"name":"(web-\d+)"', answer.text)}) == NUM_PODS
    assert answers_others(large)


# Connections.


@pytest.mark.parametrize(
    "beginning",
    [b"POST /extender/filter HTTP/1.1\r\nHost: localhost\r\n", head("/v1/whatif", Content_Length=1000) + b"{"],
    ids=["half a head", "half a body"],
)
def test_hundreds_of_stalled_connections_delay_no_other_request(beginning: bytes, large: Service) -> None:
    with ExitStack() as callers:
        for _ in range(300):
            callers.enter_context(connected(large.port)).send(beginning)

        assert answers_others(large)


def test_unread_answers_delay_no_other_request(large: Service) -> None:
    with ExitStack() as callers:
        for _ in range(50):
            callers.enter_context(connected(large.port)).send(head("/api/v1/pods", method="GET") * 4)

        assert answers_others(large)
