"""A stranger's plugin, from its own distribution to a decision: `tests/example_plugin` built, unpacked and found by its
entry point.
"""

import importlib.util
import json
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import PodBuilder, check_filter, make_snapshot, random_cluster
from extender.values.objects.decoding import replaced
from reprieve import plugin as fwk
from tests.kit.examples import examples

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "tests" / "example_plugin"
GENERATION, MINIMUM = "example.com/gpu-generation", "example.com/min-gpu-generation"

ENABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: GpuGeneration, weight: 5}]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of libraries with the plugin in it. A wheel without compiled parts is installed by unpacking it,
    which needs no network.
    """
    built, site = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built)]
    subprocess.run(command, check=True, cwd=PLUGIN, capture_output=True, timeout=120)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


def evaluate(tmp_path: Path, libraries: Path | None, *scenarios: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """`reprieve evaluate` in a process of its own, the plugin enabled."""
    config = tmp_path / "config.yaml"
    config.write_text(ENABLED)
    return subprocess.run(
        [sys.executable, "-m", "api.cli", "evaluate", "-", "--config", str(config)],
        check=False,
        input="".join(json.dumps(scenario) + "\n" for scenario in scenarios),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(libraries or "")},
        timeout=120,
    )


def node(name: str, generation: str | None) -> dict[str, Any]:
    labels = {} if generation is None else {GENERATION: generation}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}


def scenario(minimum: str | None) -> dict[str, Any]:
    """A pod on a cluster of an old node, two new ones and one without a GPU."""
    annotations = {} if minimum is None else {MINIMUM: minimum}
    nodes = [node("old", "3"), node("new", "7"), node("newest", "9"), node("none", None)]
    return {"pod": {"metadata": {"name": "p", "annotations": annotations}}, "objects": {"nodes": nodes}}


def test_an_installed_plugin_is_found_and_decides(installed: Path, tmp_path: Path) -> None:
    """Nothing but its entry point and a line in a profile made it part of the scheduler."""
    run = evaluate(tmp_path, installed, scenario("5"))

    assert (run.returncode, run.stderr) == (0, "")
    answer = json.loads(run.stdout)
    too_old = {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "GpuGeneration",
        "reasons": ["node(s) had an older GPU generation"],
    }
    assert answer["filter"] == {
        "old": too_old,
        "new": {"code": "Success"},
        "newest": {"code": "Success"},
        "none": too_old,
    }
    assert {name: scores["plugins"]["GpuGeneration"] for name, scores in answer["score"].items()} == {
        "new": 35,
        "newest": 45,
    }
    assert answer["topNodes"] == ["newest"]


@pytest.mark.slow
def test_suggestion_of_an_installed_plugin_is_tried_and_shown(installed: Path, tmp_path: Path) -> None:
    """The nodes that only this plugin refuses would take the pod if it wanted less."""
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": {MINIMUM: "10"}},
        "spec": {"containers": []},
    }
    nodes = [{"kind": "Node", **node("new", "7")}, {"kind": "Node", **node("newest", "9")}]
    config, dump = tmp_path / "config.yaml", tmp_path / "dump.json"
    config.write_text(ENABLED)
    dump.write_text(json.dumps({"kind": "List", "items": [pod, *nodes]}))
    command = [sys.executable, "-m", "api.cli", "why", "p", "--dump", str(dump), "--config", str(config), "-o", "json"]

    run = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(installed)},
        timeout=120,
    )

    assert (run.returncode, run.stderr) == (0, "")
    fix = {"kind": "other", "text": "accept GPUs of generation 9", "opens": 1, "nodes": ["newest"]}
    assert fix in [{name: suggestion[name] for name in fix} for suggestion in json.loads(run.stdout)["fixes"]]


def test_a_plugin_that_is_not_installed_is_refused_at_start(tmp_path: Path) -> None:
    run = evaluate(tmp_path, None, scenario("5"))

    assert run.returncode == 2
    assert run.stdout == ""
    assert '"GpuGeneration" does not exist' in run.stderr


@pytest.mark.slow
def test_a_plugin_that_raises_fails_that_pod_and_no_other(installed: Path, tmp_path: Path) -> None:
    """The next pod does not notice."""
    run = evaluate(tmp_path, installed, scenario("newest"), scenario("8"))

    failed, fine = map(json.loads, run.stdout.splitlines())
    assert run.returncode == 0
    assert failed["error"].startswith(
        "running \"GpuGeneration\" filter plugin: invalid literal for int() with base 10: 'newest' (ValueError, "
    )
    assert ("error" in fine, fine["topNodes"]) == (False, ["newest"])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(
            "import cuda_bindings",
            "cannot be loaded from broken:Broken: ModuleNotFoundError: No module named 'cuda_bindings'",
        ),
        pytest.param(
            "class Broken: pass",
            "broken:Broken is not a class derived from one of the plugin classes of reprieve.plugin",
        ),
        pytest.param(
            "from reprieve import plugin as fwk\nclass Broken(fwk.FilterPlugin): pass",
            "broken:Broken does not implement filter",
        ),
    ],
    ids=["import error", "no plugin", "unfinished"],
)
def test_a_broken_plugin_is_refused_at_start_by_name(installed: Path, tmp_path: Path, source: str, reason: str) -> None:
    """Installing it is enough: nobody must find out by a profile that enables it."""
    (tmp_path / "broken.py").write_text(source)
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[extender.plugins]\nBroken = broken:Broken\n")

    run = evaluate(tmp_path, tmp_path, scenario("5"))

    assert (run.returncode, run.stdout) == (2, "")
    assert f'plugin "Broken": {reason}' in run.stderr
    assert len(run.stderr.splitlines()) == 1


# The plugin by itself.


def gpu_generation() -> fwk.FilterPlugin:
    """The plugin, from its source."""
    spec = importlib.util.spec_from_file_location("gpu_generation", PLUGIN / "gpu_generation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plugin: fwk.FilterPlugin = module.GpuGeneration()
    return plugin


@settings(deadline=None, max_examples=examples(40))
@given(st.randoms(use_true_random=False))
def test_plugin_keeps_the_laws_of_filters(chance: random.Random) -> None:
    """So its author may check with `extender.testing`."""
    cluster = random_cluster(chance)
    nodes = [
        replaced(
            node, metadata=replaced(node.metadata, labels={**node.labels, GENERATION: chance.choice(("1", "5", "x"))})
        )
        for node in cluster.nodes
    ]
    pod = PodBuilder(cluster.pod).annotation({MINIMUM: chance.choice(("0", "3"))}).obj()

    check_filter(gpu_generation(), make_snapshot(*nodes, pods=cluster.pods), pod, chance, arrivals=cluster.arrivals)


def test_the_guide_shows_this_very_plugin() -> None:
    (code,) = re.findall(
        r"```python\n((?:(?!```).)*class GpuGeneration.*?)```",
        (ROOT / "docs" / "how-to" / "own-plugin.md").read_text(),
        re.DOTALL,
    )

    assert code == (PLUGIN / "gpu_generation.py").read_text()


def test_every_plugin_of_the_guide_can_be_defined() -> None:
    guide = (ROOT / "docs" / "how-to" / "own-plugin.md").read_text()
    names: dict[str, Any] = {}

    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(block, names)

    assert {"licence_aware", "emptiest", "GpuGeneration", "KeepCaches"} <= names.keys()
