"""Whose names a caller is shown: his token says who he is, and the API server of the cluster what that means."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

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
from extender.values import limits
from extender.values.targets.target import Target
from tests.extender.client.scripted import Answer, Scripted, answer, html, refusal
from tests.kit.tables import cases


def caller(headers: Mapping[str, str] | None = None, cookie: str = "", address: str = "10.0.0.1") -> HTTPConnection:
    all_headers = dict(headers or {}) | ({"cookie": f"theme=dark; {TOKEN_COOKIE}={cookie}"} if cookie else {})
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in all_headers.items()]
    return HTTPConnection({"type": "http", "method": "POST", "headers": encoded, "client": (address, 4711)})


def bearing(token: str, scheme: str = "Bearer", address: str = "10.0.0.1") -> HTTPConnection:
    return caller({"Authorization": f"{scheme} {token}"}, address=address)


def reviewer(**namespaces: set[str]) -> Scripted:
    """A server that knows tokens of the form "NAME's", and where each of them may list pods; "" is everywhere."""

    async def review(request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = json.loads(request.content)
        if body["kind"] == "TokenReview":
            name = body["spec"]["token"].removesuffix("'s")
            if name not in namespaces:
                return answer(201, {"status": {"error": "unknown"}})
            return answer(201, {"status": {"authenticated": True, "user": {"username": name}}})
        attributes = body["spec"]["resourceAttributes"]
        return answer(201, {"status": {"allowed": attributes["namespace"] in namespaces[body["spec"]["user"]]}})

    return Scripted(review)


def access_to(server: Scripted) -> ReviewedAccess:
    client = Client(Target("http://server"), transport=server)
    return ReviewedAccess(AccessReview(client, asyncio.get_running_loop().time), ["scheduler"])


async def sight_of(server: Scripted, who: HTTPConnection, *among: str) -> frozenset[str]:
    return await (await access_to(server).of(who)).namespaces(among)


async def refused(server: Scripted, who: HTTPConnection) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await sight_of(server, who, "shop")
    return caught.value


# Who asks.


@cases(
    "who",
    ("in the header", bearing("anna's")),
    ("whatever the case of the scheme", bearing("anna's", "bearer")),
    ("with blanks around it", bearing("  anna's ")),
    ("in the page's cookie", caller(cookie="anna's")),
    ("in the cookie, with other credentials in the header", caller({"Authorization": "Basic YTpi"}, "anna's")),
    ("the header goes before the cookie", caller({"Authorization": "Bearer anna's"}, "bert's")),
)
async def test_caller_is_identified_by_its_token(who: HTTPConnection) -> None:
    assert await sight_of(reviewer(anna={"shop"}, bert={"bank"}), who, "shop", "bank") == {"shop"}


@cases(
    "who",
    ("nothing", caller()),
    ("no token", bearing("")),
    ("no scheme", caller({"Authorization": "anna's"})),
    ("another scheme", caller({"Authorization": "Basic YTpi"})),
    ("a cookie without a value", caller({"Cookie": "reprieve-token"})),
    ("garbage in the cookie", caller({"Cookie": ";;=;\x00=\xff; reprieve-token=\xe4\xf6"})),
    ("no ASCII", bearing("an\xf6\xfa's")),
    ("too long", bearing("x" * (limits.TOKEN_CHARACTERS + 1))),
    ("an empty header, whatever the cookie says", caller({"Authorization": "Bearer"}, "anna's")),
)
async def test_caller_without_token_is_refused_without_asking_the_server(who: HTTPConnection) -> None:
    server = reviewer(anna={""})

    refusal = await refused(server, who)

    assert (refusal.code, refusal.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert server.asked == []


async def test_unknown_token_is_refused() -> None:
    refusal = await refused(reviewer(anna={""}), bearing("stolen"))

    assert (refusal.code, refusal.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert "stolen" not in str(refusal)


async def test_the_longest_token_is_passed_on_as_it_is() -> None:
    server = reviewer()

    await refused(server, bearing("x" * limits.TOKEN_CHARACTERS))

    assert json.loads(server.asked[0].content)["spec"] == {"token": "x" * limits.TOKEN_CHARACTERS}


# What he may see.


async def test_caller_who_may_list_all_pods_is_reviewed_once() -> None:
    server = reviewer(admin={""})

    visibility = await access_to(server).of(bearing("admin's"))
    for among in ({"shop", "bank"}, {f"ns-{number}" for number in range(100)}, {"kube-system"}):
        assert await visibility.namespaces(among) == among

    assert len(server.asked) == 2  # who is it, and may he see everything


async def test_other_callers_are_reviewed_once_for_each_namespace() -> None:
    server = reviewer(anna={"shop", "web"})
    access = access_to(server)

    namespaces = [await (await access.of(bearing("anna's"))).namespaces({"shop", "bank", "web"}) for _ in range(3)]

    assert namespaces == [{"shop", "web"}] * 3
    reviews = [json.loads(request.content) for request in server.asked]
    assert [review["spec"]["resourceAttributes"]["namespace"] for review in reviews[1:]] == ["", "bank", "shop", "web"]


@pytest.mark.parametrize("number", [limits.NAMESPACES_REVIEWED, limits.NAMESPACES_REVIEWED + 1, 5000])
async def test_of_many_namespaces_only_those_that_the_request_names_are_shown(number: int) -> None:
    server = reviewer(anna={"shop", "ns-7"})
    many = {"shop", *(f"ns-{place}" for place in range(number - 1))}
    who = bearing("anna's")

    visibility = await access_to(server).of(who)
    visible_of_one = await visibility.namespaces({"shop"})
    visible_of_many = await visibility.namespaces(many)

    is_beyond = number > limits.NAMESPACES_REVIEWED
    assert visible_of_one == {"shop"}
    assert visible_of_many == ({"shop"} if is_beyond else {"shop", "ns-7"})
    assert len(server.asked) == (3 if is_beyond else 2 + number)
    assert hasattr(who.state, "warning") == is_beyond


async def test_two_people_do_not_see_with_each_others_eyes() -> None:
    access = access_to(reviewer(anna={"shop"}, bert={"bank"}))

    both = [await access.of(bearing(token)) for token in ("anna's", "bert's")]

    assert [await visibility.namespaces({"shop", "bank"}) for visibility in both] == [{"shop"}, {"bank"}]


async def test_open_access_shows_all_namespaces() -> None:
    visibility = await OpenAccess().of(caller())

    assert await visibility.namespaces({"shop", "bank"}) == {"shop", "bank"}


# When the API server does not say.


async def test_a_service_that_may_not_ask_says_what_it_needs() -> None:
    refusal_ = await refused(Scripted(refusal(403, "Forbidden")), bearing("anna's"))

    assert refusal_.code == 500
    assert "system:auth-delegator" in str(refusal_)


@cases(
    "failure",
    ("connection refused", httpx.ConnectError("connection refused")),
    ("cut off", httpx.ReadError("cut")),
    ("own credentials are refused", refusal(401, "Unauthorized")),
    ("too many questions", refusal(429, "TooManyRequests")),
    ("broken", refusal(500, "InternalError")),
    ("not ready", refusal(503, "ServiceUnavailable")),
    ("does not know the question", refusal(404, "NotFound")),
    ("a login page", html()),
    ("half an answer", answer(201, b'{"status": {"authenticated": tr')),
    ("an answer of the wrong types", answer(201, {"status": {"authenticated": "yes"}})),
    ("no object", answer(201, [])),
)
async def test_failed_review_refuses_the_caller_until_a_retry(failure: Answer) -> None:
    refusal = await refused(Scripted(failure), bearing("anna's"))

    assert (refusal.code, refusal.headers) == (503, {"Retry-After": "1"})


@pytest.mark.parametrize("failure", [httpx.ConnectError("gone"), answer(201, {"status": 7})])
async def test_review_that_fails_half_way_refuses_the_caller(failure: Answer) -> None:
    authenticated = answer(201, {"status": {"authenticated": True, "user": {"username": "anna"}}})

    refusal = await refused(Scripted(authenticated, failure), bearing("anna's"))

    assert refusal.code == 503


async def test_a_failure_is_not_remembered() -> None:
    authenticated = answer(201, {"status": {"authenticated": True, "user": {"username": "anna"}}})
    access = access_to(Scripted(httpx.ConnectError("gone"), authenticated, answer(201, {"status": {"allowed": True}})))
    with pytest.raises(Refusal):
        await access.of(bearing("anna's"))

    visibility = await access.of(bearing("anna's"))

    assert await visibility.namespaces({"shop"}) == {"shop"}


# Endpoints that are not about names.


async def admitted(server: Scripted, who: HTTPConnection, path: str, *, is_verb: bool = False) -> User | None:
    who.scope["method"] = "GET"
    return await access_to(server).admit(who, path, is_verb=is_verb)


def certified(name: str, headers: Mapping[str, str] | None = None) -> HTTPConnection:
    """A caller with a client certificate that was verified."""
    who = caller(headers)
    who.scope[CERTIFIED] = User(name)
    return who


async def test_a_rule_for_the_path_lets_a_user_in() -> None:
    user = {"authenticated": True, "user": {"username": "anna"}}
    allowed = Scripted(answer(201, {"status": user}), answer(201, {"status": {"allowed": True}}))

    assert await admitted(allowed, bearing("anna's"), "/metrics") == User("anna")
    assert json.loads(allowed.asked[1].content)["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_without_a_rule_a_user_is_refused() -> None:
    server = Scripted(answer(201, {"status": {"allowed": False}}))

    with pytest.raises(Refusal) as refused_:
        await admitted(server, certified("bert"), "/metrics")

    assert refused_.value.code == 403


@pytest.mark.parametrize(
    ("name", "is_verb", "reviews"), [("scheduler", True, 0), ("scheduler", False, 1), ("other", True, 1)]
)
async def test_an_allowed_name_needs_no_rule_for_the_verbs_and_only_for_them(
    name: str, is_verb: bool, reviews: int
) -> None:
    server = Scripted(answer(201, {"status": {"allowed": True}}))

    assert await admitted(
        server, certified(name, {"Authorization": "Bearer stolen"}), "/extender/filter", is_verb=is_verb
    ) == User(name)
    assert len(server.asked) == reviews


async def test_a_token_with_an_allowed_name_is_not_a_certificate() -> None:
    user = {"authenticated": True, "user": {"username": "scheduler"}}
    server = Scripted(answer(201, {"status": user}), answer(201, {"status": {"allowed": False}}))

    with pytest.raises(Refusal, match='user "scheduler" cannot get this path'):
        await admitted(server, bearing("any"), "/extender/filter", is_verb=True)


@asynccontextmanager
async def strangers(admits: Callable[[HTTPConnection], Awaitable[object]]) -> AsyncIterator[None]:
    """As many callers as may be reviewed at one time wait for an answer that does not come, and leave."""
    callers = [bearing(f"token-{number}", address=f"10.0.1.{number}") for number in range(limits.REVIEWS_AT_ONE_TIME)]
    waiting = [asyncio.ensure_future(admits(caller)) for caller in callers]
    await asyncio.sleep(1)
    with pytest.raises(Refusal) as refused_:
        await admits(bearing("one-more"))
    assert refused_.value.code == 503
    yield
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_strangers_without_end_keep_no_scheduler_waiting() -> None:
    """Only so many callers wait for the API server; one with an allowed certificate does not have to."""

    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    access = access_to(Scripted(hang))
    async with strangers(access.of):
        scheduler = await access.admit(certified("scheduler"), "/extender/filter", is_verb=True)
        with pytest.raises(TimeoutError):  # a scheduler with a token waits for the API server, and not for readers
            await asyncio.wait_for(access.admit(bearing("new"), "/extender/filter", is_verb=True), 1)

    assert scheduler == User("scheduler")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(access.of(bearing("later")), 1)


async def test_a_scheduler_that_is_known_by_its_token_does_not_wait_behind_strangers() -> None:
    """The API server does not answer about their tokens. Its own was reviewed some time ago, and is reviewed again."""
    reviewer_of_scheduler = reviewer(scheduler=set())

    async def review(request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = json.loads(request.content)
        if body["kind"] == "SubjectAccessReview":
            return answer(201, {"status": {"allowed": True}})
        if body["spec"]["token"] != "scheduler's":
            await asyncio.sleep(3600)
        return await reviewer_of_scheduler.handle_async_request(request)

    filters = partial(access_to(Scripted(review)).admit, path="/extender/filter", is_verb=True)
    before = await filters(bearing("scheduler's"))
    await asyncio.sleep(60)
    async with strangers(filters):
        now = await filters(bearing("scheduler's"))

    assert [before, now] == [User("scheduler"), User("scheduler")]


async def test_the_api_server_is_asked_about_so_many_unknown_tokens_of_an_address() -> None:
    """Others are asked about, and tokens that are known, too; later the address has its turn again."""
    server = reviewer(anna=set())
    access = access_to(server)

    async def code(token: str, address: str = "10.0.0.1") -> int:
        try:
            await access.of(bearing(token, address=address))
        except Refusal as refusal:
            return refusal.code
        return 200

    before = await code("anna's", "10.0.0.9")
    flood = [await code(f"made-up-{number}") for number in range(3 * limits.UNKNOWN_TOKENS)]
    review_count = len(server.asked)
    other_codes = [before, await code("anna's"), await code("made-up-0"), await code("made-up-elsewhere", "10.0.0.2")]
    await asyncio.sleep(UNKNOWN_SECONDS)
    later = await code("made-up-later")

    assert flood == [401] * limits.UNKNOWN_TOKENS + [429] * 2 * limits.UNKNOWN_TOKENS
    assert review_count == 1 + limits.UNKNOWN_TOKENS
    assert [*other_codes, later] == [200, 200, 401, 401, 401]


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
        items=tuple(QueuePlace(pod=PodName(namespace=ns, name="web", priority=3), queue="active") for ns in namespaces)
    )


async def test_an_answer_names_what_its_reader_may_see() -> None:
    visibility = _Sees("shop")

    visible_answer = await as_seen_by(visibility, waiting("shop", "bank", "shop"))

    assert [item.pod for item in visible_answer.items] == [
        PodName(namespace="shop", name="web", priority=3),
        PodName(namespace="", name="", priority=3, hidden=True),
        PodName(namespace="shop", name="web", priority=3),
    ]
    assert visibility.asked == [{"shop", "bank"}]


async def test_answer_without_names_needs_no_review() -> None:
    visibility = _Sees()
    empty = waiting()

    assert await as_seen_by(visibility, empty) is empty
    assert visibility.asked == []
