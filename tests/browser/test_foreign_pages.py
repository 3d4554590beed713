"""A page of another site, in a real browser: it neither writes to the service or the embedded cluster, nor keeps them
busy, nor reads them by DNS rebinding.
"""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.service import Running

POD = '{"metadata": {"name": "%s"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
PODS = "/api/v1/namespaces/default/pods"
NEW_POD = (
    '{"Pod": {"metadata": {"name": "new", "namespace": "default", "uid": "1"}, "spec": {"containers": []}}, '
    '"NodeNames": ["node-a1"]}'
)

# A body without a type, as a Blob has none, is sent without asking the other site first; its answer cannot be read.
WRITE = """([url, body]) => fetch(url, {method: "POST", mode: "no-cors", body: new Blob([body])}).then(a => a.type, e => String(e))"""
READ = """([url, body]) => fetch(url, body ? {method: "POST", body, headers: {"Content-Type": "application/json"}} : {})
    .then(async a => [a.status, await a.text()], e => [0, String(e)])"""

# What a page may do without asking: each promise is kept once there is an answer, or would be if there was no end.
HOLD = """urls => Promise.all(urls.flatMap(url => [
    fetch(url, {mode: "no-cors"}),
    new Promise(done => { const events = new EventSource(url); events.onopen = events.onerror = done; }),
    ...["img", "iframe", "script"].map(name => new Promise(done => {
        const element = document.createElement(name);
        element.onload = element.onerror = done;
        element.src = url;
        document.body.append(element);
    })),
])).then(() => null)"""
LINK = """url => {
    const link = document.createElement("a");
    link.href = url;
    link.textContent = "there";
    document.body.append(link);
}"""


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another site</title>")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        yield context


@pytest.fixture
def foreign(context: BrowserContext) -> Iterator[Page]:
    """A page of http://evil.test, which is another address of this machine, so that no browser asks whether it may
    reach us.
    """
    server = HTTPServer(("127.0.0.2", 0), _Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        page = context.new_page()
        page.goto(f"http://evil.test:{server.server_port}/")
        yield page
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rebound(context: BrowserContext, url: str) -> Page:
    """A page of http://rebound.test with the port of the url. Its name leads to us; what it shows does not matter to
    its scripts.
    """
    page = context.new_page()
    page.goto(f"http://rebound.test:{urlsplit(url).port}/livez")
    return page


def names(service: Running) -> set[str]:
    return {pod["metadata"]["name"] for pod in service.pods()}


@pytest.mark.parametrize("port", ["page", "kubernetes"])
def test_a_foreign_page_creates_no_pod_and_evicts_none(still: Running, foreign: Page, port: str) -> None:
    base = still.url if port == "page" else still.kubernetes
    before = names(still)
    victim = next(pod for pod in still.pods() if pod["spec"].get("nodeName"))["metadata"]
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim["name"]}})

    created = foreign.evaluate(WRITE, [f"{base}{PODS}", POD % f"from-{port}"])
    evicted = foreign.evaluate(
        WRITE, [f"{base}/api/v1/namespaces/{victim['namespace']}/pods/{victim['name']}/eviction", eviction]
    )

    assert (created, evicted) == ("opaque", "opaque"), "the requests went out"
    assert names(still) == before


def test_a_foreign_page_reads_nothing(still: Running, foreign: Page) -> None:
    for path in ("/metrics/resources", "/v1/cluster", PODS):
        assert foreign.evaluate(READ, [f"{still.url}{path}", ""]) == [0, "TypeError: Failed to fetch"]


def test_a_foreign_page_holds_nothing(still: Running, foreign: Page) -> None:
    paths = ["/v1/stream", "/v1/capacity?pod=default/web-0", "/api/v1/pods?watch", "/api/v1/watch/pods"]
    urls = [base + path for base in (still.url, still.kubernetes) for path in paths]
    statuses: list[int] = []
    foreign.on("response", lambda answer: statuses.append(answer.status))

    foreign.evaluate(HOLD, urls)

    assert len(statuses) >= 2 * len(urls), "the requests went out"
    assert set(statuses) == {403}


def test_a_foreign_page_may_link_to_a_page_of_ours(still: Running, foreign: Page) -> None:
    foreign.evaluate(LINK, f"{still.url}/ui/nodes")

    foreign.click("a")

    expect(foreign).to_have_title(re.compile("Nodes"))


@pytest.mark.parametrize("port", ["page", pytest.param("kubernetes", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/metrics/resources", ""),
        ("/v1/cluster", ""),
        ("/", ""),
        (PODS, ""),
        ("/extender/filter", NEW_POD),
        (PODS, POD % "rebound"),
    ],
)
def test_a_page_whose_name_was_rebound_neither_reads_nor_writes(
    still: Running, context: BrowserContext, port: str, path: str, body: str
) -> None:
    before = names(still)
    page = rebound(context, still.url if port == "page" else still.kubernetes)

    status, text = page.evaluate(READ, [path, body])

    assert status == 421
    assert "--allowed-hosts" in text
    assert "node-a1" not in text
    assert names(still) == before
