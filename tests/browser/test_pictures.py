"""The picture of the documentation is what the page looks like: REPRIEVE_PICTURES=1 has it made again."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("REPRIEVE_PICTURES"), reason="pictures are taken by make pictures"),
]

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "pod-light.png"


def test_the_documentation_shows_the_page(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/ui/pods/shop/web-6")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("h1")).to_contain_text("web-6")
    page.screenshot(path=PICTURE)
