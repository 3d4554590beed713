"""A service of its own for kubectl, and kubectl with a home of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--kubernetes-port", "0"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("REPRIEVE_", "KUBERNETES_"))}
    service = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert service.stderr is not None
        lines = []
        for line in service.stderr:
            lines.append(line)
            found = re.search(r"kubectl --server (http://\S+)", line)
            if found:
                break
        else:
            raise AssertionError("the service did not start:\n" + "".join(lines))
        yield Kubectl(found[1], tmp_path_factory.mktemp("home"))
    finally:
        service.terminate()
        service.communicate(timeout=SECONDS)
