"""The pictures of the documentation are what the page looks like: REPRIEVE_PICTURES=1 has them made anew."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.services import Running, pod

FOLDER = Path(__file__).parents[2] / "docs" / "images"
MAKES_THEM = bool(os.environ.get("REPRIEVE_PICTURES"))
PNG = b"\x89PNG\r\n\x1a\n"


def cluster(page: Page) -> None:
    expect(page.locator("#live")).to_have_text("live")


def what_if(page: Page) -> None:
    page.get_by_label("Nodes to drain").fill("node-b1")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#result h2").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")


def history(page: Page) -> None:
    expect(page.locator("details.preemption").first).to_be_attached()


def nothing(page: Page) -> None:
    expect(page.locator("h1")).to_be_visible()


PICTURES: dict[str, tuple[str, str, Callable[[Page], None], bool]] = {
    "cluster": ("still", "/", cluster, False),
    "pod": ("still", "/ui/pods/shop/web-6", nothing, True),
    "what-if": ("still", "/ui/what-if", what_if, True),
    "history": ("deciding", "/ui/history", history, False),
    "large": ("large", "/", cluster, False),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_the_page(name: str, theme: str, request: pytest.FixtureRequest, open_page: OpenPage) -> None:
    file = FOLDER / f"{name}-{theme}.png"
    if MAKES_THEM:
        service, path, prepare, whole = PICTURES[name]
        running: Running = request.getfixturevalue(service)
        if name == "history" and theme == "light":
            running.create("/api/v1/namespaces/default/pods", pod("urgent", {"cpu": "3500m", "memory": "4Gi"}, priority="production"))
        page = open_page(f"{running.url}{path}", dark=theme == "dark")
        prepare(page)
        page.screenshot(path=file, full_page=whole)

    assert file.read_bytes().startswith(PNG), "make them with REPRIEVE_PICTURES=1"
