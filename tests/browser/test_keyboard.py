"""With a keyboard alone: what has the focus is seen, keeps it while the page is drawn again, and says what a pointer
would hear.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.service import Running
from tests.kit.waiting import DEADLINE

FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return null;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return {
    what: element.outerHTML.slice(0, 120),
    isSeen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    isThere: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""


@pytest.mark.parametrize("view", ["/", "/ui/nodes?sort=-cpu", "/ui/pods/shop/web-6", "/ui/what-if"])
def test_each_step_of_the_tab_key_is_seen(still: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{still.url}{view}")

    steps = []
    for _ in range(120):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        steps.append(focused)

    assert len(steps) > 10
    assert [step["what"] for step in steps if not (step["isSeen"] and step["isThere"])] == []
    assert "skip" in steps[0]["what"]


def test_escape_hides_the_tip_and_keeps_the_focus(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")
    page.locator("#picture .which summary").first.focus()

    page.keyboard.press("Shift+Tab")
    expect(page.locator("#tip")).to_contain_text("NodeResourcesFit")
    page.keyboard.press("Escape")

    expect(page.locator("#tip")).to_be_hidden()
    expect(page.locator("#picture td:focus")).to_have_count(1)


@pytest.mark.slow
def test_a_grid_that_is_drawn_again_keeps_focus_and_place(large: Running, open_page: OpenPage) -> None:
    page = open_page(large.url)
    expect(page.locator("#live")).to_have_text("live")
    old = page.locator(".grid-holder").nth(2).element_handle()
    page.get_by_role("link", name="zone-2").focus()
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#spoken")).to_contain_text("node-2002")

    with one_more_pod(large):
        page.wait_for_function("old => !old.isConnected", arg=old)
        expect(page.locator(".grid-holder").nth(2)).to_be_focused()
        expect(page.locator(".grid-holder:focus .cursor")).to_be_visible()
        page.keyboard.press("ArrowRight")

        expect(page.locator("#spoken")).to_contain_text("node-2003")
        assert page.evaluate(FOCUSED)["isThere"]


def test_focused_link_keeps_focus_when_other_links_have_the_same_target(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")
    expect(page.locator("#live")).to_have_text("live")
    link = page.locator("#preemption tr.chosen th a")
    old = link.element_handle()
    link.focus()

    with one_more_pod(still, "batch"):
        page.wait_for_function("old => !old.isConnected", arg=old)

        expect(link).to_be_focused()


def test_a_table_that_follows_the_cluster_stays_sorted(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/nodes")
    page.get_by_role("link", name="cpu free").click()
    expect(page.get_by_role("columnheader", name="cpu free")).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#live")).to_have_text("live")
    names = first_names(page)
    old = page.locator("tbody tr").first.element_handle()

    with one_more_pod(still, "batch"):
        page.wait_for_function("old => !old.isConnected", arg=old)

        assert first_names(page) == names == ["node-a4", "node-b4", "node-c4", "node-c1"]
        page.get_by_role("link", name="cpu free").click()
        assert first_names(page) == ["node-b3", "node-a2", "node-a3", "node-b2"]


def first_names(page: Page) -> list[str]:
    return page.locator("tbody th").all_inner_texts()[:4]


@contextmanager
def one_more_pod(service: Running, priority: int | str = 0) -> Iterator[None]:
    """News for all open pages, twice: others find the service as it was."""
    service.create("/api/v1/namespaces/default/pods", pod("one-more", {"cpu": "100m"}, priority=priority))
    try:
        yield
    finally:
        httpx.delete(
            f"{service.kubernetes}/api/v1/namespaces/default/pods/one-more", timeout=DEADLINE, trust_env=False
        ).raise_for_status()
