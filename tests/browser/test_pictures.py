"""The picture of the documentation is what the page looks like: REPRIEVE_PICTURES=1 has it made again."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running

pytestmark = pytest.mark.slow

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "pod-light.png"


def test_the_documentation_shows_the_page(request: pytest.FixtureRequest) -> None:
    if os.environ.get("REPRIEVE_PICTURES"):
        shown: Running = request.getfixturevalue("still")
        open_page: OpenPage = request.getfixturevalue("open_page")
        page = open_page(f"{shown.url}/ui/pods/shop/web-6")
        expect(page.locator("#live")).to_have_text("live")
        page.screenshot(path=PICTURE)

    assert PICTURE.read_bytes().startswith(b"\x89PNG\r\n\x1a\n"), "make it with REPRIEVE_PICTURES=1"
