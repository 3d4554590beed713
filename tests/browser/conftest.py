"""One browser for all tests, a new profile for each, and services that tests share. A page that complains fails its
test.

All of it ends with this package: as long as Playwright runs, its event loop is the main thread's, and no other test
could run one.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.api.test_page import guarded_service
from tests.browser.services import busy_cluster, many_nodes
from tests.kit.service import Running, running
from tests.kit.waiting import DEADLINE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync", "--host-resolver-rules=MAP evil.test 127.0.0.2, MAP rebound.test 127.0.0.1",
)  # fmt: skip
SLOW_NETWORK = {"offline": False, "latency": 50, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
"""A page arrives in pieces."""


class OpenPage(Protocol):
    """Opens a page in a profile of its own; `expected` is what the console will say, or a part of it.

    Arguments:
        slow: on a slow machine, over a slow network.
    """

    expected: list[str]

    def __call__(
        self, url: str, *, dark: bool = False, width: int = 1440, height: int = 900, slow: bool = False
    ) -> Page: ...


class Profiles:
    """Pages, each in a profile of its own, and what they complained of."""

    def __init__(self, browser: Browser) -> None:
        # On a busy machine the browser leaves out the fading from one page to the next, and says so.
        self.expected: list[str] = ["Transition was aborted"]
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._said: list[str] = []
        self._asked: list[str] = []
        self._hosts: set[str] = set()

    def __call__(
        self, url: str, *, dark: bool = False, width: int = 1440, height: int = 900, slow: bool = False
    ) -> Page:
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB"
        )
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(DEADLINE * 1000)
        page.on("console", lambda message: self._said.append(message.text))
        page.on("pageerror", lambda error: self._said.append(str(error)))
        page.on("request", lambda request: self._asked.append(urlsplit(request.url).netloc))
        self._hosts.add(urlsplit(url).netloc)
        if slow:
            session = context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
            session.send("Network.enable")
            session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
        page.goto(url)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        unexpected = [message for message in self._said if not any(part in message for part in self.expected)]
        assert unexpected == [], "the console is silent"
        assert set(self._asked) <= self._hosts, "nobody else is asked"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium, and it could not be installed: apt-get install chromium")
    expect.set_options(timeout=DEADLINE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages. At the end: nothing was said on the console, and nobody else was asked for anything."""
    profiles = Profiles(browser)
    yield profiles
    profiles.close()


@pytest.fixture(scope="package")
def still(browser: Browser) -> Iterator[Running]:
    """The example cluster, with two pods that wait; nobody decides, so that it stays as it is."""
    with running("--no-schedule") as service:
        yield service


@pytest.fixture(scope="package")
def busy(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A small cluster with GPUs, in which the pods of three workloads wait; nobody decides."""
    state = busy_cluster(tmp_path_factory.mktemp("busy") / "cluster.json")
    with running("--no-schedule", "--state", str(state)) as service:
        yield service


@pytest.fixture(scope="module")
def deciding(browser: Browser) -> Iterator[Running]:
    """The example cluster, scheduled."""
    with running() as service:
        yield service


@pytest.fixture(scope="package")
def guarded(browser: Browser) -> Iterator[str]:
    """Where the example cluster is shown to those who know the token."""
    with guarded_service() as service:
        yield f"http://127.0.0.1:{service.port}"


@pytest.fixture(scope="package")
def crowded(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """5,000 nodes, 30,000 pods, and 500 that wait."""
    state: Path = many_nodes(tmp_path_factory.mktemp("crowded") / "cluster.json", pods_each=6, waiting_pods=499)
    with running("--no-schedule", "--state", str(state)) as service:
        yield service


@pytest.fixture(scope="package")
def large(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Thousands of nodes."""
    state: Path = many_nodes(tmp_path_factory.mktemp("large") / "cluster.json")
    with running("--no-schedule", "--state", str(state)) as service:
        yield service
