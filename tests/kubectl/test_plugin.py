"""`kubectl reprieve ...` is `reprieve ...`: kubectl finds the command beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api.settings.settings import EXAMPLE_CLUSTER

pytestmark = pytest.mark.slow


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_runs_the_command() -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KUBECONFIG": "/dev/null",
    }
    question = ["why", "-n", "shop", "web-6", "--dump", str(EXAMPLE_CLUSTER)]

    as_plugin = subprocess.run(
        ["kubectl", "reprieve", *question], env=environment, capture_output=True, text=True, check=True
    )
    itself = subprocess.run(["reprieve", *question], env=environment, capture_output=True, text=True, check=True)

    assert as_plugin.stdout == itself.stdout
    assert as_plugin.stdout.startswith("shop/web-6  Pending")
