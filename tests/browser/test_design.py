"""What holds on every page: five sizes of type, priorities that can be told apart, a footer, a frame also where nothing
is.
"""

import itertools
import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from api.ui.frame import assets
from extender import __version__
from tests.browser.conftest import OpenPage
from tests.kit.service import Running

VIEWS = (
    "/",
    "/ui/nodes",
    "/ui/nodes/node-a1",
    "/ui/pods/shop/web-6",
    "/ui/pods/shop/web-0",
    "/ui/history",
    "/ui/what-if",
    "/ui/help",
)
SIZES = {12, 14, 16, 20, 28}
SIZES_OF_TEXTS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), sizes = {};
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (text && element.getClientRects().length) sizes[parseFloat(getComputedStyle(element).fontSize)] = text.slice(0, 40);
  }
  return Object.entries(sizes);
}"""
LEAST_STEP = 9.0
"""CIE lightness, 0 to 100; about 2 can just be seen where colours touch."""


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [1440, 400])
def test_pages_use_five_sizes_of_type(still: Running, open_page: OpenPage, view: str, width: int) -> None:
    page = open_page(f"{still.url}{view}", width=width)

    other = {float(size): text for size, text in page.evaluate(SIZES_OF_TEXTS) if float(size) not in SIZES}

    assert other == {}


def lightness(page: Page, name: str) -> float:
    """What is left of a colour on a grey printer."""
    colour: str = page.evaluate(
        """name => { const i = document.createElement('i'); i.className = name; document.body.append(i);
                     const found = getComputedStyle(i).backgroundColor; i.remove(); return found; }""",
        name,
    )
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(number) / 255 for number in re.findall(r"\d+", colour)[:3])
    )
    return float(116 * (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 3) - 16)


@pytest.mark.slow
@pytest.mark.parametrize("light", ["light", "dark"])
def test_priorities_are_distinguishable_in_grey(
    still: Running, open_page: OpenPage, light: Literal["light", "dark"]
) -> None:
    """Each step is darker than the one below it, or each is lighter: their order is seen without colour."""
    page = open_page(still.url, dark=light == "dark")

    scale = [lightness(page, f"p{step}") for step in range(7)]

    steps = [after - before for before, after in itertools.pairwise(scale)]
    assert min(map(abs, steps)) >= LEAST_STEP
    assert len({step > 0 for step in steps}) == 1


@pytest.mark.slow
def test_priorities_are_called_by_their_classes(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")

    expect(page.locator(".facts .chip")).to_have_text(re.compile("[a-z]"))


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_every_page_says_its_version_and_leads_to_help_and_api(still: Running, open_page: OpenPage, view: str) -> None:
    footer = open_page(f"{still.url}{view}").get_by_role("contentinfo")

    expect(footer).to_contain_text(f"Reprieve {__version__}")
    expect(footer.get_by_role("link", name="Help")).to_have_attribute("href", "/ui/help")
    expect(footer.get_by_role("link", name="API")).to_have_attribute("href", "/docs")


@pytest.mark.slow
@pytest.mark.parametrize(
    "view", ["/ui/pods/shop/nobody", "/ui/nodes/nothing", "/ui/decisions/99999", "/ui/no/such/page"]
)
def test_missing_object_is_reported_within_the_frame(still: Running, open_page: OpenPage, view: str) -> None:
    open_page.expected.append("404")
    page = open_page(f"{still.url}{view}")

    expect(page.locator("h1")).to_have_text("Not found")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Nodes").click()
    expect(page.locator("h1")).to_contain_text("Nodes")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_layout_does_not_shift_while_a_page_is_drawn(still: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{still.url}{view}")
    page.reload(wait_until="networkidle")

    shifted = page.evaluate(
        """() => new Promise(resolve => {
             let sum = 0;
             new PerformanceObserver(list => list.getEntries().forEach(each => { sum += each.value; }))
               .observe({ type: 'layout-shift', buffered: true });
             setTimeout(() => resolve(sum), 300);
           })"""
    )

    assert shifted < 0.01


def test_scripts_and_styles_are_few(still: Running, open_page: OpenPage) -> None:
    """All that a browser loads for the page, before it is packed."""
    assert sum(len(file.content) for file in assets().files.values()) < 100_000
