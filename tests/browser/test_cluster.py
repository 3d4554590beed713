"""The first page says what is wrong; the map and the table of nodes show any resource, grouped, sorted and filtered."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import POOL
from tests.kit.service import Running


def names(page: Page, selector: str) -> list[str]:
    return [text.split()[0] for text in page.locator(selector).all_inner_texts()]


def test_why_do_sixteen_pods_wait(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    expect(page.locator("h1")).to_have_text("16 pending pods, 2 reasons")
    gpus, cpu = page.locator("#problems details").all()
    expect(gpus.locator("summary")).to_contain_text(re.compile("12.*Insufficient nvidia.com/gpu 2 nodes", re.DOTALL))
    assert gpus.locator("tbody th > a:first-child").all_inner_texts() == ["Job/train-0", "Job/train-1"]
    expect(cpu.locator("summary")).to_contain_text("Insufficient cpu 5 nodes")
    cpu.get_by_role("link", name="web-5d9-more-2").click()

    expect(page.locator("h1")).to_contain_text("web-5d9-more-2")


@pytest.mark.slow
def test_problems_stand_above_the_map(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    problems, cluster = (page.locator(selector).bounding_box() for selector in ("#problems", "#map"))

    assert problems is not None
    assert cluster is not None
    assert problems["y"] < 120
    assert problems["y"] + problems["height"] <= cluster["y"]
    expect(page.locator("#pending")).to_have_count(0)


@pytest.mark.slow
def test_nodes_that_are_not_well_are_named_and_found(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    page.get_by_role("link", name="1 node DiskPressure").click()

    assert names(page, "tbody th") == ["node-2"]
    expect(page.locator("mark").first).to_have_text("DiskPressure")


@pytest.mark.slow
def test_the_map_opens_on_a_resource_that_most_nodes_offer_and_shows_each_that_is_chosen(
    busy: Running, open_page: OpenPage
) -> None:
    page = open_page(busy.url)

    expect(page.get_by_label("Show", exact=True)).to_have_value("cpu")
    page.get_by_label("Show", exact=True).select_option("nvidia.com/gpu")
    expect(page.locator("#node-node-6")).to_contain_text("75 % of 4")
    expect(page.locator("#node-node-0")).to_contain_text("no nvidia.com/gpu")
    page.get_by_label("Show", exact=True).select_option("memory")
    expect(page.locator("#node-node-0")).to_contain_text("% of 64 GiB")
    page.get_by_label("Show", exact=True).select_option("pods")
    expect(page.locator("#node-node-0")).to_contain_text("0 % of 110")


@pytest.mark.slow
def test_every_resource_has_its_column_and_its_drawing(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/ui/nodes")

    page.get_by_role("link", name="nvidia.com/gpu requested").click()
    assert names(page, "tbody th")[0] == "node-6"
    page.get_by_role("link", name="node-6").click()

    assert page.locator("figcaption").all_inner_texts()[2].startswith("nvidia.com/gpu 75 % of 4 requested, 1 free")
    expect(page.locator("#pods tbody tr")).to_contain_text("default/trains")
    expect(page.locator("#pods tbody tr td").nth(3)).to_have_text("3")


@pytest.mark.slow
def test_device_classes_are_resources_too(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    page.get_by_label("Show", exact=True).select_option("fast-nic")

    expect(page.locator("#node-node-7")).to_contain_text("0 % of 2")
    expect(page.locator("#node-node-6")).to_contain_text("no fast-nic")


@pytest.mark.slow
def test_a_pod_in_a_drawing_opens_the_pod(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/?by=cpu")

    page.locator("[data-node=node-4] svg").get_by_role("link", name="default/web-5d9-4").click()

    expect(page.locator("h1")).to_contain_text("web-5d9-4")


@pytest.mark.slow
def test_a_zone_leads_to_its_nodes(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    page.get_by_role("link", name="zone-b").click()

    assert names(page, "tbody th") == ["node-1", "node-4", "node-7"]


@pytest.mark.slow
def test_nodes_are_grouped_by_pool_and_the_fullest_come_first(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/?by=cpu")

    page.get_by_label("by", exact=True).select_option(POOL)
    expect(page.locator(".zone h2")).to_have_text(["general 6 nodes", "gpu 2 nodes"])
    page.get_by_label("sorted by").select_option("fullest first")

    expect(page.locator(".zone").first.locator("li").first).to_contain_text("node-5")
    expect(page.locator(".zone").first.locator("li").last).to_contain_text("node-0")


@pytest.mark.slow
def test_nodes_with_a_label_stand_out(busy: Running, open_page: OpenPage) -> None:
    page = open_page(busy.url)

    page.get_by_label("Name, zone, taint, label or condition").fill("disk=ssd -cordoned")
    page.keyboard.press("Enter")

    expect(page.locator("#map h2")).to_contain_text("3 match")
    assert names(page, ".node-card:not(.pale) > a") == ["node-3", "node-1", "node-7"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "node_names"),
    [
        ("nvidia.com/gpu=present", ["node-6", "node-7"]),
        ("cordoned", ["node-5"]),
        ("gpu disk=ssd", ["node-7"]),
        ("zone-a", ["node-0", "node-3", "node-6"]),
    ],
)
def test_the_table_is_filtered_by_taint_label_and_condition(
    busy: Running, open_page: OpenPage, words: str, node_names: list[str]
) -> None:
    page = open_page(f"{busy.url}/ui/nodes")

    page.get_by_role("searchbox", name="Find a node").fill(words)
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text(f"Nodes {len(node_names)} of 8")
    assert names(page, "tbody th") == node_names
    expect(page.locator("mark").first).to_be_visible()


@pytest.mark.slow
def test_thousands_of_nodes_are_grouped_sorted_and_filtered(large: Running, open_page: OpenPage) -> None:
    page = open_page(f"{large.url}/?by=cpu&sort=fullest&node=dedicated%3Dgpu")

    expect(page.locator("#map h2")).to_contain_text("1,000 match")
    expect(page.locator(".zone h2").nth(3)).to_contain_text("1,000 match")
    holder = page.locator(".grid-holder").first
    holder.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("100 % of 16 cpu")


@pytest.mark.slow
def test_on_a_phone_nothing_is_hidden_and_the_name_stays_beside_its_row(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/ui/nodes", width=400)

    expect(page.locator("#figures li")).to_have_count(5)
    for figure in page.locator("#figures li").all():
        expect(figure).to_be_visible()
    page.locator(".scroll").evaluate("element => element.scrollLeft = element.scrollWidth")

    expect(page.get_by_role("link", name="node-3")).to_be_in_viewport()
    expect(page.locator("tbody tr").first.locator("td").last).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_a_bar_of_the_chart_opens_its_time_in_the_history(deciding: Running, open_page: OpenPage) -> None:
    page = open_page(deciding.url)

    # The chart is drawn anew while time passes, and its bars move: one is read as it is opened.
    tip: str = page.locator("#recent .timeline a:has(.unplaced)").first.evaluate(
        "bar => (bar.dispatchEvent(new MouseEvent('click')), bar.querySelector('.unplaced').dataset.tip)"
    )
    number = sum(int(line.split()[0]) for line in tip.splitlines()[1:])

    expect(page.locator("h1")).to_contain_text("History")
    # Equal attempts share a row, so that rows are no measure.
    expect(page.locator("#over-time h2")).to_have_text(re.compile(f"^{number} decision"))


@pytest.mark.slow
def test_pods_of_a_node_lead_to_what_its_taints_and_labels_are_shared_by(busy: Running, open_page: OpenPage) -> None:
    page = open_page(f"{busy.url}/ui/nodes/node-6")

    page.get_by_role("link", name="nvidia.com/gpu=present:NoSchedule").click()

    assert names(page, "tbody th") == ["node-6", "node-7"]


@pytest.mark.slow
def test_all_of_thousands_of_nodes_can_be_listed(large: Running, open_page: OpenPage) -> None:
    page = open_page(f"{large.url}/ui/nodes?sort=name&node=zone-4")

    page.get_by_role("link", name="Next").click()
    expect(page.locator("main")).to_contain_text("101 to 200 of 1,000")
    assert names(page, "tbody th")[0] == "node-4100"
    page.get_by_role("link", name="Previous").click()

    expect(page.locator("tbody th").first).to_contain_text("node-4000")
