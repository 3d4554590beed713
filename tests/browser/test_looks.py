"""How the page looks and feels: thousands of nodes, light and dark, with a keyboard alone, on small screens, under its
policy.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import MANY
from tests.kit.service import Running

VIEWS = (
    "/",
    "/ui/nodes",
    "/ui/nodes/node-a1",
    "/ui/pods/shop/web-6",
    "/ui/history",
    "/ui/what-if",
    "/ui/scheduler",
    "/ui/pods",
)


def luminance(page: Page, selector: str, what: str) -> float:
    colour = page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{what}")
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.slow
def test_thousands_of_nodes_are_a_few_elements_and_each_can_be_pointed_at(large: Running, open_page: OpenPage) -> None:
    page = open_page(large.url)
    expect(page.locator(".grid-holder")).to_have_count(5)

    holder = page.locator(".grid-holder").nth(1)
    side = holder.evaluate("holder => holder.getBoundingClientRect().width / holder.dataset.columns")
    for _ in range(20):  # a page that draws itself again takes the tip away until the mouse moves
        holder.hover(position={"x": 3.5 * side, "y": 0.5 * side})
        if "node-1003" in page.locator("#tip").inner_text():
            break
        page.mouse.move(1, 1)
        page.wait_for_timeout(100)

    expect(page.locator("#tip")).to_contain_text("node-1003")
    expect(page.locator("#tip")).to_contain_text("% of 16 cpu")
    assert page.evaluate("document.querySelectorAll('*').length") < 1000
    assert side >= 8, "a cell is large enough to be pointed at"
    assert sum((cells.get_attribute("d") or "").count("z") for cells in page.locator("path.cell").all()) == MANY


@pytest.mark.slow
def test_the_nodes_of_a_large_cluster_are_walked_with_the_arrow_keys(large: Running, open_page: OpenPage) -> None:
    page = open_page(large.url)
    page.locator(".grid-holder").first.focus()

    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#spoken")).to_contain_text("node-0102")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_contain_text("node-0102")
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.slow
def test_a_pod_that_thousands_of_nodes_refuse_has_few_rows_and_one_map(large: Running, open_page: OpenPage) -> None:
    """Nodes that all plugins answer alike share a row; the map tells in which zone which plugin refuses."""
    page = open_page(f"{large.url}/ui/pods/default/too-large")

    expect(page.locator("#waterfall h2")).to_have_text("From 5,000 nodes to none")
    counts = [int(text.replace(",", "")) for text in page.locator("#picture tbody th").all_inner_texts()]
    assert len(counts) == 3
    assert sum(counts) == MANY
    expect(page.locator("#where .legend")).to_contain_text("TaintToleration 975")
    expect(page.locator("#where .grid-holder")).to_have_count(5)


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_dark_is_dark_and_light_is_light(still: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{still.url}{view}")

    assert luminance(page, "html", "backgroundColor") > 0.85
    assert luminance(page, "h1", "color") < 0.3
    page.emulate_media(color_scheme="dark")
    assert luminance(page, "html", "backgroundColor") < 0.15
    assert luminance(page, "h1", "color") > 0.7


def test_the_switch_overrules_the_system_and_is_remembered(still: Running, open_page: OpenPage) -> None:
    page = open_page(still.url)
    switch = page.locator("#theme")

    for _ in range(2):
        switch.click()
    page.reload()

    assert luminance(page, "html", "backgroundColor") < 0.15
    expect(switch).to_have_accessible_name("Colours: dark")
    switch.click()
    assert luminance(page, "html", "backgroundColor") > 0.85


@pytest.mark.slow
def test_everything_can_be_reached_with_the_keyboard(still: Running, open_page: OpenPage) -> None:
    """Skip to content; find a pod by name; open it; leave it again with another name."""
    page = open_page(still.url)

    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("web-6")
    expect(page.locator("#found").get_by_role("option", selected=True)).to_contain_text("web-6")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_contain_text("web-6")
    page.keyboard.press("j")
    expect(page.locator("main a:focus, main summary:focus")).to_have_count(1)


@pytest.mark.slow
def test_nodes_are_walked_with_the_arrow_keys(still: Running, open_page: OpenPage) -> None:
    page = open_page(still.url)
    page.locator("#node-node-a1").focus()

    page.keyboard.press("ArrowRight")

    expect(page.locator("#node-node-a2")).to_be_focused()


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_controls_have_names_and_tables_have_heads(still: Running, open_page: OpenPage, view: str) -> None:
    """Links, buttons, fields and pictures have names, there is one heading of the first rank, and tables have heads."""
    page = open_page(f"{still.url}{view}")

    nameless = page.evaluate(
        """[...document.querySelectorAll('a, button, input, textarea, select, svg[role=img]')].filter(e =>
           !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"""
    )

    assert nameless == []
    expect(page.locator("h1")).to_have_count(1)
    assert page.locator("table").count() == page.locator("table:has(th[scope=col])").count()
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_no_screen_is_too_narrow(still: Running, open_page: OpenPage, view: str) -> None:
    page = open_page(f"{still.url}{view}", width=390)

    too_wide = {}
    for width in (390, 700, 900, 1200, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        too_wide[width] = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert {width: much for width, much in too_wide.items() if much > 0} == {}


def test_the_policy_is_in_force(still: Running, open_page: OpenPage) -> None:
    """A script that somebody smuggles in is not run, and its style not applied."""
    page = open_page(still.url)
    policy = page.request.get(still.url).headers["content-security-policy"]

    violated = page.evaluate(
        """() => new Promise(resolve => {
             const found = [];
             document.addEventListener('securitypolicyviolation', event => {
               found.push(event.effectiveDirective);
               if (found.length === 2) resolve(found.sort());
             });
             const script = document.createElement('script');
             script.textContent = 'window.smuggled = true';
             document.body.append(script);
             document.body.insertAdjacentHTML('beforeend', '<p style="color: red">x</p>');
           })"""
    )

    assert "default-src 'none'" in policy
    assert violated == ["script-src-elem", "style-src-attr"]
    assert page.evaluate("window.smuggled") is None
    open_page.expected.append("Content Security Policy")


@pytest.mark.slow
def test_cpu_and_memory_are_two_sizes_of_the_same(still: Running, open_page: OpenPage) -> None:
    page = open_page(still.url)
    by_cpu = page.locator("[data-node=node-a1] svg").inner_html()

    page.get_by_label("Show", exact=True).select_option("memory")

    expect(page).to_have_url(re.compile("by=memory"))
    expect(page.get_by_label("Show", exact=True)).to_have_value("memory")
    assert page.locator("[data-node=node-a1] svg").inner_html() != by_cpu


@pytest.mark.slow
def test_missing_pod_is_reported_with_a_link_back(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/nobody")
    open_page.expected.append("404")

    expect(page.locator("h1")).to_have_text("Not found")
    page.get_by_role("link", name="Back to the cluster").click()
    expect(page.locator("h1")).to_contain_text("2 pending pods")
