"""Workloads in the YAML form of our own."""

from itertools import pairwise
from pathlib import Path

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import WorkloadError
from tests.kit.tables import cases

NODES = "nodes: {count: 9}\n"
BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in pairwise("abcdefghij")
)
EXAMPLE = Path(__file__).parents[4] / "examples" / "workloads" / "web-and-batch.yaml"


def write_workload(folder: Path, text: str) -> Path:
    path = folder / "workload.yaml"
    path.write_text(text)
    return path


def played(folder: Path, text: str, seed: int = 0) -> SimulationReport:
    (workload,) = read_workloads(write_workload(folder, text))
    return play(workload, Configuration(), seed).report


@pytest.mark.slow
def test_the_example_is_as_it_expects() -> None:
    (workload,) = read_workloads(EXAMPLE)

    report = play(workload, Configuration()).report

    assert report.holds
    assert len(report.assertions) == 3
    assert report.simulated_seconds > 7 * 3600
    assert report.evicted
    assert report.samples[-1].allocated == report.allocated


def test_a_pod_waits_until_another_one_has_run(tmp_path: Path) -> None:
    report = played(tmp_path, "nodes: {cpu: 1}\npods: [{name: a, count: 3, cpu: 1, runsFor: 10m}]\n")

    assert report.placed == 3
    assert report.waiting.mean == pytest.approx(600, abs=1)
    assert report.waiting.longest == pytest.approx(1200, abs=2)
    assert report.utilisation["cpu"].mean == pytest.approx(1, abs=0.01)


def test_a_pod_takes_its_grace_to_stop(tmp_path: Path) -> None:
    text = """
nodes: {cpu: 1}
pods:
  - {name: low, cpu: 1, grace: 20s}
  - {name: high, at: 1m, cpu: 1, priority: 10}
"""

    report = played(tmp_path, text)

    assert (report.placed, report.evicted) == (2, 1)
    assert report.waiting.longest == pytest.approx(20, abs=2)


def test_pods_arrive_at_intervals_or_at_random(tmp_path: Path) -> None:
    report = played(
        tmp_path, NODES + "pods: [{name: a, every: 1m, for: 10m, count: 2}, {name: b, rate: 1, for: 10m, cpu: 1m}]\n"
    )

    assert 20 + 500 < report.pods < 20 + 700
    assert report.simulated_seconds == pytest.approx(600, abs=20)


@pytest.mark.slow
def test_another_seed_is_another_chance(tmp_path: Path) -> None:
    text = NODES + "pods: [{name: b, rate: 1, for: 10m, cpu: 1m, runsFor: {mean: 1m}}]\n"

    first, repeated, other = played(tmp_path, text), played(tmp_path, text), played(tmp_path, text, 1)

    assert (first.pods, first.utilisation) == (repeated.pods, repeated.utilisation)
    assert first.utilisation != other.utilisation


def test_manifests_are_completed_and_priorities_are_those_of_classes(tmp_path: Path) -> None:
    text = """
nodes: {cpu: 1}
objects: [{kind: PriorityClass, metadata: {name: vital}, value: 500}]
pods:
  - {name: low, cpu: 1}
  - {name: high, at: 1s, cpu: 1, spec: {priorityClassName: vital}}
expect: [evicted == 1, placed == 100%, waiting.longest < 1]
"""

    assert played(tmp_path, text).holds


def test_a_report_says_which_expectation_does_not_hold(tmp_path: Path) -> None:
    report = played(
        tmp_path, "nodes: {cpu: 1}\npods: [{name: a, count: 4, cpu: 1}]\nexpect: [placed >= 50%, refused == 3]\n"
    )

    assert not report.holds
    assert [(assertion.found, assertion.holds) for assertion in report.assertions] == [(0.25, False), (3, True)]


@cases(
    "text, why",
    ("no YAML", "nodes: [", "workload.yaml: yaml: "),
    ("something else", "a: 1", "unknown field"),
    ("no nodes", "pods: []", "missing required field `nodes`"),
    ("an unknown field", "nodes: {cows: 3}\npods: []", "unknown field `cows` - at `$.nodes`"),
    ("very many nodes", "nodes: {count: 999999999}\npods: []", "nodes: more than 200000"),
    ("very many pods", "nodes: {}\npods: [{name: a, count: 99999999}]", "pods[0]: about 1e+08 pods"),
    ("a huge rate", "nodes: {}\npods: [{name: a, rate: 1.0e+300, for: 1h}]", "pods[0]: about"),
    ("no end", "nodes: {}\npods: [{name: a, rate: 1}]", "pods[0]: `for` says"),
    ("no time", "nodes: {}\npods: [{name: a, at: tomorrow}]", "pods[0].at: time: invalid duration"),
    ("a negative time", "nodes: {}\npods: [{name: a, runsFor: -3s}]", "pods[0].runsFor: '-3s' is negative"),
    ("years", "nodes: {}\npods: [{name: a, at: 99999h}]", "pods[0].at: '99999h' is negative, or longer than 31 days"),
    ("no quantity", "nodes: {}\npods: [{name: a, cpu: many}]", "pods[0]: Pod"),
    ("no quantity of a node", "nodes: {cpu: many}\npods: [{name: a}]", "nodes[0]: Node"),
    (
        "no class",
        "nodes: {}\npods: [{name: a, spec: {priorityClassName: b}}]",
        "no PriorityClass with name b was found",
    ),
    ("an unknown field of a pod", "nodes: {}\npods: [{name: a, spec: {cows: 3}}]", 'unknown field "spec.cows"'),
    ("an unknown kind", "nodes: {}\nobjects: [{kind: Cow}]\npods: []", "objects[0]: kind 'Cow'"),
    ("a name twice", "nodes: {}\npods: [{name: a}, {name: a}]", "two groups have the same name"),
    ("no figure", "nodes: {}\npods: []\nexpect: [cows > 3]", "expect: 'cows > 3': a report has no figure"),
    ("two documents", "nodes: {}\npods: []\n---\nnodes: {}", "more than one document"),
    ("a key twice", "nodes: {}\nnodes: {}\npods: []", 'line 2: key "nodes" already set'),
    ("a bomb", BOMB, "excessive aliasing"),
)
def test_malformed_workload_is_refused_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        read_workloads(write_workload(tmp_path, text))

    assert why in str(raised.value)
