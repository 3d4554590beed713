"""What axe-core finds on every page is nothing, in light and dark; on the main ones also on a narrow screen.

The script comes in by the browser's debugging protocol, so that the page's policy stays as it is.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.service import Running, running
from tests.kit.waiting import DEADLINE

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OPTIONS = {"runOnly": {"type": "tag", "values": LEVELS}, "resultTypes": ["violations"]}
LOOKS: list[tuple[int, Literal["light", "dark"]]] = [(1440, "light"), (1440, "dark"), (400, "light")]

MAIN = [
    "/",
    "/ui/pods",
    "/ui/nodes?sort=-cpu-free",
    "/ui/pods/shop/web-6",
    "/ui/history",
    "/ui/what-if",
    "/ui/scheduler",
]
STILL = [
    "/?by=memory", "/ui/find?q=web", "/ui/find?q=nobody", "/ui/pods?namespace=shop&sort=-age", "/ui/nodes?node=nobody",
    "/ui/nodes/node-a1", "/ui/pods/batch/train-3", "/ui/pods/shop/web-0", "/ui/help", "/ui/pods/shop/web-6?events=true",
]  # fmt: skip
BUSY = ["/", "/?node=disk%3Dssd&sort=fullest", "/ui/nodes?node=gpu", "/ui/nodes/node-6", "/ui/pods?namespace=default"]
LARGE = ["/", "/ui/pods/default/too-large"]


def violations(page: Page) -> list[str]:
    """Each with the rule and the element."""
    broken_rules: list[dict[str, Any]] = Axe().run(page, options=OPTIONS).response["violations"]
    return [f"{rule['id']}: {node['html'][:160]}" for rule in broken_rules for node in rule["nodes"]]


def on_each_screen(
    page: Page, looks: Iterable[tuple[int, Literal["light", "dark"]]] = LOOKS[:2]
) -> dict[str, list[str]]:
    """By width and light, what was found; where nothing was is left out. The colours do not depend on the width."""
    violations_by_look: dict[str, list[str]] = {}
    page.mouse.move(0, 0)  # nothing under the pointer has its tooltip open
    for width, light in looks:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=light, reduced_motion="reduce")
        if texts := violations(page):
            violations_by_look[f"{width} {light}"] = texts
    return violations_by_look


@pytest.mark.parametrize("view", MAIN)
def test_axe_finds_nothing_on_main_pages(still: Running, open_page: OpenPage, view: str) -> None:
    assert on_each_screen(open_page(f"{still.url}{view}"), LOOKS) == {}


@pytest.mark.slow
@pytest.mark.parametrize("view", STILL)
def test_axe_finds_nothing_on_other_pages(still: Running, open_page: OpenPage, view: str) -> None:
    assert on_each_screen(open_page(f"{still.url}{view}")) == {}


@pytest.mark.slow
@pytest.mark.parametrize("view", BUSY)
def test_axe_finds_nothing_where_pods_wait_or_nodes_are_filtered(busy: Running, open_page: OpenPage, view: str) -> None:
    assert on_each_screen(open_page(f"{busy.url}{view}")) == {}


@pytest.mark.slow
def test_axe_finds_nothing_in_the_palette_and_the_list_of_keys(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)
    page.keyboard.press("/")
    page.keyboard.type("web")
    expect(page.locator("#found").get_by_role("option").first).to_be_visible()
    assert on_each_screen(page) == {}

    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert on_each_screen(page) == {}


@pytest.mark.slow
@pytest.mark.parametrize("view", LARGE)
def test_axe_finds_nothing_with_thousands_of_nodes(large: Running, open_page: OpenPage, view: str) -> None:
    assert on_each_screen(open_page(f"{large.url}{view}")) == {}


@pytest.mark.slow
def test_axe_finds_nothing_on_pages_of_decisions(deciding: Running, open_page: OpenPage) -> None:
    items = httpx.get(f"{deciding.url}/v1/decisions", timeout=DEADLINE, trust_env=False).json()["items"]
    refused = next(decision["id"] for decision in items if decision["outcome"] == "Unschedulable")

    for view in ("/ui/history", f"/ui/decisions/{refused}"):
        assert on_each_screen(open_page(f"{deciding.url}{view}")) == {}


@pytest.fixture
def shadowing(browser: Browser) -> Iterator[Running]:
    """It goes on until the pages are closed that a test has opened: tests ask for it before `open_page`."""
    with running("--shadow") as service:
        yield service


@pytest.mark.slow
def test_axe_finds_nothing_on_the_page_of_agreement_and_in_events(shadowing: Running, open_page: OpenPage) -> None:
    shadowing.create("/api/v1/namespaces/default/pods", pod("too-large", {"cpu": "900"}, priority="default"))
    page = open_page(f"{shadowing.url}/ui/agreement")
    assert on_each_screen(page) == {}

    page = open_page(f"{shadowing.url}/ui/pods/default/too-large")
    expect(page.locator("#story [data-what=refused]")).not_to_have_count(0)
    page.get_by_role("link", name="Show the events").click()
    expect(page.locator("#events tbody tr")).not_to_have_count(0)
    assert on_each_screen(page) == {}


@pytest.mark.slow
def test_axe_finds_nothing_in_the_answer_to_a_what_if(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.emulate_media(
        reduced_motion="reduce"
    )  # while the page glides to the answer, its header covers parts of the form
    page.get_by_label("Nodes to drain").fill("node-a1")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .cascade li").first).to_be_visible()

    assert on_each_screen(page) == {}


@pytest.mark.slow
def test_axe_finds_nothing_in_what_is_offered_before_a_drain(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/nodes")
    page.locator("#actions-node-a2 summary").click()

    assert on_each_screen(page) == {}


@pytest.mark.slow
def test_axe_finds_nothing_in_the_refusal_of_a_what_if(still: Running, open_page: OpenPage) -> None:
    open_page.expected.append("422")
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("kind: [")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .alert")).to_be_visible()

    assert on_each_screen(page) == {}


@pytest.mark.slow
def test_axe_finds_nothing_where_one_signs_in_and_out(guarded: str, open_page: OpenPage) -> None:
    open_page.expected.append("401")
    page = open_page(guarded)
    assert on_each_screen(page) == {}

    page.get_by_label("Token of the cluster").fill("right")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    assert on_each_screen(page) == {}


@pytest.mark.slow
def test_axe_finds_nothing_on_the_page_of_a_missing_pod(still: Running, open_page: OpenPage) -> None:
    open_page.expected.append("404")

    assert on_each_screen(open_page(f"{still.url}/ui/pods/shop/nobody")) == {}
