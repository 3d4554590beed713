"""How long after the return of its API server a service that follows it is ready again."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx

from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.service import kubeconfig_for

AWAY: Final = (3, 15, 60)
PATIENCE: Final = 120.0


def run() -> None:
    """Stop an embedded cluster for some seconds, three times, beside a service that follows it."""
    print("outage of the API server -> ready again after its return")
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder))


def _run(folder: Path) -> None:
    ours, theirs, follower = free_port(), free_port(), free_port()
    reprieve = (sys.executable, "-m", "api.cli", "serve")
    serves = (*reprieve, "--port", str(ours), "--kubernetes-port", str(theirs), "--save", str(folder / "saved.json"))
    kubeconfig = kubeconfig_for(theirs, folder)
    served = Process(serves, folder / "served.log")
    served.wait_until(lambda: _is_ready(ours), PATIENCE)
    follows = Process((*reprieve, "--port", str(follower), "--kubeconfig", kubeconfig), folder / "follows.log")
    try:
        follows.wait_until(lambda: _is_ready(follower), PATIENCE)
        for seconds in AWAY:
            served.stop(PATIENCE)
            time.sleep(seconds)
            served = Process(serves, folder / "served.log")
            served.wait_until(lambda: _is_ready(ours), PATIENCE)
            returned = time.monotonic()
            follows.wait_until(lambda: _is_ready(follower), PATIENCE)
            print(f"{seconds:4} s -> {time.monotonic() - returned:5.1f} s")
    finally:
        follows.stop(PATIENCE)
        served.stop(PATIENCE)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
