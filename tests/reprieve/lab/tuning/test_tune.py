"""`reprieve tune`: what is learnt on one half is tried on the other, and written if it is better."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
import yaml
from distributed import LocalCluster
from pyarrow import parquet

from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.tuning import Goal, TuneReport, tune
from reprieve.lab.tuning.settings import Space
from tests.api.in_process import configured, reprieve
from tests.reprieve.lab.recordings.recorded_cluster import NODES, create, record
from tests.reprieve.lab.simulation.test_openb_trace import TRACE, write_trace
from tests.reprieve.lab.simulation.test_replay import URGENT, a_busy_day

GPUS = "allocated.alibabacloud.com/gpu-milli"
SAMPLE = "examples/workloads/gpu-sample"
OF_THE_MACHINE = {"decisions_per_second", "cpu_ms_per_pod", "wall_seconds", "phases", "samples"}
SMALL = """
name: small
nodes: {name: worker, count: 4, cpu: 8, memory: 8Gi, resources: {nvidia.com/gpu: 4}}
pods:
  - {name: one, count: 9, cpu: 1, memory: 1Gi, resources: {nvidia.com/gpu: 1}}
  - {name: four, at: 1m, count: 4, cpu: 1, memory: 1Gi, resources: {nvidia.com/gpu: 4}}
"""
ENDED = "what played it has ended, perhaps because memory ran out"
ROOMY = "nodes: {count: 3, cpu: 8}\npods: [{name: web, count: 5, cpu: 1}]\n"


def saved(folder: Path, text: str = SMALL) -> str:
    file = folder / "workload.yaml"
    file.write_text(text)
    return str(file)


def learnt(source: str, figure: str, *limits: str, **options: Any) -> TuneReport:
    (workload,) = read_workloads(Path(source))
    return tune(workload, None, Goal.read(figure, is_maximised=True, limits=limits), **options)


def without_times(report: TuneReport) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(report)
    del plain["held_out"]
    return plain


@pytest.mark.slow
def test_packing_is_learnt_where_large_pods_come_later(tmp_path: Path) -> None:
    """Spread over four nodes, nine small pods leave no room for a pod that needs all GPUs of one."""
    file, drawn = tmp_path / "tuned.yaml", tmp_path / "front.svg"

    done = reprieve(
        *("tune", saved(tmp_path), "--maximise", "allocated.nvidia.com/gpu", "--plays", "30", "--seeds", "2"),
        *("--write", str(file), "--picture", str(drawn), "-o", "json"),
    )

    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    before, now = (report["candidates"][name]["value"] for name in ("default", report["chosen"]))
    assert now > before
    assert report["tried"][0]["value"] >= report["candidates"]["MostAllocated"]["value"] - 1e-9
    assert yaml.safe_load(file.read_text()) == report["configuration"]
    assert report["gained"] > 0
    assert reprieve("print-config", "--config", str(file)).returncode == 0
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")


@pytest.mark.slow
def test_decisions_are_those_of_the_written_file_on_the_other_half(tmp_path: Path) -> None:
    file, export = tmp_path / "tuned.yaml", tmp_path / "export"
    done = reprieve("tune", SAMPLE, "--maximise", GPUS, "--plays", "40", "--write", str(file), "-o", "json")
    report = json.loads(done.stdout)
    place = [*report["candidates"]].index(report["chosen"])

    for seed, run in zip(report["held_out"]["seeds"], report["held_out"]["runs"][place], strict=True):
        arguments = ("--half", "later", "--config", str(file), "--seed", str(seed), "-o", "json")
        played = json.loads(reprieve("simulate", SAMPLE, *arguments, "--export", str(export / str(seed))).stdout)
        assert {name: value for name, value in played.items() if name not in OF_THE_MACHINE} == {
            name: value for name, value in run.items() if name not in OF_THE_MACHINE
        }

    first = report["held_out"]["seeds"][0]
    nodes = {row["pod"]: row["node"] for row in parquet.read_table(export / str(first) / "pods.parquet").to_pylist()}
    assert report["elsewhere"]
    assert all(nodes[pod["pod"]] == pod["now"] for pod in report["elsewhere"])


@pytest.mark.slow
def test_where_nothing_is_better_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "tuned.yaml"

    done = reprieve(
        *("tune", saved(tmp_path, ROOMY), "--maximise", "placed", "--plays", "20", "--seeds", "2"),
        *("--write", str(file)),
    )

    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode().startswith("Nothing beats the default configuration: placed 5\n")
    assert not file.exists()


@pytest.mark.slow
def test_limits_that_nothing_keeps_are_told(tmp_path: Path) -> None:
    done = reprieve(
        *("tune", saved(tmp_path, ROOMY), "--minimise", "waiting.p90", "--keep", "refused > 0", "--plays", "20"),
        *("--seeds", "1", "-o", "yaml"),
    )

    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        done.stderr == b"reprieve: No configuration stays within refused > 0; the nearest is default, waiting.p90 0\n"
    )


@pytest.mark.slow
def test_a_better_figure_does_not_outweigh_a_limit(tmp_path: Path) -> None:
    """Packed, more GPUs are allocated, and fewer pods are placed."""
    free = learnt(saved(tmp_path), "allocated.nvidia.com/gpu", plays=30, seeds=1)
    default = free.candidates["default"]
    placed = free.held_out.runs[0][0].placed

    bound = learnt(saved(tmp_path), "allocated.nvidia.com/gpu", f"placed >= {placed + 1}", plays=30, seeds=1)

    assert free.configuration is not None and free.candidates[free.chosen].value > default.value
    assert all(candidate.keeps_limits == (candidate.limited[0] >= placed + 1) for candidate in bound.tried)
    assert bound.configuration is None or bound.candidates[bound.chosen].keeps_limits


@pytest.mark.slow
def test_one_seed_gives_one_result_and_another_seed_another_search(tmp_path: Path) -> None:
    source = saved(tmp_path)

    once, repeated, other = (
        learnt(source, "allocated.nvidia.com/gpu", plays=40, seeds=1, seed=seed) for seed in (0, 0, 5)
    )

    assert without_times(once) == without_times(repeated)
    assert [candidate.settings for candidate in once.tried] != [candidate.settings for candidate in other.tried]


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    def interrupt(done: int, all_of_them: int, best: float | None) -> None:
        if done == 25:
            raise KeyboardInterrupt

    report = learnt(saved(tmp_path), "allocated.nvidia.com/gpu", plays=10_000, seeds=1, advance=interrupt)

    assert report.notes == ("the search has ended after 25 plays: it was interrupted",)
    assert report.configuration is not None


@pytest.mark.slow
def test_ctrl_c_before_anything_is_known_ends_it(tmp_path: Path) -> None:
    def interrupt(done: int, all_of_them: int, best: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learnt(saved(tmp_path), "allocated.nvidia.com/gpu", advance=interrupt)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as workers:
        yield workers


@pytest.mark.slow
def test_a_cluster_learns_what_this_machine_learns(tmp_path: Path, cluster: LocalCluster) -> None:
    source = saved(tmp_path)

    local, remote = (
        learnt(source, "allocated.nvidia.com/gpu", plays=30, seeds=2, on=on) for on in (None, cluster.scheduler_address)
    )

    assert without_times(local) == without_times(remote)


@pytest.mark.slow
def test_what_was_learnt_is_tried_here_if_the_cluster_goes_away(tmp_path: Path) -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as leaving:

        def advance(done: int, all_of_them: int, best: float | None) -> None:
            if done == 12:
                leaving.close()

        report = learnt(
            saved(tmp_path),
            "allocated.nvidia.com/gpu",
            plays=100,
            seeds=1,
            on=leaving.scheduler_address,
            advance=advance,
        )

    assert report.notes == (f"the search has ended after {report.plays} plays: {ENDED}",)
    assert 12 <= report.plays < 100
    assert report.configuration is not None


# What cannot be used.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "give --maximise FIGURE or --minimise FIGURE"),
        ("--maximise placed --minimise refused", "give --maximise FIGURE or --minimise FIGURE"),
        ("--maximise nothing", "'nothing' is no figure of a report of `simulate`"),
        ("--maximise placed>3", "'placed>3' is no figure"),
        (
            "--maximise allocated.nvidia.com/gpus",
            "has no allocated.nvidia.com/gpus; did you mean allocated.nvidia.com/gpu?",
        ),
        ("--minimise allocated.example.com/tpu", "has no allocated.example.com/tpu"),
        ("--maximise waiting", "has no waiting"),
        ("--maximise placed --keep waiting.p90", "--keep 'waiting.p90' is not an expectation"),
        ("--maximise placed --keep patience<9", "--keep 'patience<9': a report has no figure 'patience'"),
        ("--maximise placed --keep waiting.p10<9", "has no waiting.p10"),
        ("--maximise placed --only other", "0 workloads here; --only NAME chooses one"),
        ("--maximise placed --config nowhere.yaml", "nowhere.yaml"),
        ("--maximise placed --on tcp://127.0.0.1:1", "no scheduler of dask.distributed answers there"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path: Path, arguments: str, words: str) -> None:
    done = reprieve("tune", saved(tmp_path), *arguments.split())

    assert done.returncode == 2, done.stderr
    assert words in done.stderr.decode()
    assert (done.stdout, done.stderr.count(b"\n")) == (b"", 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: {count: 3, cpu: 8}\npods: []\n", "no pod arrives: there is nothing to place"),
        ("nodes: {count: 3, cpu: 8}\npods: [{name: web, count: 0, cpu: 1}]\n", "no pod arrives"),
        ("nodes: []\npods: 3\n", "pods"),
    ],
)
def test_nothing_to_place_is_told(tmp_path: Path, text: str, words: str) -> None:
    done = reprieve("tune", saved(tmp_path, text), "--maximise", "placed")

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert words in done.stderr.decode()


@pytest.mark.parametrize(
    ("option", "place", "words"),
    [
        ("--picture", "no/front.svg", "no/front.svg: its folder does not exist"),
        ("--write", "workload.yaml/tuned.yaml", "workload.yaml/tuned.yaml: its folder does not exist"),
        ("--write", "", "a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_before_anything_is_played(
    tmp_path: Path, option: str, place: str, words: str
) -> None:
    done = reprieve("tune", saved(tmp_path), "--maximise", "placed", option, str(tmp_path / place))

    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert words in done.stderr.decode()


def test_what_the_other_half_does_not_have_is_told_before_anything_is_searched(tmp_path: Path) -> None:
    """Of two nodes, the second has no GPUs."""
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nfirst,64000,262144,2,A10\nsecond,64000,262144,0,\n"
    source = write_trace(tmp_path, "".join(f"pod-{number},100,128,1,1000,,LS\n" for number in range(4)), nodes)

    done = reprieve("tune", str(source), "--maximise", GPUS)

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert "later half has no allocated.alibabacloud.com/gpu-milli" in done.stderr.decode()


def test_a_workload_that_brings_its_configuration_is_refused(tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree("examples/workloads/scheduler-perf", case)
    file = case / "performance-config.yaml"
    (case / "config.yaml").write_text(
        yaml.safe_dump(Space(None, ["cpu"], 3).document(Space(None, ["cpu"], 3).unchanged))
    )
    cases = yaml.safe_load(file.read_text())
    for case in cases:
        case["schedulerConfigPath"] = "config.yaml"
    file.write_text(yaml.safe_dump(cases))
    first = read_workloads(file)[0].name

    done = reprieve("tune", str(file), "--only", first, "--maximise", "placed")

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert f"{first} is played with its own schedulerConfigPath" in done.stderr.decode()


@pytest.mark.slow
def test_a_limit_on_what_is_left_holds_where_nothing_is_left(tmp_path: Path) -> None:
    """Packed, all sixteen GPUs are allocated, and none of them is free."""
    source = saved(tmp_path, SMALL.replace("count: 9", "count: 8"))

    report = learnt(source, "placed", "fragmentation.nvidia.com/gpu <= 30%", plays=20, seeds=1)

    assert report.notes == ()
    assert report.candidates["MostAllocated"].limited == (0.0,)


# Halves.


def test_a_recording_in_which_no_pod_ends_is_refused(tmp_path: Path) -> None:
    async def arrivals(cluster: Any) -> None:
        for number in range(4):
            create(cluster, f"web-{number}")

    file = record(tmp_path / "day.recording", arrivals, *NODES)

    done = reprieve("tune", str(file), "--maximise", "placed")

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert "no pod that arrives in it ends" in done.stderr.decode()


@pytest.mark.slow
def test_a_recording_is_cut_where_half_of_its_pods_have_come(tmp_path: Path) -> None:
    file = record(tmp_path / "day.recording", a_busy_day, *NODES, URGENT)

    whole, earlier, later = (
        json.loads(reprieve("simulate", str(file), *half, "-o", "json").stdout)
        for half in ((), ("--half", "earlier"), ("--half", "later"))
    )

    assert earlier["pods"] + later["pods"] >= whole["pods"] > max(earlier["pods"], later["pods"])
    assert later["samples"][0]["running"] > 0
    assert reprieve("tune", str(file), "--maximise", "placed", "--plays", "20", "--seeds", "1").returncode in (0, 1)


def test_a_trace_is_cut_into_nodes_and_pods(tmp_path: Path) -> None:
    pods = "".join(f"pod-{number},100,128,1,1000,,LS\n" for number in range(10))
    (workload,) = read_workloads(write_trace(tmp_path, pods))

    names = [workload.half(is_later=is_later).name for is_later in (False, True)]
    earlier, later = (
        json.loads(reprieve("simulate", str(tmp_path), "--half", half, "-o", "json").stdout)
        for half in ("earlier", "later")
    )

    assert [name.rpartition(", ")[2] for name in names] == ["earlier half", "later half"]
    assert (earlier["nodes"], later["nodes"]) == (2, 1)
    assert (earlier["pods"], later["pods"]) == (2, 2)


@pytest.mark.skipif(not TRACE.is_dir(), reason="the trace is not here: REPRIEVE_TRACES names the folder that has it")
@pytest.mark.slow
def test_a_trace_of_a_large_cluster_is_packed_no_worse_than_by_most_allocated(tmp_path: Path) -> None:
    """What is learnt on one half of 1,213 nodes and 8,152 pods, on the other half."""
    report = learnt(str(TRACE), GPUS, plays=int(os.environ.get("REPRIEVE_TUNE_PLAYS", "100")), seeds=2)

    values = {name: candidate.value for name, candidate in report.candidates.items()}
    print(values, report.tried[0].value, report.candidates[report.chosen].settings)
    assert values[report.chosen] >= max(values["default"], values["MostAllocated"])
    assert (report.configuration is None) is (report.chosen == "default")
    if report.configuration is not None:
        config = configured(tmp_path, yaml.safe_dump({"profiles": report.configuration["profiles"]}))
        played = reprieve("simulate", str(TRACE), "--half", "later", "--config", config, "--seed", "2", "-o", "json")
        run = report.held_out.runs[[*report.candidates].index(report.chosen)][0]
        assert json.loads(played.stdout)["allocated"] == run.allocated
