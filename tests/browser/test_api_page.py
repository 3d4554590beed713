"""/docs, the interactive page of the requests: it works under the policy, and from this service alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.kit.service import Running

pytestmark = pytest.mark.slow


def test_request_can_be_tried_on_the_page_of_the_api(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/docs")
    operation = page.locator(".opblock", has=page.locator("[data-path='/v1/pending']"))

    operation.locator("button.opblock-summary-control").click()
    operation.get_by_role("button", name="Execute").click()

    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(operation.locator(".live-responses-table")).to_contain_text("batch")


def test_token_can_be_given_on_the_page_of_the_api(still: Running, open_page: OpenPage) -> None:
    page = open_page(f"{still.url}/docs")
    authorizations: list[str | None] = []
    page.on("request", lambda request: authorizations.append(request.headers.get("authorization")))

    page.get_by_role("button", name="Authorize").first.click()
    page.get_by_label("auth-bearer-value").fill("a-token")
    page.get_by_label("Apply credentials").first.click()
    page.get_by_role("button", name="Close").first.click()
    operation = page.locator(".opblock", has=page.locator("[data-path='/v1/about']"))
    operation.locator("button.opblock-summary-control").click()
    operation.get_by_role("button", name="Execute").click()

    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert "Bearer a-token" in authorizations
    assert page.locator(".opblock-tag").first.get_attribute("data-tag") == "extender"
