"""The pictures of the documentation are what the page looks like: REPRIEVE_PICTURES=1 has them made again."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import pod
from tests.kit.service import Running, running
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "docs" / "images"
MAKES_THEM = bool(os.environ.get("REPRIEVE_PICTURES"))
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def busy(browser: Browser) -> Iterator[Running]:
    """The example cluster with a little life in it."""
    with running() as service:
        labels = {"app": "etl"}
        of_one = pod("etl", {"cpu": "500m", "memory": "512Mi"}, priority="batch")
        template = {"metadata": {"labels": labels}, "spec": of_one["spec"]}
        deployment = {"replicas": 8, "selector": {"matchLabels": labels}, "template": template}
        service.create(
            "/apis/apps/v1/namespaces/batch/deployments",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "etl"}, "spec": deployment},
        )
        until(
            lambda: (
                sum(
                    each["metadata"]["name"].startswith("etl-") and "nodeName" in each["spec"]
                    for each in service.pods()
                )
                == 8
            )
        )
        for name, amounts, priority in (
            ("too-large", {"cpu": "64"}, "default"),
            ("urgent", {"cpu": "3", "memory": "4Gi"}, "production"),
        ):
            service.create("/api/v1/namespaces/default/pods", pod(name, amounts, priority=priority))
        until(
            lambda: any(each["metadata"]["name"] == "urgent" and "nodeName" in each["spec"] for each in service.pods())
        )
        yield service


def alive(page: Page) -> None:
    expect(page.locator("#live")).to_have_text("live")


def what_if(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.get_by_label("Objects to create").fill(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: vip\nspec:\n  priorityClassName: production\n  containers:\n  - "
        "name: main\n"
        "    image: registry.example/app:1\n    resources:\n      requests: {cpu: 3500m, memory: 4Gi}\n"
    )
    page.get_by_label("Nodes to drain").fill("node-a1")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result h2").first).to_be_visible()
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


PICTURES: dict[str, tuple[str, str, Callable[[Page], None], bool]] = {
    "cluster": ("busy", "/", alive, False),
    "pod": ("still", "/ui/pods/shop/web-6", alive, False),
    "what-if": ("busy", "/ui/what-if", what_if, True),
    "history": ("busy", "/ui/history", alive, False),
    "large": ("large", "/", alive, False),
    "large-pod": ("large", "/ui/pods/default/too-large", alive, True),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_the_page(name: str, theme: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{name}-{theme}.png"
    if MAKES_THEM:
        service, path, prepare, whole = PICTURES[name]
        shown: Running = request.getfixturevalue(service)
        open_page: OpenPage = request.getfixturevalue("open_page")
        page = open_page(f"{shown.url}{path}", dark=theme == "dark")
        prepare(page)
        page.screenshot(path=file, full_page=whole)

    assert file.read_bytes().startswith(PNG), "make them with REPRIEVE_PICTURES=1"
