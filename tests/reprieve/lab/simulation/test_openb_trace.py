"""A trace of GPUs and pods, read from its tables and played."""

import gzip
import os
from pathlib import Path

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation.openb_trace import GPU
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import WorkloadError
from tests.kit.tables import cases

TRACE = Path(os.environ.get("REPRIEVE_TRACES", Path(__file__).parents[5] / "shared" / "traces")) / "openb"

NODES = "sn,cpu_milli,memory_mib,gpu,model\ncpu-only,32000,262144,0,\nold,32000,262144,2,P100\nnew,32000,262144,2,T4\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"


def write_trace(folder: Path, pods: str, nodes: str = NODES) -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(PODS + pods)
    return folder


def played(path: Path, seed: int = 0) -> SimulationReport:
    (workload,) = read_workloads(path)
    return play(workload, Configuration(), seed).report


def test_a_share_of_a_gpu_is_an_amount_and_pods_without_room_are_refused(tmp_path: Path) -> None:
    pods = "half,1000,1024,1,500,,LS\ntwo,1000,1024,2,1000,,LS\ntwo-more,1000,1024,2,1000,,LS\n"

    report = played(write_trace(tmp_path, pods))

    assert (report.placed, report.refused) == (2, 1)
    assert report.allocated[GPU] == 0.625
    assert report.refusals[0].message.startswith("0/3 nodes are available: 3 Insufficient alibabacloud.com/gpu-milli.")


def test_a_pod_that_names_models_lands_on_one_of_them(tmp_path: Path) -> None:
    report = played(write_trace(tmp_path, "a,1000,1024,2,1000,T4|A10,LS\nb,1000,1024,1,1000,T4,LS\n"))

    assert (report.placed, report.refused) == (1, 1)
    assert "2 node(s) didn't match Pod's node affinity/selector" in report.refusals[0].message


def test_pods_arrive_until_they_have_asked_for_all_gpus(tmp_path: Path) -> None:
    report = played(write_trace(tmp_path, "".join(f"pod-{number},100,128,1,1000,,LS\n" for number in range(10))))

    assert report.pods == 4
    assert report.notes == ("4 of 10 pods arrive; they ask for 100.0% of 4 GPUs",)


def test_free_gpu_counts_as_a_fragment_for_pods_that_cannot_use_it(tmp_path: Path) -> None:
    """In the end one GPU is free on each of two nodes: a pod with two GPUs cannot use them, one with none does not."""
    pods = "one,1000,1024,1,1000,P100,LS\none-too,1000,1024,1,1000,T4,LS\nnone,1000,1024,0,0,,LS\ntwo,1000,1024,2,1000,,LS\n"

    report = played(write_trace(tmp_path, pods))

    # Those for one GPU can use the free one of their own model.
    assert report.fragmentation[GPU] == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)


def test_a_seed_shuffles_the_pods_and_repeats(tmp_path: Path) -> None:
    pods = "".join(f"pod-{number},1000,1024,{number % 2 + 1},{700 + number},,LS\n" for number in range(12))
    path = write_trace(tmp_path, pods)

    first, repeated, other = played(path, 1), played(path, 1), played(path, 5)

    assert first.allocated == repeated.allocated
    assert first.allocated != other.allocated


def test_packed_tables_and_a_table_of_pods_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(NODES.encode()))
    (tmp_path / "others.csv.gz").write_bytes(gzip.compress((PODS + "one,1000,1024,1,1000,,LS\n").encode()))

    assert played(tmp_path / "others.csv.gz").placed == 1


@cases(
    "nodes, pods, why",
    ("no column", "sn,cpu_milli\n", "", "nodes.csv: line 1: there is no column memory_mib, gpu, model"),
    ("empty", "", "", "nodes.csv: line 1: there is no column"),
    ("no pods", NODES, "", "pods.csv: there is no line below"),
    ("a short line", NODES, "a,1000,1024\n", "pods.csv: line 2: 3 fields for 7 columns"),
    ("no number", NODES, "a,1e3,1024,0,0,,LS\n", "pods.csv: line 2: cpu_milli: '1e3' is not a number"),
    ("a huge number", NODES, f"a,{'9' * 5000},1024,0,0,,LS\n", "pods.csv: line 2: cpu_milli"),
    ("no name", NODES, ",1000,1024,0,0,,LS\n", "pods.csv: line 2: name: a pod needs a name"),
    ("a quote without an end", NODES, f'"{"a" * 200_000},1\n', "pods.csv: line"),
)
def test_malformed_table_is_refused_with_its_line(tmp_path: Path, nodes: str, pods: str, why: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        read_workloads(write_trace(tmp_path, pods, nodes))

    assert why in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_table_that_unpacks_to_very_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv.gz").write_bytes(gzip.compress(b"a" * 2**28, 1) * 2)

    with pytest.raises(WorkloadError, match=r"pods\.csv\.gz: "):
        read_workloads(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.is_dir(), reason="the trace is not here: REPRIEVE_TRACES names the folder that has it")
@pytest.mark.parametrize(("pods", "go"), [("pods.csv.gz", 0.930), ("pods-gpuspec33.csv.gz", 0.8315)])
def test_the_public_trace_fills_as_many_gpus_as_with_kube_scheduler(pods: str, go: float) -> None:
    report = played(TRACE / pods)

    assert report.nodes == 1523
    assert report.allocated[GPU] == pytest.approx(go, abs=0.005)
