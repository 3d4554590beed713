"""Who has to say who he is: signs in with a token, sees the page, and signs out."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from api import starting
from api.app import create_app
from api.settings import Settings
from tests.api.serving import serving_app
from tests.api.test_page import OneToken
from tests.browser.conftest import OpenPage


@pytest.fixture(scope="module")
def guarded(browser: Browser) -> Iterator[str]:
    """Where the example cluster is shown to those who know the token."""
    settings = Settings(port=0, schedule=False)

    @asynccontextmanager
    async def opened() -> AsyncIterator[starting.Service]:
        async with starting.opens(settings)() as service:
            yield replace(service, access=OneToken())

    with serving_app(create_app(settings, lambda _: opened), settings) as service:
        yield f"http://127.0.0.1:{service.port}"


def sign_in(page: Page) -> None:
    page.get_by_label("Token of the cluster").fill("right")
    page.get_by_role("button", name="Sign in").click()


def test_a_token_opens_the_page_and_sign_out_closes_it(guarded: str, open_page: OpenPage) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")

    sign_in(page)
    expect(page.locator("h1")).to_contain_text("12 nodes")
    page.get_by_role("button", name="Sign out").click()

    expect(page.locator("h1")).to_have_text("Who asks?")
    assert page.context.cookies() == []
    page.go_back()
    expect(page.locator("h1")).to_have_text("Who asks?")


def test_it_takes_no_script_to_sign_out(guarded: str, open_page: OpenPage, browser: Browser) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")
    sign_in(page)
    expect(page.locator("h1")).to_contain_text("12 nodes")
    with browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state()) as context:
        plain = context.new_page()
        plain.goto(f"{guarded}/ui/nodes")

        plain.get_by_role("button", name="Sign out").click()

        expect(plain.locator("h1")).to_have_text("Who asks?")
        assert context.cookies() == []


def test_whom_nothing_was_asked_nothing_is_offered(guarded: str, open_page: OpenPage) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")

    expect(page.locator("h1")).to_have_text("Who asks?")

    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
