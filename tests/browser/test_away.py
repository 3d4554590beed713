"""What the page shows while there is nothing to show: no API server, and no nodes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import on_each_screen
from tests.kit.ports import free_port
from tests.kit.service import kubeconfig_for, process, running
from tests.kit.waiting import until

pytestmark = pytest.mark.slow


def test_page_names_the_server_that_is_away_and_goes_on_by_itself_when_it_is_back(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    open_page.expected.append("503")
    port, log = free_port(), tmp_path / "log"
    kubeconfig = kubeconfig_for(port, tmp_path)
    with process("serve", "--port", "0", "--kubeconfig", kubeconfig, "--access", "open", log=log):
        until(lambda: "shows it" in log.read_text())
        (url,) = re.findall(r"(http://[\w.]+:\d+)/ shows it", log.read_text())
        page = open_page(url)
        expect(page.locator(".problem")).to_contain_text(
            f"The API server at http://127.0.0.1:{port} has not answered for"
        )
        expect(page.locator(".problem")).to_contain_text("check that it is running")
        assert on_each_screen(page) == {}
        assert log.read_text().count("Unreachable") == 1

        with process("serve", "--port", "0", "--kubernetes-port", str(port), log=tmp_path / "other"):
            expect(page.locator("#map h2")).to_contain_text("12 nodes")
            page.goto("about:blank")


def test_empty_cluster_says_how_it_is_filled(browser: Browser, open_page: OpenPage, tmp_path: Path) -> None:
    state = tmp_path / "empty.yaml"
    state.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    with running("--state", state, "--kubernetes-port", str(free_port())) as service:
        page = open_page(service.url)

        expect(page.locator("#no-nodes")).to_contain_text("kubectl --server http")
        expect(page.locator("#no-nodes")).to_contain_text("reprieve serve --state FILE")
        assert on_each_screen(page) == {}
        page.goto("about:blank")
