"""History: what was decided, found by what people know: outcome, pod, namespace, node, plugin, and when."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.objects import node
from tests.kit.service import Running


@pytest.fixture(scope="module")
def happened(deciding: Running) -> Running:
    """A pod that preempts, and one that fits nowhere."""
    deciding.create(
        "/api/v1/namespaces/default/pods", pod("vip", {"cpu": "3500m", "memory": "4Gi"}, priority="production")
    )
    deciding.create("/api/v1/namespaces/default/pods", pod("never", {"cpu": "900"}, priority="default"))
    return deciding


def filtered(page: Page, **fields: str) -> Page:
    for label, value in fields.items():
        form = page.get_by_role("search", name="Decisions")
        if label == "Outcome":
            form.get_by_role("combobox", name=label).select_option(label=value)
        else:
            form.get_by_role("textbox", name=label.replace("_", " ")).fill(value)
    page.get_by_role("button", name="Filter").click()
    return page


def history(happened: Running, open_page: OpenPage) -> Page:
    page = open_page(f"{happened.url}/ui/history")
    expect(page.locator("#decisions tbody tr", has_text="never").first).to_be_visible()
    expect(page.locator("#decisions tbody tr", has_text="vip").first).to_be_visible()
    return page


@pytest.mark.slow
def test_decisions_are_found_by_outcome_pod_namespace_node_and_plugin(happened: Running, open_page: OpenPage) -> None:
    page = history(happened, open_page)
    rows = page.locator("#decisions tbody tr")

    filtered(page, Outcome="unschedulable", Pod_or_workload="never")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("default/never")
    filtered(page, Refused_by_plugin="NodeResourcesFit")
    expect(rows).to_have_count(1)
    filtered(page, Refused_by_plugin="NodePorts")
    expect(page.locator("#decisions .empty")).to_have_text("No decisions match.")
    page.get_by_role("link", name="Show all").click()
    filtered(page, Namespace="default", Outcome="found a node")
    node = rows.filter(has_text="default/vip").locator("td a").last.inner_text()
    filtered(page, Node=node)
    expect(rows.filter(has_text="default/vip")).to_have_count(1)


@pytest.mark.slow
def test_preemption_is_found_by_a_part_of_its_victims_name(happened: Running, open_page: OpenPage) -> None:
    page = history(happened, open_page)
    story = page.locator("details.preemption", has_text="default/vip")
    victim = story.locator(".chosen .victim a").first.inner_text()
    assert "/" in victim

    filtered(page, Pod_or_workload=victim.rpartition("/")[2][:-1])

    expect(story).to_have_count(1)
    filtered(page, Pod_or_workload="nobody-is-called-so")
    expect(page.locator("#preemptions .empty")).to_be_visible()


@pytest.mark.slow
def test_a_range_of_time_is_chosen_and_a_part_of_it_is_brushed(happened: Running, open_page: OpenPage) -> None:
    page = history(happened, open_page)
    page.emulate_media(reduced_motion="reduce")  # while one page fades into the next, nothing is under the pointer
    ranges = page.get_by_role("group", name="Range of time")
    expect(ranges.get_by_role("link")).to_have_text(["15 minutes", "1 hour", "6 hours", "24 hours", "7 days", "all"])
    ranges.get_by_role("link", name="15 minutes").click()
    expect(ranges.locator("[aria-current]")).to_have_text("15 minutes")
    chart = page.locator(".timeline-holder").evaluate("each => each.getBoundingClientRect().toJSON()")

    page.mouse.move(chart["x"] + chart["width"] * 0.25, chart["y"] + 20)
    page.mouse.down()
    page.mouse.move(chart["x"] + chart["width"] * 0.5, chart["y"] + 20, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile("since=.*until="))

    expect(page.locator("#decisions .empty")).to_have_text("No decisions match.")
    expect(page.get_by_label("From (UTC)")).to_have_value(re.compile("Z$"))


@pytest.mark.slow
def test_a_bar_leads_to_the_decisions_of_its_time(happened: Running, open_page: OpenPage) -> None:
    page = history(happened, open_page)

    page.locator(".timeline a:has(rect)").last.dispatch_event("click")

    page.wait_for_url(re.compile("since=.*until="))
    expect(page.locator("#decisions tbody tr").first).to_be_visible()


@pytest.mark.slow
def test_a_chart_has_a_scale_and_the_clock_of_the_reader(happened: Running, open_page: OpenPage) -> None:
    page = history(happened, open_page)

    expect(page.locator(".most")).to_have_text(re.compile(r"up to [1-9]"))
    expect(page.locator("#decisions time").first).to_have_attribute("data-tip", re.compile("local time\n.* UTC"))


@pytest.mark.slow
def test_equal_attempts_share_a_row(happened: Running, open_page: OpenPage) -> None:
    """A node that comes and does not help has the pod tried again."""
    page = history(happened, open_page)
    happened.create("/api/v1/nodes", node("tiny", "1"))
    happened.create("/api/v1/nodes", node("tinier", "1"))

    row = page.locator("#decisions tbody tr", has_text="never")
    expect(row.first).to_contain_text("of 1")
    filtered(page, Pod_or_workload="never")
    decisions = page.request.get(f"{happened.url}/v1/decisions?pod=default/never").json()["items"]
    assert len(decisions) > 1
    messages = {decision["message"] for decision in decisions}
    expect(row).to_have_count(len(messages))


@pytest.mark.parametrize("query", ["outcome=nothing", "range=1y", "since=yesterday", "until=0000-99-99"])
def test_an_address_that_cannot_be_read_says_what_can(still: Running, open_page: OpenPage, query: str) -> None:
    open_page.expected.append("400")
    page = open_page(f"{still.url}/ui/history?{query}")

    expect(page.locator("h1")).to_have_text("This address cannot be read")
    expect(page.locator(".problem p").first).to_contain_text(query.partition("=")[0])
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
