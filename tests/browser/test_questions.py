"""What people ask, asked by clicking: why is it pending, who would have to go, what if, what happened."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.service import Running


def test_a_click_leads_from_a_pending_pod_to_its_reason(still: Running, open_page: OpenPage) -> None:
    """The list names it beside most pages; its page tells the plugins, from all nodes to none."""
    page = open_page(f"{still.url}/ui/history")
    expect(page.locator("#pending a.row")).to_have_count(2)

    page.locator("#pending a.row", has_text="train-3").click()

    expect(page.locator("h1")).to_contain_text("train-3")
    expect(page.locator("#waterfall h2")).to_have_text("From 12 nodes to none")
    expect(page.locator("#waterfall")).to_contain_text("NodeResourcesFit")
    expect(page.locator("#waterfall")).to_contain_text("Insufficient nvidia.com/gpu")
    assert page.locator("#waterfall .bar").count() == 1 + page.locator("#waterfall .reasons").count()


def test_the_page_says_what_v1_says(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")

    answer = page.request.get(f"{still.url}/v1/explain/shop/web-6").json()

    expect(page.locator("#summary")).to_have_text(answer["summary"])
    expect(page.locator("p.message code")).to_have_text(answer["message"])
    expect(page.locator("#preemption tr.chosen th")).to_have_text(answer["preemption"]["node"])
    victims = page.locator("#preemption tr.chosen .victim > a").all_inner_texts()
    assert victims == [f"{row['pod']['namespace']}/{row['pod']['name']}" for row in answer["preemption"]["victims"]]


def test_a_preemption_is_seen_before_and_after_with_those_that_lost(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")
    before, after = page.locator("#preemption .pair > div").all()

    expect(before.locator("rect.leaves")).not_to_have_count(0)
    expect(after.locator("rect.leaves")).to_have_count(0)
    expect(after.locator("rect.arrives")).to_have_count(1)
    expect(page.locator("#preemption tbody tr:not(.chosen) td:last-child").first).not_to_be_empty()


def test_every_plugin_says_what_it_thinks_of_every_node_when_pointed_at(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")

    page.locator("#picture td.no").first.hover()

    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_contain_text("evicting pods may help")


def test_a_pasted_pod_is_tried_and_nothing_is_created(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    before = still.pods()
    page.get_by_label("Objects to create").fill(
        "kind: PriorityClass\napiVersion: scheduling.k8s.io/v1\nmetadata: {name: vip}\nvalue: 100000\n---\n"
        "kind: Pod\napiVersion: v1\nmetadata: {name: vip}\n"
        "spec: {priorityClassName: vip, containers: [{name: c, image: i, resources: {requests: {cpu: 3500m, memory: "
        "4Gi}}}]}\n"
    )

    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result h2").first).to_contain_text("What changes")
    expect(page.locator("#result")).to_contain_text("default/vip")
    expect(page.locator("#result .change rect.arrives").first).to_be_attached()
    expect(page.locator("#result .change rect.leaves").first).to_be_attached()
    expect(page.locator("#result .grid path.framed").first).to_be_attached()
    assert [item["metadata"]["uid"] for item in still.pods()] == [item["metadata"]["uid"] for item in before]


def test_draining_a_node_shows_where_its_pods_would_go(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("")
    page.get_by_label("Nodes to drain").fill("node-a1")

    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result .cascade li").first).to_contain_text("is evicted from node-a1 by the drain")


def test_malformed_manifest_is_reported_in_words(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/what-if")
    page.get_by_label("Objects to create").fill("kind: [")
    open_page.expected.append("422")

    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result .alert")).to_contain_text("yaml: ")


def test_an_open_page_follows_the_cluster_and_keeps_the_story_of_a_preemption(
    deciding: Running, open_page: OpenPage
) -> None:
    """Nobody reloads: the news of it comes by itself."""
    page = open_page(f"{deciding.url}/ui/history")
    expect(page.locator("#live")).to_have_text("live")

    deciding.create(
        "/api/v1/namespaces/default/pods", pod("vip", {"cpu": "3500m", "memory": "4Gi"}, priority="production")
    )

    story = page.locator("details.preemption", has_text="default/vip")
    expect(story).to_have_count(1)
    expect(story.locator("summary")).to_contain_text("preempted 1 pod on node-")
    expect(page.locator("#decisions tbody tr", has_text="default/vip").first).to_be_visible()
    expect(page.locator(".timeline .flag").first).to_be_attached()
    expect(story.locator(".change rect.leaves").first).to_be_attached()
    expect(story.locator(".change rect.arrives")).to_have_count(1)
    assert int(re.sub(r"\D", "", story.get_attribute("id") or "")) > 0


@pytest.mark.slow
def test_an_old_attempt_is_shown_as_it_was(deciding: Running, open_page: OpenPage) -> None:
    """From the attempts of a pod and from the history: the way to no node, and who refused each node first."""
    page = open_page(f"{deciding.url}/ui/history")
    page.locator("#decisions tbody tr", has_text="Unschedulable").last.locator(".when a").click()
    expect(page.locator("#then")).to_contain_text("As recorded at")
    expect(page.locator(".state")).to_have_text("Unschedulable")
    expect(page.locator("#waterfall h2")).to_contain_text("to none")
    expect(page.locator("#picture td.no, #picture td.never").first).to_be_attached()

    page.locator("#then a").click()
    page.locator("#story .when a").last.click()

    expect(page.locator("#then")).to_contain_text("As recorded at")


@pytest.mark.slow
def test_preempted_pod_says_that_it_was_preempted(deciding: Running, open_page: OpenPage) -> None:
    page = open_page(f"{deciding.url}/ui/history")
    victim = page.locator("details.preemption .chosen .victim a").first
    expect(victim).to_be_attached()
    name = victim.text_content()

    page.goto(f"{deciding.url}{victim.get_attribute('href')}")

    expect(page.locator("h1")).to_contain_text(str(name).partition("/")[2])
    expect(page.locator("#story [data-what=evicted]").first).to_contain_text("it was evicted from")
