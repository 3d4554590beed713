"""`python -m bench drain`, with stand-ins for etcd and kube-apiserver. What it measures decides nothing here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.drain import spread
from tests.kit.service import ROOT
from tests.kit.stand_ins import stand_ins


def drain(*arguments: str, assets: Path | None) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    if assets is not None:
        environment["KUBEBUILDER_ASSETS"] = str(assets)
    command = [sys.executable, "-m", "bench", "drain", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_schedulers_drain_the_same_backlog_in_turn(tmp_path: Path) -> None:
    sizes = ["--shapes", "mixed", "--nodes", "20", "--pods", "60", "--rounds", "2"]

    done = drain(*sizes, "--against-python", sys.executable, assets=stand_ins(tmp_path, "--no-kubelet"))

    assert done.returncode == 0, done.stderr
    runs = re.findall(r"^ +(\d) (this tree|other) ", done.stdout, re.MULTILINE)
    assert runs == [("1", "this tree"), ("1", "other"), ("2", "other"), ("2", "this tree")]
    assert re.findall(r"^(basic|mixed)$", done.stdout, re.MULTILINE) == ["mixed"]
    assert len(re.findall(r"this tree / other: .* of the CPU a pod, .* spread .* after 2 rounds", done.stdout)) == 1


@pytest.mark.slow
def test_without_a_kube_apiserver_it_says_where_there_is_one() -> None:
    done = drain("--against", "HEAD", assets=None)

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "KUBEBUILDER_ASSETS is not set: run `setup-envtest use 1.36.x -p env` and source what it prints"
    ]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        pytest.param([1.0], float("inf"), id="one run alone"),
        pytest.param([1.0, 1.0, 1.0, 1.0], 0.0, id="the same each time"),
        pytest.param([1.0, 1.0, 1.0, 1.0, 9.0], 0.0, id="one that went wrong"),
        pytest.param([0.98, 0.98, 1.02, 1.02], 0.02, id="two per cent either way, four times"),
    ],
)
def test_the_spread_is_that_of_the_median(ratios: list[float], expected: float) -> None:
    assert spread(ratios) == pytest.approx(expected)
