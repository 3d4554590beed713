"""What callers ask takes no more memory than they may take, and goes back when it is answered: tried with a process of
its own.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.settings.settings import read_settings
from tests.extender.engine.evaluation.test_memory_needs import apart, node, pod

GIB = 2**30
MIB = 2**20


@dataclass(frozen=True)
class Limited:
    """A service in a process that may have only so many addresses."""

    process: "subprocess.Popen[bytes]"
    client: httpx.Client

    def memory(self, name: str) -> int:
        """
        Bytes: VmRSS is what it has, VmHWM the most that it has had.
        """
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

    def post(self, path: str, body: bytes) -> httpx.Response:
        return self.client.post(path, content=body, headers={"Content-Type": "application/json"})

    def at_rest(self) -> int:
        """What it has once the memory of questions was given back."""
        time.sleep(2)
        return self.memory("VmRSS")

    def comes_down_to(self, size: float) -> bool:
        deadline = time.monotonic() + 30
        while (has := self.memory("VmRSS")) > size and time.monotonic() < deadline:
            time.sleep(0.1)
        return has <= size


@contextmanager
def limited(addresses: int, tmp_path: Path) -> Iterator[Limited]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))

    listening = tmp_path / "listening"
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--kubernetes-port", "0", "--no-schedule"]
    with listening.open("wb") as output, subprocess.Popen(command, stderr=output, preexec_fn=limit) as process:  # noqa: PLW1509
        try:
            while "shows it" not in (said := listening.read_text()):
                assert process.poll() is None, said
                time.sleep(0.05)
            address = said.split("\n")[2].partition("/ shows it")[0]
            with httpx.Client(base_url=address, timeout=300, trust_env=False) as client:
                while client.get("/readyz").status_code != 200:
                    time.sleep(0.05)
                yield Limited(process, client)
        finally:
            process.kill()


def what_if(nodes: int, pods: int) -> bytes:
    """Nodes, and pods each of which keeps away from itself: the scheduler has to look at all nodes for each."""
    created: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Node", **node(number)} for number in range(nodes)]
    for number in range(pods):
        each = pod(number, affinity=apart("kubernetes.io/hostname"))
        each["metadata"]["labels"] = {"app": f"a{number}"}
        term = each["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
        term["labelSelector"]["matchLabels"] = {"app": f"a{number}"}
        created.append({"apiVersion": "v1", "kind": "Pod", **each})
    return json.dumps({"create": created}, separators=(",", ":")).encode()


def scenario(nodes: int) -> bytes:
    return json.dumps({"pod": pod(0), "objects": {"nodes": [*map(node, range(nodes))]}}, separators=(",", ":")).encode()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads what Linux says of a process")
def test_large_questions_stay_within_the_limit_and_leave_nothing_behind(tmp_path: Path) -> None:
    """
    Before there were budgets, the second what-if took more than 2 GiB and kept it, and six scenarios at one time 1.5
    GiB. As long as they were answered in threads, Python kept 20 MiB after one scenario and 80 MiB after the largest
    what-if.
    """
    asked, beyond, evaluated = what_if(1_000, 200), what_if(15_000, 4_900), scenario(10_000)

    def ask(service: Limited) -> list[int]:
        codes = [service.post("/v1/whatif", asked).status_code, service.post("/v1/whatif", beyond).status_code]
        callers = [
            threading.Thread(target=lambda: codes.append(service.post("/v1/evaluate", evaluated).status_code))
            for _ in range(6)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        return codes

    with limited(2 * GIB, tmp_path) as service:
        before = service.at_rest()
        codes = [*ask(service), *ask(service), *ask(service)]
        refused = service.post("/v1/whatif", beyond)

        assert codes == 3 * [200, 413, *[200] * 6]
        assert "15012 nodes, 4905 pods" in refused.json()["message"]
        assert service.memory("VmHWM") < before + 64 * MIB
        assert service.comes_down_to(1.1 * before)
        assert service.client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    "body",
    [b'{"pod":{},"objects":{"nodes":[' + b"1," * 4_000_000 + b"1]}}", b'{"pod":[' + b"[]," * 4_000_000 + b"[]]}"],
)
def test_a_question_of_too_many_values_is_refused_before_it_is_read(tmp_path: Path, body: bytes) -> None:
    with limited(GIB, tmp_path) as service:
        before = service.at_rest()
        refused = service.post("/v1/evaluate", body)

        assert refused.status_code == 413
        assert service.memory("VmHWM") < before + 5 * len(body)


def test_where_memory_is_limited_requests_share_what_is_left(tmp_path: Path) -> None:
    program = (
        "from api.settings.settings import read_settings; s = read_settings({}); print(s.max_bodies, s.question_memory)"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIB + 400 * MIB, GIB + 400 * MIB))

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, preexec_fn=limit)
    max_bodies, question_memory = map(int, done.stdout.split())

    assert 5 * max_bodies <= GIB // 2
    assert 2 * question_memory <= GIB // 2
    assert read_settings({"REPRIEVE_QUESTION_MEMORY": "2000000"}).question_memory == 2_000_000
