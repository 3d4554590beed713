"""What a tab holds that stays open: the heap of its scripts, its nodes of the DOM and its listeners, while the cluster
changes.

`MINUTES=10 python -m bench tab`; one minute without it. The cluster has 5,000 nodes and
30,000 pods, 500 of which wait; a pod comes or goes every second.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx
from playwright.sync_api import CDPSession, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, QUIET
from tests.browser.services import many_nodes, pod
from tests.kit.service import Running, running
from tests.kit.waiting import DEADLINE

MINUTES: Final = float(os.environ.get("MINUTES", "1"))
PAUSE: Final = 1000
"""Milliseconds between two changes of the cluster."""
PODS: Final = "/api/v1/namespaces/default/pods"


def run() -> None:
    """Print a line each minute: after the garbage is collected."""
    with tempfile.TemporaryDirectory() as folder:
        state = many_nodes(Path(folder) / "cluster.json", pods_each=6, waiting_pods=499)
        with running("--no-schedule", "--state", str(state)) as service, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
            page = browser.new_page()
            page.goto(service.url)
            expect(page.locator("#live")).to_have_text("live")
            session = page.context.new_cdp_session(page)
            print(f"{'minutes':>7} {'changes':>7} {'heap KiB':>9} {'DOM nodes':>9} {'listeners':>9}")
            began, changes, minute = time.monotonic(), 0, 0
            while minute <= MINUTES:
                if time.monotonic() - began >= minute * 60:
                    print(f"{minute:7} {changes:7} {_footprint(session)}", flush=True)
                    minute += 1
                _change(service, is_there=changes % 2 == 1)
                changes += 1
                page.wait_for_timeout(PAUSE)
            browser.close()


def _change(service: Running, *, is_there: bool) -> None:
    if is_there:
        httpx.delete(f"{service.kubernetes}{PODS}/one-more", timeout=DEADLINE, trust_env=False).raise_for_status()
    else:
        service.create(PODS, pod("one-more", {"cpu": "100m"}))


def _footprint(session: CDPSession) -> str:
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    counters = session.send("Memory.getDOMCounters")
    return f"{heap / 1024:9.0f} {counters['nodes']:9} {counters['jsEventListeners']:9}"
