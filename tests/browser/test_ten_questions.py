"""The ten first questions of the documentation in the page: nobody needs more than three clicks, and no way ends nowhere."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

MOST_CLICKS = 3
EXAMPLES = Path(__file__).parents[2] / "examples"
DROP = """text => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], "dropped.yaml"));
  const dropped = new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: transfer});
  document.getElementById("what-if").dispatchEvent(dropped);
}"""


class Visitor:
    """Somebody on the first page, whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()

    def opens(self, link: str) -> None:
        self.click(self.page.get_by_role("link", name=link, exact=True).first)

    def presses(self, button: str) -> None:
        self.click(self.page.get_by_role("button", name=button))

    def drops(self, name: str) -> None:
        """A file from the desktop, on the form; again until its script has begun."""
        objects = self.page.get_by_label("Objects to create")

        def is_taken() -> bool:
            self.page.evaluate(DROP, (EXAMPLES / name).read_text())
            self.page.wait_for_timeout(200)  # the file is read meanwhile
            return objects.input_value() != ""

        until(is_taken)


def why_do_pods_wait(visitor: Visitor) -> Locator:
    return visitor.page.locator("#problems", has_text="Insufficient nvidia.com/gpu")


def why_does_this_pod_wait(visitor: Visitor) -> Locator:
    visitor.opens("train-3")
    return visitor.page.locator("#waterfall", has_text="Insufficient nvidia.com/gpu")


def who_evicted_my_pod(visitor: Visitor) -> Locator:
    visitor.opens("History")
    return visitor.page.locator("#preemptions .victim").first


def what_if_two_nodes_are_drained(visitor: Visitor) -> Locator:
    visitor.opens("What if")
    visitor.page.get_by_label("Nodes to drain").fill("node-a2 node-b2")
    visitor.presses("Try it")
    return visitor.page.locator("#result .cascade", has_text="is evicted from node-b2 by the drain")


def what_if_this_node_is_drained(visitor: Visitor) -> Locator:
    visitor.click(visitor.page.locator("#node-node-a2"))
    visitor.opens("What if I drained it?")
    return visitor.page.locator("#result .cascade", has_text="is evicted from node-a2 by the drain")


def what_if_a_node_of_the_table_is_drained(visitor: Visitor) -> Locator:
    visitor.page.goto(visitor.page.url + "ui/nodes")
    visitor.click(visitor.page.locator("#actions-node-a2 summary"))
    visitor.click(visitor.page.locator("#actions-node-a2").get_by_role("link", name="What if I drained it?"))
    return visitor.page.locator("#result .cascade", has_text="is evicted from node-a2 by the drain")


def how_many_replicas_fit(visitor: Visitor) -> Locator:
    a_file_is_tried(visitor, "1-web.yaml", "How many more fit?")
    return visitor.page.locator("#result .summary", has_text="more pods fit on")


def which_plugin_chose_the_node(visitor: Visitor) -> Locator:
    visitor.click(visitor.page.locator(".node-card[data-node=node-a1] a[aria-label='shop/web-0']"))
    return visitor.page.locator("#scores .score-table")


def a_file_is_tried(visitor: Visitor, file: str, button: str = "Try it") -> None:
    visitor.opens("What if")
    visitor.drops(file)
    visitor.presses(button)


def would_it_find_a_node(visitor: Visitor) -> Locator:
    a_file_is_tried(visitor, "3-too-large.yaml")
    return visitor.page.locator("#result .placements", has_text="unschedulable")


def whom_would_it_evict(visitor: Visitor) -> Locator:
    a_file_is_tried(visitor, "2-urgent.yaml")
    return visitor.page.locator("#result .placements .victim").first


def would_more_nodes_help(visitor: Visitor) -> Locator:
    visitor.opens("What if")
    visitor.page.get_by_label("How many").first.fill("3")
    visitor.page.get_by_label("Like the node").fill("node-a4")
    visitor.presses("Try it")
    return visitor.page.locator("#result .summary", has_text="pending pod")


def what_was_decided_about_my_pods(visitor: Visitor) -> Locator:
    visitor.opens("History")
    return visitor.page.locator("#decisions tbody tr").first


def who_fills_the_cluster(visitor: Visitor) -> Locator:
    visitor.opens("Pods")
    return visitor.page.locator("#namespaces tbody tr", has_text="shop")


def is_the_scheduler_well(visitor: Visitor) -> Locator:
    visitor.opens("Scheduler")
    return visitor.page.locator("#attempts tbody tr", has_text="unschedulable")


WAYS: dict[Callable[[Visitor], Locator], int] = {
    why_do_pods_wait: 0,
    why_does_this_pod_wait: 1,
    who_evicted_my_pod: 1,
    what_if_two_nodes_are_drained: 2,
    what_if_this_node_is_drained: 2,
    what_if_a_node_of_the_table_is_drained: 2,
    how_many_replicas_fit: 2,
    which_plugin_chose_the_node: 1,
    would_it_find_a_node: 2,
    whom_would_it_evict: 2,
    would_more_nodes_help: 2,
    what_was_decided_about_my_pods: 1,
    who_fills_the_cluster: 1,
    is_the_scheduler_well: 1,
}


@pytest.fixture
def visitor(deciding: Running, open_page: OpenPage) -> Iterator[Visitor]:
    page = open_page(deciding.url)
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator("#problems")).to_contain_text("Insufficient nvidia.com/gpu")
    yield Visitor(page)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_question_is_answered_in_at_most_three_clicks(visitor: Visitor, way: Callable[[Visitor], Locator]) -> None:
    expect(way(visitor)).to_be_visible()

    assert visitor.clicks == WAYS[way] <= MOST_CLICKS
