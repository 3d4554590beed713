"""Whose names a caller is shown: his token says who he is, and the API server of the cluster what that means."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx
import pytest
from starlette.requests import HTTPConnection

from api.callers.access import CERTIFIED, TOKEN_COOKIE, UNKNOWN_SECONDS, OpenAccess, ReviewedAccess
from api.callers.http_refusals import Refusal
from extender.answers.parts import PodName
from extender.answers.redaction import as_seen_by
from extender.answers.types import Queue, QueuePlace
from extender.client.access_review import AccessReview, User
from extender.client.client import Client
from extender.testing import virtual_time
from extender.values import limits
from extender.values.targets.target import Target
from tests.extender.client.scripted import Answer, Scripted, answer, html, refusal

T = TypeVar("T")


def caller(headers: Mapping[str, str] | None = None, cookie: str = "", address: str = "10.0.0.1") -> HTTPConnection:
    named = dict(headers or {}) | ({"cookie": f"theme=dark; {TOKEN_COOKIE}={cookie}"} if cookie else {})
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in named.items()]
    return HTTPConnection({"type": "http", "method": "POST", "headers": encoded, "client": (address, 4711)})


def bearing(token: str, scheme: str = "Bearer", address: str = "10.0.0.1") -> HTTPConnection:
    return caller({"Authorization": f"{scheme} {token}"}, address=address)


def reviewer(**namespaces: set[str]) -> Scripted:
    """A server that knows tokens of the form "NAME's", and where each of them may list pods; "" is everywhere."""

    async def review(request: httpx.Request) -> httpx.Response:
        asked: dict[str, Any] = json.loads(request.content)
        if asked["kind"] == "TokenReview":
            name = asked["spec"]["token"].removesuffix("'s")
            if name not in namespaces:
                return answer(201, {"status": {"error": "unknown"}})
            return answer(201, {"status": {"authenticated": True, "user": {"username": name}}})
        attributes = asked["spec"]["resourceAttributes"]
        return answer(201, {"status": {"allowed": attributes["namespace"] in namespaces[asked["spec"]["user"]]}})

    return Scripted(review)


def reviewed(server: Scripted, story: Callable[[ReviewedAccess], Awaitable[T]]) -> T:
    """What the story returns, of an access that asks this server; in virtual time."""

    async def main() -> T:
        client = Client(Target("http://server"), transport=server)
        try:
            return await story(ReviewedAccess(AccessReview(client, asyncio.get_running_loop().time), ["scheduler"]))
        finally:
            await client.aclose()

    return virtual_time.run(main())


def sight_of(server: Scripted, who: HTTPConnection, *among: str) -> frozenset[str]:
    async def look(access: ReviewedAccess) -> frozenset[str]:
        return await (await access.of(who)).namespaces(among)

    return reviewed(server, look)


def refused(server: Scripted, who: HTTPConnection) -> Refusal:
    with pytest.raises(Refusal) as caught:
        sight_of(server, who, "shop")
    return caught.value


# Who asks.


@pytest.mark.parametrize(
    "who",
    [
        pytest.param(bearing("anna's"), id="in the header"),
        pytest.param(bearing("anna's", "bearer"), id="whatever the case of the scheme"),
        pytest.param(bearing("  anna's "), id="with blanks around it"),
        pytest.param(caller(cookie="anna's"), id="in the page's cookie"),
        pytest.param(
            caller({"Authorization": "Basic YTpi"}, "anna's"), id="in the cookie, with other credentials in the header"
        ),
        pytest.param(caller({"Authorization": "Bearer anna's"}, "bert's"), id="the header goes before the cookie"),
    ],
)
def test_caller_is_identified_by_its_token(who: HTTPConnection) -> None:
    assert sight_of(reviewer(anna={"shop"}, bert={"bank"}), who, "shop", "bank") == {"shop"}


@pytest.mark.parametrize(
    "who",
    [
        pytest.param(caller(), id="nothing"),
        pytest.param(bearing(""), id="no token"),
        pytest.param(caller({"Authorization": "anna's"}), id="no scheme"),
        pytest.param(caller({"Authorization": "Basic YTpi"}), id="another scheme"),
        pytest.param(caller({"Cookie": "reprieve-token"}), id="a cookie without a value"),
        pytest.param(caller({"Cookie": ";;=;\x00=\xff; reprieve-token=\xe4\xf6"}), id="garbage in the cookie"),
        pytest.param(bearing("an\xf6\xfa's"), id="no ASCII"),
        pytest.param(bearing("x" * (limits.TOKEN_CHARACTERS + 1)), id="too long"),
        pytest.param(caller({"Authorization": "Bearer"}, "anna's"), id="an empty header, whatever the cookie says"),
    ],
)
def test_caller_without_token_is_refused_without_asking_the_server(who: HTTPConnection) -> None:
    server = reviewer(anna={""})

    refusal = refused(server, who)

    assert (refusal.code, refusal.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert server.asked == []


def test_unknown_token_is_refused() -> None:
    refusal = refused(reviewer(anna={""}), bearing("stolen"))

    assert (refusal.code, refusal.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert "stolen" not in str(refusal)


def test_the_longest_token_is_passed_on_as_it_is() -> None:
    server = reviewer()

    refused(server, bearing("x" * limits.TOKEN_CHARACTERS))

    assert json.loads(server.asked[0].content)["spec"] == {"token": "x" * limits.TOKEN_CHARACTERS}


# What he may see.


def test_caller_who_may_list_all_pods_is_reviewed_once() -> None:
    server = reviewer(admin={""})

    async def look(access: ReviewedAccess) -> list[frozenset[str]]:
        visibility = await access.of(bearing("admin's"))
        return [
            await visibility.namespaces(among)
            for among in ({"shop", "bank"}, {f"ns-{number}" for number in range(100)}, {"kube-system"})
        ]

    seen = reviewed(server, look)

    assert [len(names) for names in seen] == [2, 100, 1]
    assert len(server.asked) == 2  # who is it, and may he see everything


def test_other_callers_are_reviewed_once_for_each_namespace() -> None:
    server = reviewer(anna={"shop", "web"})

    async def look(access: ReviewedAccess) -> list[frozenset[str]]:
        return [await (await access.of(bearing("anna's"))).namespaces({"shop", "bank", "web"}) for _ in range(3)]

    seen = reviewed(server, look)

    assert seen == [{"shop", "web"}] * 3
    asked = [json.loads(request.content) for request in server.asked]
    assert [each["spec"]["resourceAttributes"]["namespace"] for each in asked[1:]] == ["", "bank", "shop", "web"]


def test_two_people_do_not_see_with_each_others_eyes() -> None:
    async def look(access: ReviewedAccess) -> list[frozenset[str]]:
        both = [await access.of(bearing(token)) for token in ("anna's", "bert's")]
        return [await visibility.namespaces({"shop", "bank"}) for visibility in both]

    assert reviewed(reviewer(anna={"shop"}, bert={"bank"}), look) == [{"shop"}, {"bank"}]


def test_open_access_shows_all_namespaces() -> None:
    async def look() -> frozenset[str]:
        visibility = await OpenAccess().of(caller())
        return await visibility.namespaces({"shop", "bank"})

    assert asyncio.run(look()) == {"shop", "bank"}


# When the API server does not say.


def test_a_service_that_may_not_ask_says_what_it_needs() -> None:
    refusal_ = refused(Scripted(refusal(403, "Forbidden")), bearing("anna's"))

    assert refusal_.code == 500
    assert "system:auth-delegator" in str(refusal_)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(httpx.ConnectError("connection refused"), id="connection refused"),
        pytest.param(httpx.ReadError("cut"), id="cut off"),
        pytest.param(refusal(401, "Unauthorized"), id="own credentials are refused"),
        pytest.param(refusal(429, "TooManyRequests"), id="too many questions"),
        pytest.param(refusal(500, "InternalError"), id="broken"),
        pytest.param(refusal(503, "ServiceUnavailable"), id="not ready"),
        pytest.param(refusal(404, "NotFound"), id="does not know the question"),
        pytest.param(html(), id="a login page"),
        pytest.param(answer(201, b'{"status": {"authenticated": tr'), id="half an answer"),
        pytest.param(answer(201, {"status": {"authenticated": "yes"}}), id="an answer of the wrong types"),
        pytest.param(answer(201, []), id="no object"),
    ],
)
def test_failed_review_refuses_the_caller_until_a_retry(said: Answer) -> None:
    refusal = refused(Scripted(said), bearing("anna's"))

    assert (refusal.code, refusal.headers) == (503, {"Retry-After": "1"})


@pytest.mark.parametrize("said", [httpx.ConnectError("gone"), answer(201, {"status": 7})])
def test_review_that_fails_half_way_refuses_the_caller(said: Answer) -> None:
    known = answer(201, {"status": {"authenticated": True, "user": {"username": "anna"}}})

    refusal = refused(Scripted(known, said), bearing("anna's"))

    assert refusal.code == 503


def test_a_failure_is_not_remembered() -> None:
    known = answer(201, {"status": {"authenticated": True, "user": {"username": "anna"}}})
    server = Scripted(httpx.ConnectError("gone"), known, answer(201, {"status": {"allowed": True}}))

    async def look(access: ReviewedAccess) -> frozenset[str]:
        with pytest.raises(Refusal):
            await access.of(bearing("anna's"))
        return await (await access.of(bearing("anna's"))).namespaces({"shop"})

    assert reviewed(server, look) == {"shop"}


# Endpoints that are not about names.


def admitted(server: Scripted, who: HTTPConnection, path: str, *, is_verb: bool = False) -> User | None:
    who.scope["method"] = "GET"

    async def ask(access: ReviewedAccess) -> User | None:
        return await access.admit(who, path, is_verb=is_verb)

    return reviewed(server, ask)


def certified(name: str, headers: Mapping[str, str] | None = None) -> HTTPConnection:
    """A caller with a client certificate that was verified."""
    who = caller(headers)
    who.scope[CERTIFIED] = User(name)
    return who


def test_a_rule_for_the_path_lets_a_user_in() -> None:
    user = {"authenticated": True, "user": {"username": "anna"}}
    allowed = Scripted(answer(201, {"status": user}), answer(201, {"status": {"allowed": True}}))

    assert admitted(allowed, bearing("anna's"), "/metrics") == User("anna")
    assert json.loads(allowed.asked[1].content)["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


def test_without_a_rule_a_user_is_refused() -> None:
    server = Scripted(answer(201, {"status": {"allowed": False}}))

    with pytest.raises(Refusal) as refused_:
        admitted(server, certified("bert"), "/metrics")

    assert refused_.value.code == 403


@pytest.mark.parametrize(
    ("name", "is_verb", "reviews"), [("scheduler", True, 0), ("scheduler", False, 1), ("other", True, 1)]
)
def test_an_allowed_name_needs_no_rule_for_the_verbs_and_only_for_them(name: str, is_verb: bool, reviews: int) -> None:
    server = Scripted(answer(201, {"status": {"allowed": True}}))

    assert admitted(
        server, certified(name, {"Authorization": "Bearer stolen"}), "/extender/filter", is_verb=is_verb
    ) == User(name)
    assert len(server.asked) == reviews


def test_a_token_with_an_allowed_name_is_not_a_certificate() -> None:
    user = {"authenticated": True, "user": {"username": "scheduler"}}
    server = Scripted(answer(201, {"status": user}), answer(201, {"status": {"allowed": False}}))

    with pytest.raises(Refusal, match='user "scheduler" cannot get this path'):
        admitted(server, bearing("any"), "/extender/filter", is_verb=True)


def test_strangers_without_end_keep_no_scheduler_waiting() -> None:
    """The API server does not answer; only so many callers wait for it, and one with an allowed certificate does not
    have to.
    """

    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    async def story(access: ReviewedAccess) -> tuple[int, User | None]:
        callers = [
            bearing(f"token-{number}", address=f"10.0.1.{number}") for number in range(limits.REVIEWS_AT_ONE_TIME)
        ]
        strangers = [asyncio.ensure_future(access.of(each)) for each in callers]
        await asyncio.sleep(1)
        with pytest.raises(Refusal) as refused_:
            await access.of(bearing("one-more"))
        scheduler = await access.admit(certified("scheduler"), "/extender/filter", is_verb=True)
        with pytest.raises(TimeoutError):  # a scheduler with a token waits for the API server, and not for readers
            await asyncio.wait_for(access.admit(bearing("new"), "/extender/filter", is_verb=True), 1)
        for stranger in strangers:
            stranger.cancel()
        await asyncio.wait(strangers)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(access.of(bearing("later")), 1)
        return refused_.value.code, scheduler

    assert reviewed(Scripted(hang), story) == (503, User("scheduler"))


def test_a_scheduler_that_is_known_by_its_token_does_not_wait_behind_strangers() -> None:
    """The API server does not answer about their tokens. Its own was reviewed some time ago, and is reviewed again."""
    known = reviewer(scheduler=set())

    async def review(request: httpx.Request) -> httpx.Response:
        asked: dict[str, Any] = json.loads(request.content)
        if asked["kind"] == "SubjectAccessReview":
            return answer(201, {"status": {"allowed": True}})
        if asked["spec"]["token"] != "scheduler's":
            await asyncio.sleep(3600)
        return await known.handle_async_request(request)

    async def story(access: ReviewedAccess) -> tuple[int, list[User | None]]:
        async def filtered() -> User | None:
            return await access.admit(bearing("scheduler's"), "/extender/filter", is_verb=True)

        before = await filtered()
        await asyncio.sleep(60)
        callers = [
            bearing(f"token-{number}", address=f"10.0.1.{number}") for number in range(limits.REVIEWS_AT_ONE_TIME)
        ]
        strangers = [asyncio.ensure_future(access.admit(each, "/extender/filter", is_verb=True)) for each in callers]
        await asyncio.sleep(1)
        with pytest.raises(Refusal) as refused_:
            await access.admit(bearing("one-more"), "/extender/filter", is_verb=True)
        now = await filtered()
        for stranger in strangers:
            stranger.cancel()
        await asyncio.wait(strangers)
        return refused_.value.code, [before, now]

    assert reviewed(Scripted(review), story) == (503, [User("scheduler"), User("scheduler")])


def test_the_api_server_is_asked_about_so_many_unknown_tokens_of_an_address() -> None:
    """Others are asked about, and tokens that are known, too; later the address has its turn again."""
    server = reviewer(anna=set())

    async def story(access: ReviewedAccess) -> tuple[list[int], int, list[int]]:
        async def code(token: str, address: str = "10.0.0.1") -> int:
            try:
                await access.of(bearing(token, address=address))
            except Refusal as refusal:
                return refusal.code
            return 200

        before = await code("anna's", "10.0.0.9")
        flood = [await code(f"made-up-{number}") for number in range(3 * limits.UNKNOWN_TOKENS)]
        asked = len(server.asked)
        others = [before, await code("anna's"), await code("made-up-0"), await code("made-up-elsewhere", "10.0.0.2")]
        await asyncio.sleep(UNKNOWN_SECONDS)
        return flood, asked, [*others, await code("made-up-later")]

    flood, asked, others = reviewed(server, story)

    assert flood == [401] * limits.UNKNOWN_TOKENS + [429] * 2 * limits.UNKNOWN_TOKENS
    assert asked == 1 + limits.UNKNOWN_TOKENS
    assert others == [200, 200, 401, 401, 401]


# Answers.


class _Sees:
    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)
        self.asked: list[frozenset[str]] = []

    async def namespaces(self, among: Any) -> frozenset[str]:
        self.asked.append(frozenset(among))
        return self.names & self.asked[-1]

    async def events(self, namespace: str) -> bool:
        return False


def waiting(*namespaces: str) -> Queue:
    return Queue(
        items=tuple(
            QueuePlace(pod=PodName(namespace=name, name="web", priority=3), queue="active") for name in namespaces
        )
    )


def test_an_answer_names_what_its_reader_may_see() -> None:
    visibility = _Sees("shop")

    seen = asyncio.run(as_seen_by(visibility, waiting("shop", "bank", "shop")))

    assert [item.pod for item in seen.items] == [
        PodName(namespace="shop", name="web", priority=3),
        PodName(namespace="", name="", priority=3, hidden=True),
        PodName(namespace="shop", name="web", priority=3),
    ]
    assert visibility.asked == [{"shop", "bank"}]


def test_answer_without_names_needs_no_review() -> None:
    visibility = _Sees()
    empty = waiting()

    assert asyncio.run(as_seen_by(visibility, empty)) is empty
    assert visibility.asked == []
