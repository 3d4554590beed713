"""The tour's cluster to try things on: its commands, in its order, and what it says of them."""

import re
import time
from pathlib import Path

import pytest

from tests.kubectl.conftest import ROOT, SECONDS, Kubectl

pytestmark = pytest.mark.slow


def commands() -> list[list[str]]:
    """The kubectl commands of the tour, without the server."""
    text = Path(ROOT / "docs" / "tour.md").read_text()
    return [
        line.split() for line in re.findall(r"^\$ kubectl --server http://127.0.0.1:8080 (.*)$", text, re.MULTILINE)
    ]


def test_the_story_of_the_tour(kubectl: Kubectl) -> None:
    get_nodes, apply, get_pods, get_preempted, describe = commands()

    assert len(kubectl(*get_nodes).splitlines()) == 13
    created = kubectl(*(str(ROOT / word) if word == "examples/" else word for word in apply))
    assert created.splitlines() == [
        "deployment.apps/web created",
        "priorityclass.scheduling.k8s.io/urgent created",
        "pod/urgent created",
        "pod/too-large created",
    ]
    kubectl("wait", "--for=condition=Ready", "pod/urgent", "--timeout=30s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    pods = {line.split()[0].split("-")[0]: line for line in kubectl(*get_pods).splitlines()[1:]}
    assert "Running" in pods["urgent"]
    assert "Running" in pods["web"]
    assert "Pending" in pods["too"]
    # Events are told in the background.
    deadline = time.monotonic() + SECONDS
    uid = kubectl("get", "pod", "urgent", "-o", "jsonpath={.metadata.uid}")
    while f"Preempted by pod {uid}" not in kubectl(*get_preempted):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "Insufficient cpu" in kubectl(*describe)
