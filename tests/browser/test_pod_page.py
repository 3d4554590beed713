"""The page of a pod: what would help, with what to type and a way to try it; why this node; since when, whose, and as
YAML.
"""

import re
import shlex

import pytest
from playwright.sync_api import expect

from tests.api.test_questions import deployment
from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.service import Running


@pytest.mark.slow
def test_fixes_come_first_and_each_can_be_copied_or_tried(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")
    fixes = page.locator("#fixes li")

    expect(page.locator("#view section").first).to_have_attribute("id", "fixes")
    expect(fixes.first.locator(".opens")).to_contain_text("node")
    assert fixes.locator(".try").count() == fixes.count()
    taint = fixes.filter(has_text="tolerate the taint").locator("button[data-copy]").get_attribute("data-copy") or ""
    assert shlex.split(taint)[:6] == ["kubectl", "-n", "shop", "patch", "pod", "web-6"]
    assert fixes.first.locator("button[data-copy]").get_attribute("data-copy") == (
        "spec:\n  containers:\n  - name: main\n    resources:\n      requests:\n        cpu: 2200m"
    )
    open_page.expected.append("Clipboard")
    fixes.locator("button[data-copy]").first.click()
    expect(fixes.locator("button[data-copy]").first).to_have_text(re.compile("Copied|Press Ctrl-C"))


def test_a_change_that_would_help_is_tried_without_typing(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")

    page.locator("#fixes .try").first.click()
    expect(page.get_by_label("Objects to create")).to_have_value(re.compile("name: web-6-tried"))
    page.get_by_role("button", name="Try it").click()

    expect(page.locator("#result .placements tbody tr")).to_contain_text(["shop/web-6-tried"])
    expect(page.locator("#result .placements .badge.bad")).to_have_count(0)


@pytest.mark.slow
def test_scores_by_plugin_explain_why_a_pod_is_on_its_node(deciding: Running, open_page: OpenPage) -> None:
    """The decision's own scores: raw, normalised and weighted; and which plugin made the difference."""
    deciding.create("/api/v1/namespaces/default/pods", pod("chosen", {"cpu": "10m"}, priority="default"))
    page = open_page(f"{deciding.url}/ui/pods/default/chosen")
    expect(page.locator("h1 + .state")).to_have_text("Scheduled")

    expect(page.locator("#scores h2")).to_have_text("Why this node")
    expect(page.locator("#choice")).to_contain_text("had the highest score of")
    expect(page.locator("#worked-out")).to_have_count(0)
    page.locator("#scores summary").click()
    row = page.locator(".plugin-scores tbody tr", has_text="Balanced")
    raw, normalized, weight, weighted = map(int, re.findall(r"\d+", row.locator("td").nth(1).inner_text()))
    assert (normalized, weighted) == (raw, normalized * weight)
    node = page.locator("#scores .score-table tbody th").first.inner_text()
    expect(page.locator(".facts")).to_contain_text(node)


@pytest.mark.slow
def test_scores_that_were_not_kept_are_worked_out_again_and_marked(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-0")

    expect(page.locator("#choice")).to_contain_text("As things are now, without this pod")
    expect(page.locator("#worked-out")).to_contain_text("Computed just now")


@pytest.mark.slow
def test_a_pending_pod_says_since_when_and_whose_it_is_and_shows_itself(deciding: Running, open_page: OpenPage) -> None:
    spec = pod("x", {"cpu": "900"})["spec"]
    del spec["priority"]
    obj = deployment("huge", spec, namespace="default")
    deciding.create("/apis/apps/v1/namespaces/default/deployments", obj)
    page = open_page(f"{deciding.url}/ui/history")
    page.locator("#pending a.row", has_text="huge-").click()
    facts = page.locator(".facts")

    expect(facts.locator("div", has_text="pending since").locator("time")).to_have_attribute(
        "data-tip", re.compile("local time\n.* UTC")
    )
    expect(facts.locator("div", has_text="owner").get_by_role("link")).to_have_text("Deployment/huge")
    page.locator("#yaml summary").click()
    expect(page.locator("#yaml pre")).to_contain_text("kind: Pod")
    expect(page.locator("#yaml pre")).to_contain_text("cpu: '900'")


@pytest.mark.slow
def test_events_of_other_components_are_shown_on_request(deciding: Running, open_page: OpenPage) -> None:
    deciding.create("/api/v1/namespaces/default/pods", pod("talked-about", {"cpu": "900"}, priority="default"))
    about = {"kind": "Pod", "namespace": "default", "name": "talked-about"}
    message = {"reason": "FailedMount", "type": "Warning", "message": "<b>no such volume</b>", "count": 7}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "talked-about.1", "namespace": "default"},
        "involvedObject": about,
    }
    source = {"source": {"component": "kubelet"}, "lastTimestamp": "2026-01-01T00:00:00Z"}
    deciding.create("/api/v1/namespaces/default/events", {**event, **source, **message})
    page = open_page(f"{deciding.url}/ui/pods/default/talked-about")
    page.get_by_role("link", name="Show the events").click()
    row = page.locator("#events tbody tr", has_text="FailedMount")

    expect(row).to_have_count(1)
    expect(row.locator("td").nth(2)).to_have_text("<b>no such volume</b>")
    expect(row.locator("td").nth(3)).to_have_text("kubelet")
    expect(row.locator("td").nth(4)).to_have_text("7")
    expect(page.locator("#events tbody tr", has_text="FailedScheduling")).not_to_have_count(0)


@pytest.mark.slow
def test_all_events_are_a_command_away(deciding: Running, open_page: OpenPage) -> None:
    deciding.create("/api/v1/namespaces/default/pods", pod("eventful", {"cpu": "10m"}, priority="default"))
    page = open_page(f"{deciding.url}/ui/pods/default/eventful")

    expect(page.locator("#story [data-what=placed]")).not_to_have_count(0)
    expect(page.locator("#events button[data-copy]")).to_have_attribute(
        "data-copy", "kubectl -n default events --for pod/eventful"
    )
