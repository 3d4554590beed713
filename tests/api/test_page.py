"""The page as a browser is sent it: its policy, its refusals, its files, and what is hidden from whom."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import httpx
import pytest
from starlette.requests import HTTPConnection

from api.callers.access import TOKEN_COOKIE
from api.callers.http_refusals import Refusal
from api.documents.documentation import BY_NAME
from api.ui.frame import assets
from extender.answers.redaction import Visibility
from extender.values import limits
from tests.api.fake_engines import FailingEngine
from tests.api.test_questions import Sees, guarded_by
from tests.kit.service import LetsIn, Service, assert_is_refusal, serving
from tests.kit.waiting import DEADLINE

VIEWS = ("/", "/ui/nodes", "/ui/nodes/node-a1", "/ui/pods/shop/web-6", "/ui/history", "/ui/what-if")
SOMEBODY = "another namespace&#39;s pod"


class OneToken(LetsIn):
    """Knows one caller, by his token."""

    async def of(self, caller: HTTPConnection) -> Visibility:
        if caller.cookies.get(TOKEN_COOKIE) != "right":
            raise Refusal(401, "who asks?")
        return Sees("shop")


def guarded_service() -> AbstractContextManager[Service]:
    """The example cluster, for those who say who they are."""
    return guarded_by(OneToken(), schedule=False)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Service]:
    with guarded_service() as service:
        yield service


def signed_in(service: Service, path: str, **headers: str) -> httpx.Response:
    url = f"http://127.0.0.1:{service.port}{path}"
    return httpx.get(url, headers=headers, cookies={TOKEN_COOKIE: "right"}, trust_env=False)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_html_that_may_load_nothing_from_elsewhere(example: Service, view: str) -> None:
    answer = example.client.get(view)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert {"base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} <= set(policy.split("; "))
    assert (answer.headers["x-content-type-options"], answer.headers["referrer-policy"]) == ("nosniff", "same-origin")
    assert answer.headers["cache-control"] == "no-store"


def test_files_are_kept_for_ever_under_a_path_that_changes_with_them(example: Service) -> None:
    page = example.client.get("/").text
    paths = re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', page)

    answers = {path.rpartition("/")[2]: example.client.get(path) for path in paths}

    assert set(answers) == {"page.css", "page.js", "theme.js", "icon.svg"}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert "immutable" in answers["page.css"].headers["cache-control"]
    assert answers["page.js"].headers["content-type"] == "text/javascript; charset=utf-8"


@pytest.mark.parametrize("path", ["/ui/static/0000000000000000/page.css", f"/ui/static/{assets().version}/nothing.js"])
def test_files_of_another_version_and_unknown_ones_are_not_there(example: Service, path: str) -> None:
    assert_is_refusal(example.client.get(path), 404)


@pytest.mark.parametrize("path", ["/ui/nodes/nowhere", "/ui/pods/shop/nobody"])
def test_missing_object_is_answered_with_a_page(example: Service, path: str) -> None:
    answer = example.client.get(path)

    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_page_of_a_service_that_is_not_ready_is_503() -> None:
    with serving(lambda _: FailingEngine(RuntimeError("no"), is_ready=False)) as service:
        answer = service.client.get("/")

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "<h1>Not ready</h1>" in answer.text


def test_names_are_found_on_the_server_too(example: Service) -> None:
    text = example.client.get("/ui/find", params={"q": "web-6"}).text

    assert re.findall(r'class="row" href="([^"]+)"', text.partition("<main")[2]) == ["/ui/pods/shop/web-6"]


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/ui/nodes/([^"]+)"', page)


def test_the_nodes_table_finds_names_and_zones(example: Service) -> None:
    def names_matching(part: str) -> list[str]:
        return rows(example.client.get("/ui/nodes", params={"node": part}).text)

    assert names_matching("node-b3") == ["node-b3"]
    assert names_matching("ZONE-A") == ["node-a1", "node-a2", "node-a3", "node-a4"]


def test_the_nodes_table_is_sorted_on_the_server_and_keeps_what_is_looked_for(example: Service) -> None:
    page = example.client.get("/ui/nodes", params={"node": "zone-a", "sort": "-cpu"}).text

    assert rows(page) == ["node-a2", "node-a3", "node-a4", "node-a1"]
    assert re.findall(r'aria-sort="(\w+)"><a href="([^"]+)"', page) == [
        ("descending", "/ui/nodes?node=zone-a&amp;sort=cpu")
    ]
    assert '<input type="hidden" name="sort" value="-cpu">' in page


def test_an_order_that_there_is_not_is_refused_in_words(example: Service) -> None:
    answer = example.client.get("/ui/nodes", params={"sort": "<colour>"})

    assert answer.status_code == 400
    assert "Nodes can be sorted by name, zone, cpu, " in answer.text
    assert "colour" not in answer.text


# What if.


def test_a_what_if_is_answered_as_a_part_of_the_page(example: Service) -> None:
    manifest = "kind: Pod\napiVersion: v1\nmetadata: {name: small}\nspec: {containers: [{name: c, image: i}]}"

    answer = example.post("/ui/what-if", {"manifest": manifest, "by": "memory"})

    assert answer.status_code == 200
    assert "default/small" in answer.text
    assert "<html" not in answer.text


def test_a_plan_that_frees_nodes_is_drawn_before_and_after(example: Service) -> None:
    answer = example.post("/ui/what-if", {"ask": "free", "freeNodes": 1})

    assert answer.status_code == 200
    assert re.search("1 node would be free after [0-9]+ moves?: ", answer.text)
    assert "reprieve plan --free-nodes 1" in answer.text
    assert answer.text.count("<svg") == 1
    assert "<html" not in answer.text


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"ask": "free", "freeNodes": 1, "of": "example.com/<b>gpu"}, 422),
        ({"ask": "free", "freeNodes": 1000}, 422),
        ({"manifest": "kind: ["}, 422),
        ({"manifest": "kind: Pod\nspec: 5"}, 422),
        ({"drainNodes": ["nowhere"]}, 422),
        ({"by": "colour"}, 400),
        ({"unknown": 1}, 400),
    ],
)
def test_what_if_that_cannot_be_tried_is_refused_in_words(example: Service, form: dict[str, object], code: int) -> None:
    assert_is_refusal(example.post("/ui/what-if", form), code)


# Who may see what.


def test_the_token_is_kept_where_no_script_and_no_other_site_reaches_it(guarded: Service) -> None:
    answer = guarded.post("/ui/sign-in", {"token": "right"})

    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f"{TOKEN_COOKIE}=right;")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    guarded.client.cookies.clear()


@pytest.mark.parametrize("token", ["", "two words", "semi;colon", "new\nline", "x" * 5000])
def test_malformed_token_is_refused(guarded: Service, token: str) -> None:
    assert_is_refusal(guarded.post("/ui/sign-in", {"token": token}), 400)


def signing_out(service: Service, **headers: str) -> httpx.Response:
    """As a browser sends the form: without a body, and without a script."""
    form_headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    return httpx.post(f"http://127.0.0.1:{service.port}/ui/sign-out", headers=form_headers, trust_env=False)


def test_signing_out_removes_the_cookie(guarded: Service) -> None:
    answer = signing_out(guarded, Cookie=f"{TOKEN_COOKIE}=right", Sec_Fetch_Site="same-origin")

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f'{TOKEN_COOKIE}="";')
    assert {"max-age=0", "httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_sign_a_user_out(guarded: Service, site: str) -> None:
    answer = signing_out(guarded, Cookie=f"{TOKEN_COOKIE}=right", Sec_Fetch_Site=site)

    assert_is_refusal(answer, 403)
    assert "set-cookie" not in answer.headers


def test_signing_out_without_a_known_site_keeps_the_cookie(guarded: Service) -> None:
    """It keeps the cookie to itself, and then there is nothing to drop."""
    answer = signing_out(guarded)

    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/ui/what-if", "/ui/pods/batch/train-3", "/ui/nodes/nowhere"])
def test_every_page_offers_signing_out_to_a_caller_known_by_cookie(guarded: Service, path: str) -> None:
    assert 'action="/ui/sign-out"' in signed_in(guarded, path).text


def test_no_page_offers_signing_out_to_a_caller_without_the_cookie(guarded: Service, example: Service) -> None:
    """Neither a stranger, nor who sends the token himself, nor anybody where no token is asked for."""
    by_header = signed_in(guarded, "/", Authorization="Bearer x")

    assert by_header.status_code == 200
    for page in (guarded.client.get("/").text, by_header.text, signed_in(example, "/").text):
        assert "sign-out" not in page


def test_a_token_never_becomes_part_of_an_address(guarded: Service) -> None:
    """The form of a browser without scripts is refused, and not sent as a query."""
    form = re.search(r'<form id="sign-in"[^>]*>', guarded.client.get("/").text)

    assert form is not None
    assert 'method="post" action="/ui/sign-in"' in form[0]
    assert_is_refusal(guarded.client.post("/ui/sign-in", data={"token": "right"}), 415)


def test_pods_of_other_namespaces_are_seen_without_their_names(guarded: Service) -> None:
    page = signed_in(guarded, "/").text

    assert "shop/web-0" in page
    assert SOMEBODY in page
    assert "batch/" not in page
    assert "report-" not in page


@pytest.mark.parametrize("path", ["/v1/cluster", "/v1/cluster/node-a3"])
def test_map_as_json_hides_pods_of_other_namespaces(guarded: Service, path: str) -> None:
    text = signed_in(guarded, path).text

    assert '"shop"' in text
    assert '"hidden":true' in text
    assert "report-" not in text


def test_a_pod_of_another_namespace_is_not_explained(guarded: Service) -> None:
    answer = signed_in(guarded, "/ui/pods/batch/train-3")

    assert answer.status_code == 403
    assert "<h1>Forbidden</h1>" in answer.text


def test_victims_of_other_namespaces_are_counted_and_not_named(guarded: Service) -> None:
    page = signed_in(guarded, "/ui/pods/shop/web-6").text

    assert SOMEBODY in page
    assert "report-" not in page


# The map, and news.


def test_the_map_has_every_node_with_its_pods(example: Service) -> None:
    cluster = example.client.get("/v1/cluster").json()

    assert (len(cluster["nodes"]), cluster["hasPods"]) == (12, True)
    assert cluster["nodes"][0]["name"] == "node-a1"
    assert {pod["pod"]["name"] for pod in cluster["nodes"][0]["pods"]} >= {"web-0"}


def test_one_node_can_be_asked_for(example: Service) -> None:
    assert example.client.get("/v1/cluster/node-a1").json() == example.client.get("/v1/cluster").json()["nodes"][0]
    assert_is_refusal(example.client.get("/v1/cluster/nowhere"), 404)


def test_news_come_as_server_sent_events(example: Service) -> None:
    with example.client.stream("GET", "/v1/stream") as answer:
        lines = answer.iter_lines()
        first_lines = [next(lines) for _ in range(4)]

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert first_lines[0] == "retry: 2000"
    assert first_lines[2] == "event: version"
    assert first_lines[3].startswith("data: ")


def test_callers_without_token_get_no_stream(guarded: Service) -> None:
    assert_is_refusal(guarded.client.get("/v1/stream"), 401)


def test_pages_that_follow_leave_room_for_the_verbs(example: Service) -> None:
    """Whoever comes too late is told to try again; everybody else is answered."""
    with ExitStack() as opened:
        client = opened.enter_context(
            httpx.Client(base_url=f"http://127.0.0.1:{example.port}", trust_env=False, timeout=DEADLINE)
        )
        followed = [opened.enter_context(client.stream("GET", "/v1/stream")) for _ in range(limits.STREAMS + 1)]
        late = followed.pop()
        late.read()

        assert {answer.status_code for answer in followed} == {200}
        assert_is_refusal(late, 503)
        assert late.headers["retry-after"] == "1"
        assert example.call("filter", BY_NAME).status_code == 200


def test_the_service_ends_although_pages_are_open() -> None:
    with (
        serving(schedule=False) as service,
        httpx.Client(base_url=service.client.base_url, trust_env=False, timeout=DEADLINE) as client,
    ):
        request = client.build_request("GET", "/v1/stream")
        answer = client.send(request, stream=True)
        lines = answer.iter_lines()
        next(lines)

        service.server.should_exit = True

        assert [line for line in lines if line.startswith("event")] == ["event: version"]
