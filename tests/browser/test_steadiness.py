"""5,000 nodes, 30,000 pods and 500 that wait: pages stay small, nothing moves under the eyes, and a tab that is left
open does not grow.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_keyboard import one_more_pod
from tests.kit.service import Running
from tests.kit.waiting import DEADLINE

pytestmark = pytest.mark.slow

WATCHES = """() => {
  globalThis.moved = [];
  const named = node => node === null ? 'what is gone' : node.nodeType === Node.TEXT_NODE
    ? `text in ${named(node.parentNode)}` : `${node.localName}#${node.id}.${node.getAttribute('class')} "${node.textContent.slice(0, 20)}"`;
  const at = place => `(${place.x}, ${place.y}, ${place.width}, ${place.height})`;
  const told = each => `${named(each.node)} from ${at(each.previousRect)} to ${at(each.currentRect)}`;
  const add = list => list.getEntries().forEach(each => globalThis.moved.push(each.value, ...each.sources.map(told)));
  new PerformanceObserver(add).observe({type: 'layout-shift', buffered: BUFFERED});
}"""
FROM_THE_BEGINNING, FROM_NOW_ON = WATCHES.replace("BUFFERED", "true"), WATCHES.replace("BUFFERED", "false")
UPDATES = 6
MOST_GROWTH = 3_000_000
"""Bytes of the heap: about a picture of the map."""


def drawn(page: Page) -> None:
    """Waits until the page has been drawn twice, and whoever watches it has been told."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")


def heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


@pytest.mark.parametrize(
    "view", ["/", "/?sort=fullest&node=dedicated", "/ui/nodes", "/ui/pods", "/ui/pods?namespace=default"]
)
def test_shown_page_is_small_and_does_not_shift(crowded: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{crowded.url}{view}")
    expect(page.locator("#live")).to_have_text("live")

    page.evaluate(FROM_THE_BEGINNING)

    drawn(page)
    assert page.evaluate("moved") == []
    assert page.evaluate("document.querySelectorAll('*').length") < 9000


@pytest.mark.parametrize("view", ["/", "/ui/nodes"])
def test_slowly_arriving_page_does_not_shift(crowded: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{crowded.url}{view}", slow=True)
    expect(page.locator("#live")).to_have_text("live", timeout=DEADLINE * 1000)

    page.evaluate(FROM_THE_BEGINNING)

    drawn(page)
    assert page.evaluate("moved") == []


def test_the_first_page_has_all_that_wait_in_two_groups_and_one(crowded: Running, open_page: OpenPage) -> None:
    page = open_page(crowded.url)

    expect(page.locator("h1")).to_have_text("500 pending pods, 3 reasons")
    expect(page.locator("#problems summary").first).to_contain_text("Insufficient nvidia.com/gpu")
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


def test_an_update_leaves_the_eyes_where_they_are(crowded: Running, open_page: OpenPage) -> None:
    page = open_page(crowded.url)
    expect(page.locator("#live")).to_have_text("live")
    page.locator("#reason-1").evaluate("element => element.open = false")
    page.evaluate("scrollTo(0, 700)")
    before = page.evaluate("scrollY")
    drawn(page)
    page.evaluate(FROM_NOW_ON)

    one_update(crowded, page)

    assert page.evaluate("scrollY") == before
    assert page.locator("#reason-1").get_attribute("open") is None
    drawn(page)
    assert page.evaluate("moved") == []


def test_a_tab_that_is_left_open_does_not_grow(crowded: Running, open_page: OpenPage) -> None:
    page = open_page(crowded.url)
    expect(page.locator("#live")).to_have_text("live")
    elements = page.evaluate("document.querySelectorAll('*').length")
    for _ in range(2):
        one_update(crowded, page)
    first = heap(page)

    for _ in range(UPDATES):
        one_update(crowded, page)

    assert heap(page) - first < MOST_GROWTH
    assert abs(page.evaluate("document.querySelectorAll('*').length") - elements) < 40


def one_update(service: Running, page: Page) -> None:
    """One more pod waits, which the page shows; and then it does no more."""
    heading = page.locator("h1")
    with one_more_pod(service):
        expect(heading).to_contain_text("501 pending pods", timeout=DEADLINE * 1000)
    expect(heading).to_contain_text("500 pending pods", timeout=DEADLINE * 1000)
