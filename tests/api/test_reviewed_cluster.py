"""A cluster whose API server knows its people is followed: each of them is shown the names that he may list there, and
nobody else any.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from api.app import create_app
from api.callers.access import TOKEN_COOKIE
from api.settings.settings import Settings
from extender.values import limits
from tests.api.in_process import reprieve
from tests.api.test_following import asking, readiness
from tests.kit.objects import state_file
from tests.kit.service import Service, assert_is_refusal, kubeconfig_for, serving, serving_app
from tests.kit.waiting import until

MAY_LIST = {"anna": {"shop"}, "admin": {""}, "guest": set[str]()}
"""User -> the namespaces whose pods he may list; "" is all of them."""
TOKENS = {"annas-token": "anna", "admins-token": "admin", "guests-token": "guest"}
ANSWERS = [
    "/v1/queue",
    "/v1/pending",
    "/v1/cluster",
    "/v1/cluster/node-0",
    "/v1/decisions",
    "/v1/preemptions",
    "/v1/explain/shop/urgent",
    "/",
]


class Reviews:
    """An API server that knows its people, before one that does not."""

    def __init__(
        self,
        server: ASGIApp,
        users: Mapping[str, str],
        may: Callable[[dict[str, Any]], bool],
        groups: Sequence[str] = (),
    ) -> None:
        self.server = server
        self.asked: list[dict[str, Any]] = []
        """The specs of the access reviews."""
        self._users = users
        self._may = may
        self._groups = groups

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if not path.endswith(("/tokenreviews", "/subjectaccessreviews")):
            await self.server(scope, receive, send)
            return
        spec = json.loads(await Request(scope, receive).body())["spec"]
        status: dict[str, object] = {"error": "no such token"}
        if path.endswith("/subjectaccessreviews"):
            self.asked.append(spec)
            status = {"allowed": self._may(spec)}
        elif user := self._users.get(spec["token"]):
            status = {"authenticated": True, "user": {"username": user, "groups": self._groups}}
        await JSONResponse({"status": status}, 201)(scope, receive, send)


def may_list(spec: dict[str, Any]) -> bool:
    attributes = spec["resourceAttributes"]
    assert (attributes["verb"], attributes["resource"], spec["groups"]) == ("list", "pods", ["people"])
    return attributes["namespace"] in MAY_LIST[spec["user"]]


@pytest.fixture(scope="module")
def follower(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """It follows the cluster with its default settings."""
    folder: Path = tmp_path_factory.mktemp("reviewed")
    settings = Settings(port=0, state=dump, schedule=False)
    with ExitStack() as stack:
        server = stack.enter_context(serving_app(Reviews(create_app(settings), TOKENS, may_list, ["people"]), settings))
        service = stack.enter_context(serving(kubeconfig=kubeconfig_for(server.port, folder)))
        until(lambda: readiness(service) == 200)
        until(lambda: "urgent" in ask(service, "/v1/queue", "admins-token").text)
        yield service


def ask(service: Service, path: str, token: str = "", cookie: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    cookies = {TOKEN_COOKIE: cookie} if cookie else {}
    return httpx.get(
        f"http://127.0.0.1:{service.port}{path}", headers=headers, cookies=cookies, trust_env=False, timeout=60
    )


@pytest.mark.parametrize("path", ANSWERS[:-1])
@pytest.mark.parametrize("token", ["", "stolen-token"])
def test_token_that_is_not_of_the_cluster_is_refused(follower: Service, path: str, token: str) -> None:
    answer = ask(follower, path, token)

    assert_is_refusal(answer, 401)
    assert answer.json()["reason"] == "Unauthorized"
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/v1/whatif", "/v1/plan", "/v1/capacity"])
def test_caller_without_token_cannot_ask_what_if_plan_or_capacity(follower: Service, path: str) -> None:
    assert_is_refusal(follower.post(path, {}), 401)


@pytest.mark.parametrize("path", ANSWERS)
def test_administrator_sees_every_name(follower: Service, path: str) -> None:
    answer = ask(follower, path, "admins-token")

    assert answer.status_code == 200
    assert '"hidden":true' not in answer.text


def test_each_name_is_there_for_an_administrator(follower: Service) -> None:
    names = {
        item["pod"]["name"]
        for node in ask(follower, "/v1/cluster", "admins-token").json()["nodes"]
        for item in node["pods"]
    }

    assert names == {"batch-0", "batch-1", "batch-2"}


@pytest.mark.parametrize("path", ANSWERS)
def test_caller_who_may_list_one_namespace_reads_no_name_of_another(follower: Service, path: str) -> None:
    answer = ask(follower, path, "annas-token")

    assert answer.status_code == 200
    assert "batch" not in answer.text
    assert "bank" not in answer.text


def test_but_those_of_his_own_and_what_the_others_leave_of_room(follower: Service) -> None:
    answer = ask(follower, "/v1/explain/shop/urgent", "annas-token").json()

    assert answer["pod"]["name"] == "urgent"
    assert answer["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    (victim,) = answer["preemption"]["victims"]
    assert (victim["pod"]["hidden"], victim["pod"]["name"], victim["pod"]["priority"]) == (True, "", 0)


def test_a_pod_of_another_namespace_is_neither_there_nor_not_there(follower: Service) -> None:
    """Whether it exists is not told, either."""
    existing, absent = (ask(follower, f"/v1/explain/bank/{name}", "annas-token") for name in ("batch-0", "nobody"))

    assert_is_refusal(existing, 403)
    assert existing.json() == absent.json()
    assert existing.json()["reason"] == "Forbidden"


def test_what_if_hides_victims_of_other_namespaces(follower: Service) -> None:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer annas-token"}

    answer = follower.client.post("/v1/whatif", content=json.dumps({"includePending": True}), headers=headers)

    assert answer.status_code == 200
    pending = {placement["pod"]["name"] for placement in answer.json()["placements"] if placement["cause"] == "pending"}
    assert pending == {"urgent", "too-large", "gated"}
    assert [eviction["victim"]["pod"]["hidden"] for eviction in answer.json()["evictions"]] == [True]
    assert "batch" not in answer.text
    assert "bank" not in answer.text


def test_caller_who_may_list_nothing_still_sees_how_full_nodes_are(follower: Service) -> None:
    answer = ask(follower, "/v1/cluster", "guests-token")

    assert [node["name"] for node in answer.json()["nodes"]] == ["node-0", "node-1", "node-2"]
    assert "batch" not in answer.text
    assert_is_refusal(ask(follower, "/v1/explain/shop/urgent", "guests-token"), 403)


# The page.


def test_caller_without_token_is_shown_where_to_sign_in(follower: Service) -> None:
    answer = ask(follower, "/")

    assert answer.status_code == 401
    assert 'id="sign-in"' in answer.text
    assert "node-0" not in answer.text


def test_signed_in_caller_is_known_by_the_cookie(follower: Service) -> None:
    cookie = follower.post("/ui/sign-in", {"token": "annas-token"}).cookies[TOKEN_COOKIE]
    follower.client.cookies.clear()

    page = ask(follower, "/ui/pods/shop/urgent", cookie=cookie)

    assert page.status_code == 200
    assert "urgent" in page.text
    assert "batch" not in page.text
    assert ask(follower, "/v1/queue", cookie=cookie).status_code == 200


def test_a_cookie_that_is_no_token_any_more_asks_to_sign_in_again(follower: Service) -> None:
    answer = ask(follower, "/", cookie="old-token")

    assert answer.status_code == 401
    assert 'id="sign-in"' in answer.text


# What is not about names.


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json"])
def test_health_and_metrics_need_no_token(follower: Service, path: str) -> None:
    assert ask(follower, path).status_code == 200


def test_the_scheduler_is_answered_without_a_token(follower: Service) -> None:
    assert follower.call("filter", asking("node-0")).json()["NodeNames"] == ["node-0"]


@pytest.mark.slow
def test_caller_is_told_that_names_are_hidden_in_answers_about_many_namespaces(tmp_path: Path) -> None:
    pods = [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"of-{place}", "namespace": f"ns-{place}"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        for place in range(limits.NAMESPACES_REVIEWED + 1)
    ]  # fmt: skip
    dump = tmp_path / "many.json"
    state_file(dump, *pods)
    settings = Settings(port=0, state=dump, schedule=False)
    reviews = Reviews(create_app(settings), {"x": "x"}, lambda spec: spec["resourceAttributes"]["namespace"] == "ns-7")
    with ExitStack() as stack:
        server = stack.enter_context(serving_app(reviews, settings))
        service = stack.enter_context(serving(kubeconfig=kubeconfig_for(server.port, tmp_path)))
        until(lambda: readiness(service) == 200)
        many, one = (ask(service, path, "x") for path in ("/v1/queue", "/v1/explain/ns-7/of-7"))
        page = ask(service, "/", cookie="x")
        notes = reprieve("pending", "--server", f"http://127.0.0.1:{service.port}", "--token", "x").stderr.decode()

    words = "names are hidden in an answer about more than 256 namespaces: ask about one"
    assert {"of-7" in many.text, "of-7" in one.text} == {False, True}
    assert many.headers["warning"] == f'299 - "{words}"'
    assert words in page.text
    assert notes == f"reprieve: {words}\n"
    assert len(reviews.asked) < 10
