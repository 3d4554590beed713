"""A service of its own for kubectl, and kubectl with a home of its own."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.service import running

ROOT = Path(__file__).parents[2]
SECONDS = 60
NO_KUBECTL = shutil.which("kubectl") is None


@dataclass(frozen=True)
class Kubectl:
    """kubectl, talking to one server."""

    server: str
    home: Path

    def __call__(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """What it prints; on standard error if it is expected to fail."""
        done = subprocess.run(
            ["kubectl", "--server", self.server, *arguments],
            input=stdin, capture_output=True, text=True, timeout=SECONDS, env=self.environment, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return (done.stderr if fails else done.stdout).strip()

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """kubectl in the background; its standard output can be read."""
        command = ["kubectl", "--server", self.server, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(self.home / "none"),
            "EDITOR": "true",
        }


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl for a new example cluster, served by the command that users run."""
    if NO_KUBECTL:
        pytest.skip("kubectl is not installed")
    with running() as service:
        yield Kubectl(service.kubernetes, tmp_path_factory.mktemp("home"))
