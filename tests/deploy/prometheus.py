"""A real Prometheus, of Debian's package: the installed one, or one that is unpacked into `.cache`."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.api.in_process import ROOT
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.waiting import DEADLINE

CACHE: Final = ROOT / ".cache" / "prometheus"
PROGRAMS: Final = ("prometheus", "promtool")
NOT_HERE: Final = "Prometheus is not installed, and apt-get cannot bring Debian's package"


@cache
def program(name: str) -> str:
    """Where `prometheus` or `promtool` is. The test is skipped where there is none."""
    path = shutil.which(name) or shutil.which(name, path=str(CACHE))
    if path is None:
        _bring()
        path = shutil.which(name, path=str(CACHE))
    if path is None:
        pytest.skip(NOT_HERE)
    return path


def _bring() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        download = ["apt-get", "download", "-qq", "prometheus"]
        if subprocess.run(download, cwd=folder, capture_output=True, check=False).returncode != 0:
            # The lists of packages may be missing.
            subprocess.run(["apt-get", "update", "-qq"], capture_output=True, check=False)
            subprocess.run(download, cwd=folder, capture_output=True, check=False)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
            CACHE.mkdir(parents=True, exist_ok=True)
            for name in PROGRAMS:
                # Several processes may bring them at one time: each has files of its own and then gives them the name.
                partial = CACHE / f"{name}.{os.getpid()}"
                shutil.copy(Path(folder, "usr", "bin", name), partial)
                partial.rename(CACHE / name)


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    client: httpx.Client

    def values(self, expression: str) -> list[float]:
        """What an expression has now; series that are not a number count as none."""
        answer = self.client.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", f"{expression}: {json.dumps(answer)}"
        result: list[dict[str, Any]] = answer["data"]["result"]
        numbers = [float(series["value"][1]) for series in result]
        return [number for number in numbers if number == number]  # noqa: PLR0124 - NaN is the one that is not


@contextmanager
def scraping(targets: dict[str, list[str]], folder: Path) -> Iterator[Prometheus]:
    """Prometheus, which scrapes these addresses every second; each path of `targets` with the same job.

    Arguments:
        targets: path -> addresses.
    """
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": f"scrape{number}",
                "metrics_path": path,
                "static_configs": [{"targets": addresses}],
                "relabel_configs": [{"target_label": "job", "replacement": "reprieve"}],
            }
            for number, (path, addresses) in enumerate(targets.items())
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    process = Process(
        [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        folder / "prometheus.log",
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE) as client:
            process.wait_until(lambda: _is_ready(client), 60)
            yield Prometheus(client)
    finally:
        process.stop(30)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False
