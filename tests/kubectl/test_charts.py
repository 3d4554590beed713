"""Public charts apply whole with kubectl; where a chart brings definitions, these come first, as kubectl asks for."""

from pathlib import Path

import pytest

from tests.kubectl.conftest import ROOT, Kubectl

CHARTS = sorted((ROOT / "tests" / "reprieve" / "cluster" / "charts").glob("*.yaml"))


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.stem)
def test_a_chart_applies_whole(kubectl: Kubectl, chart: Path) -> None:
    parts = chart.read_text().split("\n---\n")
    definitions = [part for part in parts if "kind: CustomResourceDefinition" in part]
    if definitions:
        kubectl("apply", "-f", "-", stdin="\n---\n".join(definitions))
        kubectl("wait", "--for=condition=established", "crd", "--all", "--timeout=10s")

    text = kubectl("apply", "-f", str(chart))

    assert len(text.splitlines()) == len(parts)


def test_what_a_definition_defines_is_listed(kubectl: Kubectl) -> None:
    assert "self" in kubectl("get", "clusterissuers")
    assert "web" in kubectl("get", "cert")


def test_a_daemon_set_is_rolled_out(kubectl: Kubectl) -> None:
    text = kubectl("rollout", "status", "daemonset/nvidia-device-plugin", "-n", "nvidia-device-plugin", "--timeout=30s")

    assert text.endswith("successfully rolled out")
