"""Anything is found by a part of its name, from every page and without a mouse; and whatever has a name leads to it."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running


def typed(page: Page, keys: str, words: str) -> None:
    page.keyboard.press(keys)
    expect(page.get_by_role("combobox", name="Find")).to_be_focused()
    page.keyboard.type(words)


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["/", "Control+k"])
@pytest.mark.parametrize(
    ("words", "option", "heading"),
    [
        pytest.param("train-3", "pod train-3", "train-3", id="a pod"),
        pytest.param("node-4", "node node-4", "node-4", id="a node"),
        pytest.param("deploy web", "workload Deployment/web", "Deployment/web", id="a workload"),
        pytest.param("default", "namespace default", "default", id="a namespace"),
    ],
)
def test_anything_is_found_while_one_types(
    busy: Running, open_page: OpenPage, keys: str, words: str, option: str, heading: str
) -> None:
    page = open_page(f"{busy.url}/ui/what-if")

    typed(page, keys, words)
    expect(page.locator("#found").get_by_role("option").first).to_contain_text(option)
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_contain_text(heading)


def test_the_list_is_walked_with_the_arrow_keys_and_left_with_escape(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    typed(page, "/", "node")
    expect(page.locator("#found").get_by_role("option")).to_have_count(8)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#found").get_by_role("option", selected=True)).to_contain_text("node-2")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#found").get_by_role("option", selected=True)).to_contain_text("node-1")
    page.keyboard.press("Escape")

    expect(page.locator("#palette")).to_be_hidden()
    expect(page.locator("h1")).to_be_visible()


@pytest.mark.slow
def test_finding_an_unknown_name_shows_that_there_is_none(still: Running, open_page: OpenPage) -> None:
    page = open_page(still.url)

    typed(page, "/", "no-such-name")

    expect(page.locator("#found")).to_have_text("No pod, node, workload or namespace has this name.")


@pytest.mark.slow
def test_question_mark_shows_the_keys(still: Running, open_page: OpenPage) -> None:
    page = open_page(still.url)

    page.keyboard.press("?")

    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("find anything by name")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


@pytest.mark.slow
def test_names_are_walked_with_j_and_k(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/nodes")

    for key in "jjjk":
        page.keyboard.press(key)

    expect(page.get_by_role("link", name="node-a2", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("node-a2")


@pytest.mark.slow
def test_letters_that_are_written_are_no_keys(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("")

    page.get_by_label("Objects to create").press_sequentially("j/k?")

    expect(page.get_by_label("Objects to create")).to_have_value("j/k?")
    expect(page.locator("dialog[open]")).to_have_count(0)


@pytest.mark.slow
def test_without_scripts_there_is_a_page_to_find_things(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/find")

    page.get_by_role("searchbox").fill("web-6")
    page.get_by_role("button", name="Find").click()
    page.locator("main").get_by_role("link", name="web-6").click()

    expect(page.locator("h1")).to_contain_text("web-6")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "heading"), [("nodes", "Nodes"), ("pods", "Pods"), ("cpu", "12 nodes"), ("memory", "12 nodes")]
)
def test_the_figures_of_the_header_lead_to_what_they_count(
    still: Running, open_page: OpenPage, figure: str, heading: str
) -> None:
    page = open_page(f"{still.url}/ui/what-if")

    page.locator("#figures").get_by_role("link", name=figure).click()

    expect(page.locator("main")).to_contain_text(heading)


@pytest.mark.slow
def test_pods_are_listed_found_and_sorted_with_reasons_of_those_that_wait(still: Running, open_page: OpenPage) -> None:
    """Nobody has written a reason here: it is the one that `reprieve why` computes."""
    page = open_page(f"{still.url}/ui/nodes")
    page.get_by_role("navigation").get_by_role("link", name="Pods").click()
    rows = page.locator(".pods-table tbody tr")
    expect(rows.nth(0)).to_contain_text("batch/train-3")
    expect(rows.nth(0)).to_contain_text("11 Insufficient nvidia.com/gpu")

    page.get_by_role("link", name="node", exact=True).click()
    page.get_by_role("searchbox").fill("shop web")
    page.get_by_label("State").select_option("scheduled")
    page.get_by_role("button", name="Show").click()

    expect(rows).to_have_count(6)
    expect(rows.nth(0)).to_contain_text("shop/web-0")
    expect(rows.nth(0)).to_contain_text("node-a1")


@pytest.mark.slow
def test_of_many_pods_some_are_shown_and_the_others_counted(crowded: Running, open_page: OpenPage) -> None:
    page = open_page(f"{crowded.url}/ui/pods?q=pod-")

    expect(page.locator(".pods-table tbody tr")).to_have_count(500)
    expect(page.get_by_text("29,500 more pods")).to_be_visible()


@pytest.mark.slow
def test_from_a_namespace_to_a_workload_to_its_pods_and_their_node(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/ui/pods")

    page.get_by_label("Namespace", exact=True).select_option("default")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Deployment/web").first.click()
    expect(page.locator("h1")).to_contain_text("Deployment/web 10 pods")
    page.get_by_role("link", name="node-3").click()

    expect(page.locator("h1")).to_contain_text("node-3")
