"""Whoever misspells a parameter, or gives it a value that it cannot have, is told which, and what is allowed."""

import pytest

from tests.kit.service import Service, assert_is_refusal

NUMBER = "has to be a whole number from 1 to"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("preemptions?limit=abc", f"query: limit {NUMBER} 1000"),
        ("decisions?limit=0", f"query: limit {NUMBER} 1000"),
        ("decisions?limit=1001", f"query: limit {NUMBER} 1000"),
        ("decisions?before=soon", f"query: before {NUMBER} 9007199254740992"),
        ("decisions/abc", f"path: id {NUMBER} 9007199254740992"),
        ("decisions?pod=web", "query: pod has to be namespace/name of a pod"),
        ("capacity", "query: pod is required: namespace/name of a pod"),
        ("capacity?pod=a/b&limit=-1", f"query: limit {NUMBER} 100000"),
        ("explain/shop/web-0?picture=maybe", "query: picture has to be true or false"),
        (f"explain/shop/{'x' * 254}", "path: pod has to be 1 to 253 characters"),
        ("preemptions?limit=0&pod=x", f"query: pod has to be namespace/name of a pod; query: limit {NUMBER} 1000"),
    ],
)
def test_invalid_parameter_is_refused_with_its_allowed_values(example: Service, path: str, words: str) -> None:
    response = example.client.get(f"/v1/{path}")

    assert_is_refusal(response, 400)
    assert response.json()["message"] == words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("decisions?lmit=1", "query: there is no parameter 'lmit'; this path takes pod, limit, before"),
        ("queue?limit=1", "query: there is no parameter 'limit'; this path takes none"),
        ("cluster?node=a", "query: there is no parameter 'node'; this path takes none"),
        ("stream?since=1", "query: there is no parameter 'since'; this path takes none"),
        (f"queue?{'x' * 100}", f"query: there is no parameter '{'x' * 64}'; this path takes none"),
    ],
)
def test_a_parameter_that_is_not_there_is_named(example: Service, path: str, words: str) -> None:
    response = example.client.get(f"/v1/{path}")

    assert_is_refusal(response, 400)
    assert response.json()["message"] == words


@pytest.mark.parametrize("path", ["whatif", "evaluate", "capacity", "plan"])
def test_questions_with_a_body_are_looked_at_as_well(example: Service, path: str) -> None:
    response = example.post(f"/v1/{path}?dryRun=All", b"{}")

    assert_is_refusal(response, 400)
    assert "'dryRun'" in response.json()["message"]


def test_kube_scheduler_may_add_what_it_likes(example: Service) -> None:
    """Its verbs answer as before whatever stands behind the question mark, as a server in Go would."""
    body = b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["node-a1"]}'

    assert example.post("/extender/filter?timeout=5s", body).status_code == 200
