"""Sweeps: several configurations and seeds, in processes of this machine or on a cluster, and what they leave as
Parquet.
"""

import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster
from pyarrow import parquet

from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.report import SimulationReport, figures_of
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sweeping import read_workloads, sweep
from reprieve.lab.simulation.workload import Workload, WorkloadError
from tests.api.in_process import reprieve
from tests.reprieve.lab.recordings.recorded_cluster import NODES, record
from tests.reprieve.lab.simulation.test_openb_trace import write_trace
from tests.reprieve.lab.simulation.test_replay import URGENT, a_busy_day

WORKLOAD = """
name: small
nodes: {name: worker, count: 3, cpu: 4, memory: 8Gi}
pods:
  - {name: web, count: 5, cpu: 1}
  - {name: batch, rate: 0.05, for: 10m, runsFor: {mean: 5m}, cpu: 2}
  - {name: urgent, at: 5m, count: 4, cpu: 1, priority: 10}
"""
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
PACKED = load(PACKING)
OF_THE_MACHINE = {"decisions_per_second", "cpu_ms_per_pod"}


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(WORKLOAD)
    (tmp_path / "packing.yaml").write_text(PACKING)
    (tmp_path / "plain.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    return file


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as workers:
        yield workers


def rows(folder: Path, name: str) -> list[dict[str, object]]:
    return list(parquet.read_table(folder / f"{name}.parquet").to_pylist())


def figures_of_a_play(report: SimulationReport) -> dict[str, float]:
    return {name: figure(report) for name, figure in figures_of(report) if name not in OF_THE_MACHINE}


def figures(comparison: bytes) -> list[dict[str, object]]:
    return [figure for figure in json.loads(comparison)["figures"] if figure["name"] not in OF_THE_MACHINE]


@pytest.mark.slow
def test_a_cluster_finds_what_this_machine_finds(workload: Path, cluster: LocalCluster) -> None:
    packing = str(workload.parent / "packing.yaml")
    arguments = ["simulate", str(workload), "--against", packing, "--seeds", "3", "-o", "json"]

    local, remote = (reprieve(*arguments, *more) for more in ([], ["--on", cluster.scheduler_address]))

    assert (local.returncode, remote.returncode, remote.stderr) == (0, 0, b"")
    results = [
        {row["name"]: row for row in json.loads(done.stdout)["figures"] if row["name"] not in OF_THE_MACHINE}
        for done in (local, remote)
    ]
    assert results[0] == results[1]


@pytest.mark.slow
def test_several_configurations_are_compared_at_once(workload: Path) -> None:
    packing, plain = (str(workload.parent / name) for name in ("packing.yaml", "plain.yaml"))
    arguments = ("simulate", str(workload), "--against", packing, "--against", plain, "-o")

    done = reprieve(*arguments, "json")

    comparison = json.loads(done.stdout)
    placed = next(figure for figure in comparison["figures"] if figure["name"] == "utilisation.cpu.mean")
    assert comparison["configurations"] == ["default", "packing.yaml", "plain.yaml"]
    assert placed["means"][0] == placed["means"][2]
    assert reprieve(*arguments, "html").returncode == 0


@pytest.mark.slow
def test_plays_are_exported_as_parquet(workload: Path, tmp_path: Path) -> None:
    folder = tmp_path / "export"

    done = reprieve(
        "simulate",
        str(workload),
        "--against",
        str(workload.parent / "packing.yaml"),
        "--seeds",
        "2",
        "--export",
        str(folder),
        "-o",
        "json",
    )

    runs = {
        (name, run["seed"]): run
        for name, reports in zip(("default", "packing.yaml"), json.loads(done.stdout)["runs"], strict=True)
        for run in reports
    }
    for (configuration, seed), report in runs.items():

        def of_play(name: str, play: tuple[str, int] = (configuration, seed)) -> list[dict[str, object]]:
            return [row for row in rows(folder, name) if (row["configuration"], row["seed"]) == play]

        decisions, pods = of_play("decisions"), of_play("pods")
        assert len(decisions) == report["attempts"]
        assert len(pods) == report["pods"]
        assert sum(row["bound"] is not None for row in pods) == report["placed"]
        assert {row["pod"] for row in decisions if row["node"]} == {
            row["pod"] for row in pods if row["bound"] is not None
        }
        assert sum(bool(row["victims"]) for row in decisions) == report["preemptions"]
        assert [row["placed"] for row in of_play("samples")] == [sample["placed"] for sample in report["samples"]]
        assert len(of_play("usage")) == 2 * len(report["samples"])
        assert {"figure": "placed", "value": float(report["placed"])}.items() <= of_play("figures")[0].items()


def test_a_single_play_is_exported_too(workload: Path, tmp_path: Path) -> None:
    done = reprieve("simulate", str(workload), "--export", str(tmp_path / "export"), "-o", "json")

    assert len(rows(tmp_path / "export", "pods")) == json.loads(done.stdout)["pods"]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "nonsense://here"])
def test_unreachable_address_is_named_in_the_error(workload: Path, address: str) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = address.format(port=reserved.getsockname()[1])
        done = reprieve("simulate", str(workload), "--on", url)

    assert done.returncode == 2
    assert url in done.stderr.decode() and done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_play_and_no_more(workload: Path, cluster: LocalCluster) -> None:
    """What it was playing is played by another one, and the workload, if it lay there, is sent again."""
    (read,) = read_workloads(workload)
    plays: list[int] = []

    def advance(done: int, _: int) -> None:
        plays.append(done)
        if done == 1:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    results = sweep(read, [None, PACKED], range(6), advance, on=cluster.scheduler_address)

    assert plays == [*range(1, 13)]
    assert [[figures_of_a_play(report) for report in reports] for reports in results] == [
        [figures_of_a_play(play(read, configuration, seed).report) for seed in range(6)]
        for configuration in (Configuration(), PACKED)
    ]


@pytest.mark.slow
def test_processes_end_with_the_one_that_began_them(workload: Path) -> None:
    """They hold its standard output, so that this waits for them, too."""
    program = (
        "import os, pathlib, signal, sys; from reprieve.lab.simulation.sweeping import read_workloads, sweep; "
        "sweep(*read_workloads(pathlib.Path(sys.argv[1])), [None], range(9), "
        "lambda done, most: os.kill(os.getpid(), signal.SIGKILL))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(workload)], stdout=subprocess.PIPE, check=False, timeout=300
    )

    assert done.returncode == -signal.SIGKILL


class Deadly(Workload):
    """It ends the process that plays it."""

    name = "deadly"

    async def play(self, scene: Scene) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["this machine", "a cluster"])
def test_a_play_that_ends_every_process_is_told(place: str, cluster: LocalCluster) -> None:
    with pytest.raises(WorkloadError, match="what played it has ended"):
        sweep(Deadly(), [None], [0], on=cluster.scheduler_address if place == "a cluster" else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["small.yaml", "trace", "case/performance-config.yaml", "day.recording"])
def test_what_was_sent_is_played_without_its_files(workload: Path, kind: str, tmp_path: Path) -> None:
    source = tmp_path / kind
    if kind == "trace":
        source.mkdir()
        write_trace(source, "half,1000,1024,1,500,,LS\ntwo,1000,1024,2,1000,,LS\n")
    elif kind.startswith("case"):
        shutil.copytree("examples/workloads/scheduler-perf", tmp_path / "case")
    elif kind.endswith("recording"):
        record(source, a_busy_day, *NODES, URGENT)
    first = read_workloads(source)[0]
    before = play(first, Configuration())

    pickled = pickle.dumps(first)
    shutil.rmtree(tmp_path)
    after = play(pickle.loads(pickled), Configuration())

    assert before.report.placed > 0
    assert [(fate.pod, fate.node) for fate in after.fates] == [(fate.pod, fate.node) for fate in before.fates]


def test_a_folder_that_cannot_be_made_is_named(workload: Path) -> None:
    done = reprieve("simulate", str(workload), "--export", str(workload / "inside"))

    assert done.returncode == 2
    assert b"--export" in done.stderr and done.stderr.count(b"\n") == 1
