"""What if: a sample that works, links that can be sent, nodes like others, another configuration, few rows, and the
command.
"""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running

WORKLOAD = """apiVersion: apps/v1
kind: Deployment
metadata: {name: wide}
spec:
  replicas: 9
  selector: {matchLabels: {app: wide}}
  template:
    metadata: {labels: {app: wide}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "90"}}}]}
"""
LEAST_ALLOCATED = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]
"""


def try_it(page: Page) -> Page:
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .summary")).to_be_visible()
    return page


def test_the_sample_works_as_it_is(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_role("button", name="Insert a sample pod").click()
    try_it(page)

    expect(page.locator("#result .placements tbody tr")).to_contain_text(["default/sample"])


def test_moves_that_free_nodes_are_drawn_and_listed(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_role("group", name="Nodes to free").get_by_label("How many").fill("2")
    page.get_by_role("button", name="Plan the moves").click()

    expect(page.locator("#result .summary")).to_contain_text("2 nodes would be free after")
    expect(page.locator("#result svg text").filter(has_text="free")).to_have_count(2)
    expect(page.get_by_role("region", name="Moves").locator("tbody tr")).not_to_have_count(0)


def test_a_what_if_can_be_sent_as_a_link(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("")
    page.get_by_label("Nodes to drain").fill("node-a1 node-a2")
    page.get_by_label("Schedule the pending pods").check()
    answer = try_it(page).locator("#result .summary").inner_text()
    assert "drain=node-a1" in page.url

    later_page = open_page(page.url)

    expect(later_page.get_by_label("Nodes to drain")).to_have_value("node-a1 node-a2")
    expect(later_page.get_by_label("Objects to create")).to_have_value("")
    expect(later_page.get_by_label("Schedule the pending pods")).to_be_checked()
    expect(try_it(later_page).locator("#result .summary")).to_have_text(answer)


@pytest.mark.slow
def test_a_link_that_is_no_what_if_is_refused_in_words(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if#evil=1")
    expect(page.locator("#result .alert")).to_have_text('This link is not one to a what-if: it has the field "evil".')

    page = open_page(f"{still.url}/ui/what-if#manifest={'x' * 33_000}")
    expect(page.locator("#result .alert")).to_contain_text("This link is too long: 32,000 characters are read.")
    expect(page.get_by_label("Objects to create")).to_have_value("")


@pytest.mark.slow
def test_a_link_runs_no_script(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if#drain={quote('<img src=x onerror=alert(1)>')}")
    open_page.expected.append("422")

    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result .alert")).to_contain_text("not found")
    expect(page.locator("#result img")).to_have_count(0)


@pytest.mark.slow
def test_nodes_are_picked_by_a_part_of_their_names(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")

    page.get_by_label("Nodes to drain").press_sequentially("node-a1 b2")

    expect(page.locator("#node-names option")).to_have_count(1)
    expect(page.locator("#node-names option")).to_have_attribute("value", "node-a1 node-b2")


@pytest.mark.slow
def test_more_nodes_like_one_say_by_themselves_whether_pending_pods_fit(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("")
    page.get_by_role("group", name="Nodes to add").get_by_label("How many").fill("3")
    page.get_by_label("Like the node").fill("node-a1")

    expect(try_it(page).locator("#result .summary")).to_contain_text("1 of 2 pending pods would now fit")
    page.get_by_label("Schedule the pending pods").check()
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result .placements")).to_contain_text(re.compile(r"shop/web-6.*node-a1-new-\d"))


@pytest.mark.slow
def test_another_configuration_is_tried(still: Running, open_page: OpenPage) -> None:
    """Without the plugin that looks at resources the pod fits that fits nowhere."""
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("")
    page.get_by_label("Schedule the pending pods").check()
    try_it(page)
    expect(page.locator("#result .placements .badge.bad")).not_to_have_count(0)

    page.get_by_text("A different scheduler configuration").click()
    page.get_by_label("KubeSchedulerConfiguration").fill(LEAST_ALLOCATED)
    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result .placements .badge.bad")).to_have_count(0)


@pytest.mark.slow
def test_rows_that_say_the_same_are_one(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill(WORKLOAD)
    try_it(page)

    expect(page.locator("#result .placements tbody tr")).to_have_count(1)
    expect(page.locator("#result .placements tbody")).to_contain_text("and 8 more like it")


@pytest.mark.slow
def test_the_command_that_asks_the_same_can_be_copied(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Nodes to drain").fill("node-a1")
    try_it(page)
    page.get_by_text("The same as a command").click()

    command = page.locator("#result .command button[data-copy]").get_attribute("data-copy") or ""

    assert command == "reprieve whatif --drain node-a1"
