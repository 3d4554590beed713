"""`reprieve simulate`, run as people run it."""

import json
import re
from pathlib import Path

import pytest

from tests.api.in_process import HEADER, configured, reprieve
from tests.reprieve.lab.simulation.test_openb_trace import write_trace

PODS = "half,1000,1024,1,500,,LS\ntwo,1000,1024,2,1000,,LS\ntwo-more,1000,1024,2,1000,T4,LS\n"


def test_the_report_as_a_table(tmp_path: Path) -> None:
    done = reprieve("simulate", str(write_trace(tmp_path, PODS)))

    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "pods.csv: 2 of 3 pods placed on 3 nodes" in text
    assert "1 refused" in text
    assert "62.5%" in text
    assert "note: 3 of 3 pods arrive" in text


def test_the_report_as_json(tmp_path: Path) -> None:
    done = reprieve("simulate", str(write_trace(tmp_path, PODS)), "-o", "json", "--seed", "3")

    report = json.loads(done.stdout)
    assert report["placed"] + report["refused"] == 3
    assert report["decisions_per_second"] > 0
    assert report["cpu_ms_per_pod"] >= 0
    assert set(report["allocated"]) == {"cpu", "memory", "alibabacloud.com/gpu-milli"}


@pytest.mark.parametrize("arguments", [["nowhere"], ["README.md"], ["docs"]])
def test_file_that_is_no_workload_is_refused_in_one_line(arguments: list[str]) -> None:
    done = reprieve("simulate", *arguments)

    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"reprieve: {arguments[0]}: no")
    assert done.stderr.count(b"\n") == 1


def test_a_configuration_with_extenders_is_refused(tmp_path: Path) -> None:
    config = configured(tmp_path, "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n")

    done = reprieve("simulate", str(write_trace(tmp_path, PODS)), "--config", config)

    assert done.returncode == 2
    assert b"extenders" in done.stderr


def test_the_page_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    done = reprieve("simulate", str(write_trace(tmp_path, PODS)), "-o", "html")

    page = done.stdout.decode()
    assert done.returncode == 0
    assert page.count("<svg") >= 3
    assert "2 of 3 pods were placed on 3 nodes" in page
    assert "Insufficient alibabacloud.com/gpu-milli" in page
    assert not re.search(r"""(src|href)\s*=|url\(|@import|<script""", page)


PERF = "examples/workloads/scheduler-perf/performance-config.yaml"


@pytest.mark.slow
def test_workloads_of_a_file_are_chosen_by_name_and_label() -> None:
    selected = reprieve("simulate", PERF, "--only", "Spread*", "--only", "Preemption/*", "--label", "short")
    none = reprieve("simulate", PERF, "--only", "Spread*", "--label", "long")

    assert selected.returncode == 0
    assert "Spreading/300Nodes: 1300 of 1300 pods placed" in selected.stdout.decode()
    assert "a second (threshold 20)" in selected.stdout.decode()
    assert selected.stdout.decode().endswith("\n2 of 2 workloads played\n")
    assert (none.returncode, b"no workload has this name and label" in none.stderr) == (2, True)


def test_a_workload_that_cannot_be_played_does_not_keep_out_the_others(tmp_path: Path) -> None:
    path = tmp_path / "performance-config.yaml"
    path.write_text(
        "- name: a\n  workloadTemplate: [{opcode: createPodGroups}]\n  workloads: [{name: b}]\n"
        "- name: c\n  workloadTemplate: [{opcode: createNodes, count: 3}]\n  workloads: [{name: d}]\n"
    )

    done = reprieve("simulate", str(path), "-o", "json")

    assert done.returncode == 1
    assert (
        done.stderr == b"refused: a/b: operation 0 (createPodGroups): the opcode 'createPodGroups' is not supported\n"
    )
    assert [(report["workload"], report["nodes"]) for report in json.loads(done.stdout)] == [("c/d", 3)]


def test_an_expectation_that_does_not_hold_sets_the_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(
        "nodes: {cpu: 1}\npods: [{name: <a>, count: 4, cpu: 1}]\nexpect: [placed == 4]\n".replace("<a>", "a")
    )

    done = reprieve("simulate", str(path))
    page = reprieve("simulate", str(path), "-o", "html")

    assert (done.returncode, done.stderr) == (1, b"")
    assert "FAILS  placed == 4  (found 1)" in done.stdout.decode()
    assert page.returncode == 1
    assert "✗ placed == 4" in page.stdout.decode()


PACKING = (
    f"{HEADER}profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {{type: "
    f"MostAllocated}}}}}}]}}]\n"
)


@pytest.fixture(scope="module")
def packing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("configuration") / "packing.yaml"
    path.write_text(PACKING)
    return path


@pytest.mark.slow
def test_two_configurations_are_compared_in_pairs(packing: Path) -> None:
    done = reprieve(
        "simulate", "examples/workloads/gpu-sample", "--against", str(packing), "--seeds", "2", "-o", "json"
    )

    comparison = json.loads(done.stdout)
    figures = {figure["name"]: figure for figure in comparison["figures"]}
    packed = figures["allocated.alibabacloud.com/gpu-milli"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert (comparison["configurations"], comparison["seeds"]) == (["default", "packing.yaml"], [0, 1])
    assert [[run["seed"] for run in runs] for runs in comparison["runs"]] == [[0, 1], [0, 1]]
    assert [run["pods"] for run in comparison["runs"][0]] == [run["pods"] for run in comparison["runs"][1]]
    assert packed["difference"] > 0.1
    assert (packed["larger"], packed["smaller"]) == (2, 0)
    assert packed["difference"] == pytest.approx(packed["means"][1] - packed["means"][0])


@pytest.mark.slow
def test_a_comparison_as_a_table_and_as_a_page(packing: Path, tmp_path: Path) -> None:
    arguments = ("simulate", str(write_trace(tmp_path, PODS)), "--against", str(packing))

    table, page = reprieve(*arguments), reprieve(*arguments, "-o", "html")

    assert (table.returncode, page.returncode) == (0, 0)
    assert re.search(r"FIGURE +DEFAULT +PACKING.YAML +DIFFERENCE", table.stdout.decode())
    assert "with the seed 0" in table.stdout.decode()
    assert "packing.yaml" in page.stdout.decode()
    assert 'class="line c0 dashed"' in page.stdout.decode()
    assert not re.search(r"(src|href)\s*=|url\(|@import|<script", page.stdout.decode())


@pytest.mark.slow
def test_several_seeds_without_another_configuration(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text("nodes: {cpu: 4}\npods: [{name: a, rate: 1, for: 10s, cpu: 1}]\nexpect: [pods < 3]\n")

    done = reprieve("simulate", str(path), "--seeds", "3", "--seed", "5")

    assert done.returncode == 1
    assert "with the seeds 5 to 7" in done.stdout.decode()
    assert re.search(r"FAILS +pods < 3 +\(found \d+ with default, seed 5\)", done.stdout.decode())


@pytest.mark.slow
def test_error_in_a_child_process_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "performance-config.yaml"
    path.write_text("- name: a\n  workloadTemplate: [{opcode: createPodGroups}]\n  workloads: [{name: b}]\n")

    done = reprieve("simulate", str(path), "--seeds", "2")
    many = reprieve("simulate", str(path), "--seeds", "99999")

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"a/b: operation 0 (createPodGroups): the opcode" in done.stderr
    assert many.stderr == b"reprieve: 99999 plays, but at most 10000\n"
