"""Who has to say who he is: signs in with a token, sees the page, and signs out."""

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage


def sign_in(page: Page) -> None:
    page.get_by_label("Token of the cluster").fill("right")
    page.get_by_role("button", name="Sign in").click()


def test_a_token_opens_the_page_and_sign_out_closes_it(guarded: str, open_page: OpenPage) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")

    sign_in(page)
    expect(page.locator("h1")).to_contain_text("pending pods")
    page.get_by_role("button", name="Sign out").click()

    expect(page.locator("h1")).to_have_text("Sign in")
    assert page.context.cookies() == []
    page.go_back()
    expect(page.locator("h1")).to_have_text("Sign in")


def test_signing_out_works_without_scripts(guarded: str, open_page: OpenPage, browser: Browser) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")
    sign_in(page)
    expect(page.locator("h1")).to_contain_text("pending pods")
    with browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state()) as context:
        plain = context.new_page()
        plain.goto(f"{guarded}/ui/nodes")

        plain.get_by_role("button", name="Sign out").click()

        expect(plain.locator("h1")).to_have_text("Sign in")
        assert context.cookies() == []


def test_sign_out_is_not_offered_before_signing_in(guarded: str, open_page: OpenPage) -> None:
    page = open_page(guarded)
    open_page.expected.append("401")

    expect(page.locator("h1")).to_have_text("Sign in")

    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
