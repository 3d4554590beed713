"""Who callers are and which pods they may see, the API server says; its answers hold for ten seconds."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from extender.client.access_review import AccessReview, User
from extender.client.client import Client
from extender.client.errors import Forbidden
from extender.testing import virtual_time
from extender.values import limits
from extender.values.targets.target import Target
from tests.extender.client.scripted import Scripted, answer, refusal

ANNA = User(username="anna", uid="7", groups=("shop-team",), extra={"scopes": ("a", "b")})


def reviewing(server: Scripted) -> AccessReview:
    return AccessReview(Client(Target("http://server"), transport=server), asyncio.get_running_loop().time)


def reviewer(**may: bool) -> Scripted:
    """A server that knows anna's token, and in which namespaces she may list pods."""

    async def review(request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = json.loads(request.content)
        if body["kind"] == "TokenReview":
            if body["spec"]["token"] != "anna's":
                return answer(201, {"status": {"authenticated": False, "error": "unknown"}})
            user = {"username": "anna", "uid": "7", "groups": ["shop-team"], "extra": {"scopes": ["a", "b"]}}
            return answer(201, {"status": {"authenticated": True, "user": user}})
        return answer(201, {"status": {"allowed": may.get(body["spec"]["resourceAttributes"]["namespace"], False)}})

    return Scripted(review)


async def test_token_review_returns_the_user_or_none():
    review = reviewing(reviewer())
    answers = (await review.user("anna's"), await review.user("stolen"))

    assert answers == (ANNA, None)


async def test_access_review_carries_the_whole_identity_of_the_caller():
    server = reviewer(shop=True)

    review = reviewing(server)
    answers = [await review.may_list(ANNA, "pods", "shop"), await review.may_list(ANNA, "pods", "bank")]

    assert answers == [True, False]
    assert server.asked[0].url.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert json.loads(server.asked[0].content)["spec"] == {
        "user": "anna",
        "uid": "7",
        "groups": ["shop-team"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {"namespace": "shop", "verb": "list", "version": "v1", "resource": "pods"},
    }


@pytest.mark.parametrize(
    ("seconds", "requests"), [pytest.param(9, 2, id="known"), pytest.param(11, 4, id="asked again")]
)
async def test_answers_hold_for_ten_seconds(seconds: float, requests: int):
    server = reviewer(shop=True)

    review = reviewing(server)
    for pause in (seconds, 0):
        assert await review.user("anna's") == ANNA
        assert await review.may_list(ANNA, "pods", "shop")
        await asyncio.sleep(pause)

    assert len(server.asked) == requests


async def test_a_denial_goes_before_a_permission():
    verdict = await reviewing(Scripted(answer(201, {"status": {"allowed": True, "denied": True}}))).may_list(
        ANNA, "pods", "shop"
    )

    assert verdict is False


def test_a_server_that_will_not_be_asked_is_an_error():
    async def ask() -> None:
        await reviewing(Scripted(refusal(403, "Forbidden"))).user("anna's")

    with pytest.raises(Forbidden):
        virtual_time.run(ask())


async def test_a_path_of_ours_is_asked_about_as_a_non_resource_url():
    server = Scripted(answer(201, {"status": {"allowed": True}}), answer(201, {"status": {"allowed": False}}))

    review = reviewing(server)
    answers = [
        await review.may_request(ANNA, path, verb)
        for path, verb in (("/metrics", "get"), ("/metrics", "put"), ("/metrics", "get"))
    ]

    assert answers == [True, False, True]
    assert [json.loads(request.content)["spec"]["nonResourceAttributes"] for request in server.asked] == [
        {"path": "/metrics", "verb": "get"},
        {"path": "/metrics", "verb": "put"},
    ]


async def test_number_of_kept_reviews_is_limited():
    async def allow(request: httpx.Request) -> httpx.Response:
        return answer(201, {"status": {"allowed": True}})

    server = Scripted(allow)

    review = reviewing(server)
    for number in (*range(limits.REVIEWS_KEPT + 1), 0):
        await review.may_request(ANNA, f"/{number}", "get")

    assert len(server.asked) == limits.REVIEWS_KEPT + 2, "the oldest answer made room"
