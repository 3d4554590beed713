"""A dump of a cluster is a workload: its pods arrive anew."""

import json
from pathlib import Path
from typing import Any

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.sweeping import read_workloads
from tests.api.in_process import reprieve
from tests.kit.objects import node, pod, state_file


def owned(name: str, kind: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    pod_object = pod(name, cpu, **spec)
    pod_object["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": "owner", "controller": True}
    ]
    return pod_object


def dumped(folder: Path, *objects: dict[str, Any], name: str = "cluster.json") -> Path:
    file = folder / name
    return state_file(file, *objects)


def played(file: Path, seed: int = 0) -> Played:
    (workload,) = read_workloads(file)
    return play(workload, Configuration(), seed)


def test_running_pods_arrive_anew_and_pods_of_nodes_stay(tmp_path: Path) -> None:
    agent = owned("agent", "DaemonSet", "3", nodeName="n1")
    done = owned("done", "Job", nodeName="n2") | {"status": {"phase": "Succeeded"}}
    file = dumped(
        tmp_path, node("n1", "4"), node("n2", "4"), agent, done, owned("web", "ReplicaSet", "4", nodeName="n1")
    )

    result = played(file)

    assert [(fate.pod.partition("/")[2], fate.node) for fate in result.fates] == [("web", "n2")]
    assert result.report.allocated["cpu"] == (3 + 4) / 8


def test_seeds_are_orders_of_arrival(tmp_path: Path) -> None:
    file = dumped(tmp_path, node("n1", "4"), *(owned(f"p{number}", "Job", "1") for number in range(9)))

    def placed(seed: int) -> list[str]:
        return [fate.pod for fate in played(file, seed).fates if fate.node]

    assert [name.partition("/")[2] for name in placed(0)] == ["p0", "p1", "p2", "p3"]
    assert placed(1) != placed(0)
    assert placed(1) == placed(1)


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml", "cluster.yml"])
def test_a_dump_may_be_json_or_yaml(tmp_path: Path, name: str) -> None:
    text = (
        "# a comment\n"
        + "apiVersion: v1\nkind: List\nitems:\n"
        + f"- {json.dumps(node('n', '4'))}\n- {json.dumps(pod('p'))}\n"
    )
    file = tmp_path / name
    if name.endswith(".json"):
        dumped(tmp_path, node("n", "4"), pod("p"))
    else:
        file.write_text(text)

    assert played(file).report.placed == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"kind": "List", "apiVersion": "v1", "items": []}', "the dump has no nodes"),
        ("{", "cluster.json"),
        ('{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Node", "metadata": 3}]}', "metadata"),
    ],
)
def test_a_dump_that_is_none_is_refused_in_one_line(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(content)

    done = reprieve("simulate", str(file))

    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert words in done.stderr.decode()
