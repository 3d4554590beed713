"""What a question takes is estimated from above, and not by far, whatever it consists of."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.engine.evaluation.memory_needs import needs_of_objects, needs_of_scenario
from extender.values.golang.json import TooLargeError

Object = dict[str, Any]

MIB = 2**20
_MEASURED = """
import asyncio, sys
import msgspec, orjson
from pathlib import Path
from extender.values.config import Configuration
from extender.engine.evaluation.memory_needs import needs_of_scenario
from extender.engine.evaluation.scenario import evaluate_scenario

def peak():  # not ru_maxrss, which begins with that of the process that started this one
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024

async def measure():
    await evaluate_scenario({"pod": {"metadata": {"name": "p"}}}, Configuration())  # what is imported and made once
    body = Path(sys.argv[1]).read_bytes()
    before = peak()
    scenario = msgspec.json.decode(body)
    estimate = needs_of_scenario(scenario).bytes // 2**20
    orjson.dumps(await evaluate_scenario(scenario, Configuration()))
    print(peak() - before, estimate)

asyncio.run(measure())
"""


def node(number: int, **labels: str) -> Object:
    known = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"z{number % 3}"}
    return {
        "metadata": {"name": f"n{number}", "labels": known | labels},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def pod(number: int, nodes: int = 0, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    bound = {"nodeName": f"n{number % nodes}"} if nodes else {}
    return {
        "metadata": {"name": f"p{number}", "labels": {"app": "x"}},
        "spec": {"containers": [container], **bound, **spec},
    }


def apart(*keys: str) -> Object:
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}} for key in keys]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def asking(name: str, amount: str = "1") -> list[Object]:
    return [{"name": "c", "resources": {"requests": {name: amount}}}]


def spread(count: int) -> list[Object]:
    when = ("DoNotSchedule", "ScheduleAnyway")
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname"}
    return [
        constraint
        | {"whenUnsatisfiable": when[number % 2], "labelSelector": {"matchLabels": {"app": f"{number // 2}"}}}
        for number in range(count)
    ]


def scenario(
    num_nodes: int, num_pods: int, incoming: Object, existing: Callable[[int], Object] = lambda _: {}
) -> Object:
    pods = [pod(number, num_nodes, **existing(number)) for number in range(num_pods)]
    asked = {"metadata": {"name": "in", "labels": {"app": "x"}}, "spec": incoming}
    return {"pod": asked, "objects": {"nodes": [*map(node, range(num_nodes))], "pods": pods}}


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: scenario(20_000, 0, {"containers": asking("cpu")}), id="many nodes"),
        pytest.param(lambda: scenario(2_000, 15_000, {"containers": asking("cpu")}), id="many pods"),
        pytest.param(
            lambda: scenario(2_000, 15_000, {"containers": asking("cpu", "64"), "priority": 9}), id="preemption"
        ),
        pytest.param(
            lambda: scenario(
                500,
                3_000,
                {"containers": asking("cpu")},
                lambda _: {"affinity": apart(*["kubernetes.io/hostname"] * 10)},
            ),
            id="many terms",
        ),
        pytest.param(
            lambda: scenario(4_000, 4_000, {"containers": asking("cpu")}, lambda i: {"affinity": apart(f"key-{i}")}),
            id="topology keys that are all different",
        ),
        pytest.param(
            lambda: scenario(10_000, 0, {"containers": asking("cpu"), "topologySpreadConstraints": spread(100)}),
            id="spread constraints",
        ),
        pytest.param(
            lambda: scenario(
                500, 3_000, {"containers": asking("cpu")}, lambda i: {"containers": asking(f"example.com/{i}")}
            ),
            id="resources that are all different",
        ),
    ],
)
def test_an_evaluation_takes_at_most_what_was_estimated(tmp_path: Path, made: Callable[[], Object]) -> None:
    body = tmp_path / "scenario.json"
    body.write_text(json.dumps(made(), separators=(",", ":")))

    done = subprocess.run([sys.executable, "-c", _MEASURED, str(body)], capture_output=True, text=True, check=True)

    took, estimate = map(int, done.stdout.split())
    assert took <= estimate <= 5 * took + 50


def test_what_is_beyond_the_limit_is_refused_with_the_figures() -> None:
    large = scenario(100, 50, {"containers": asking("cpu")}, lambda i: {"affinity": apart(f"key-{i}")})

    with pytest.raises(TooLargeError) as raised:
        needs_of_scenario(large).check(MIB)

    words = str(raised.value)
    assert "MiB of memory, and 1 MiB are allowed" in words
    assert "100 nodes, 51 pods, 50 affinity terms and spread constraints, 50 topology keys" in words


def test_what_is_within_the_limit_is_not() -> None:
    needs_of_scenario(scenario(100, 50, {"containers": asking("cpu")})).check(4 * MIB)


def test_a_workload_counts_as_the_pods_that_it_makes_and_a_list_as_its_items() -> None:
    template = {
        "spec": {"containers": asking("cpu"), "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    }
    deployment = {"kind": "Deployment", "spec": {"replicas": 300, "template": template}}
    needs = needs_of_objects(
        [{"kind": "List", "items": [deployment, {"kind": "Node", **node(1)}]}, {"kind": "Pod", **pod(1)}], 10, 0
    )

    assert (needs.nodes, needs.pods, needs.pods_with_claims) == (11, 301, 300)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"pod": 1},
        {"pod": {"spec": []}},
        {"objects": []},
        {"objects": {"nodes": 1, "pods": [1, None]}},
        {"nominated": {}},
    ],
)
def test_what_has_another_form_is_left_to_those_who_read_it(value: Object) -> None:
    needs_of_scenario(value).check(MIB)


@pytest.mark.parametrize(
    "objects", [[1], [{"kind": "PodList", "items": [1]}], [{"kind": "Deployment", "spec": {"replicas": "many"}}], [{}]]
)
def test_so_are_objects(objects: list[Any]) -> None:
    needs_of_objects(objects, 0, 0).check(MIB)
