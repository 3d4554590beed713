"""What axe-core finds on every page, in light and dark, on a wide and on a narrow screen: nothing.

The script comes in by the browser's debugging protocol, so that the page's policy stays as it is.
"""

from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import SECONDS, Running

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OPTIONS = {"runOnly": {"type": "tag", "values": LEVELS}, "resultTypes": ["violations"]}
LOOKS: list[tuple[int, Literal["light", "dark"]]] = [(1440, "light"), (1440, "dark"), (400, "light")]

STILL = [
    "/", "/?by=memory&find=nobody", "/ui/nodes?sort=-cpu-free", "/ui/nodes?node=nobody", "/ui/nodes/node-a1", "/ui/pods/shop/web-6",
    "/ui/pods/batch/train-3", "/ui/pods/shop/web-0", "/ui/history", "/ui/what-if",
]  # fmt: skip
LARGE = ["/", "/ui/pods/default/too-large"]


def violations(page: Page) -> list[str]:
    """Each with the rule and the element."""
    found: list[dict[str, Any]] = Axe().run(page, options=OPTIONS).response["violations"]
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found for node in rule["nodes"]]


def on_all_screens(page: Page) -> dict[str, list[str]]:
    """By width and light, what was found; where nothing was is left out. The colours do not depend on the width."""
    found: dict[str, list[str]] = {}
    for width, light in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=light, reduced_motion="reduce")
        if said := violations(page):
            found[f"{width} {light}"] = said
    return found


@pytest.mark.parametrize("view", STILL)
def test_nothing_is_found_on_any_page(still: Running, open_page: OpenPage, view: str) -> None:
    assert on_all_screens(open_page(f"{still.url}{view}")) == {}


@pytest.mark.parametrize("view", LARGE)
def test_nor_where_there_are_thousands_of_nodes(large: Running, open_page: OpenPage, view: str) -> None:
    assert on_all_screens(open_page(f"{large.url}{view}")) == {}


def test_nor_in_what_is_told_of_decisions(deciding: Running, open_page: OpenPage) -> None:
    items = httpx.get(f"{deciding.url}/v1/decisions", timeout=SECONDS, trust_env=False).json()["items"]
    refused = next(each["id"] for each in items if each["outcome"] == "Unschedulable")

    for view in ("/ui/history", f"/ui/decisions/{refused}"):
        assert on_all_screens(open_page(f"{deciding.url}{view}")) == {}


def test_nor_in_the_answer_to_a_what_if(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Nodes to drain").fill("node-a1")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .cascade li").first).to_be_visible()

    assert on_all_screens(page) == {}


def test_nor_in_what_a_what_if_refuses(still: Running, open_page: OpenPage) -> None:
    open_page.expected.append("422")
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("kind: [")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .alert")).to_be_visible()

    assert on_all_screens(page) == {}


def test_nor_where_one_signs_in_and_out(guarded: str, open_page: OpenPage) -> None:
    open_page.expected.append("401")
    page = open_page(guarded)
    assert on_all_screens(page) == {}

    page.get_by_label("Token of the cluster").fill("right")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    assert on_all_screens(page) == {}


def test_nor_where_there_is_nothing_to_show(still: Running, open_page: OpenPage) -> None:
    open_page.expected.append("404")

    assert on_all_screens(open_page(f"{still.url}/ui/pods/shop/nobody")) == {}
