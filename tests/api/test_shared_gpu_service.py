"""The example `examples/shared-gpu` as its users have it: checked, served beside kube-scheduler, and asked by it over HTTP."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.kit.objects import HIGH, LOW, node, pod, state_file
from tests.kit.service import PROGRAM, ROOT, process
from tests.kit.shared_gpu import EXAMPLE, cards_of, limits, shared_gpu, with_cards
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

pytestmark = pytest.mark.slow

NODES: Final = [with_cards(node(f"n{number}", "16"), 4) for number in range(4)]
MANAGED: Final = [shared_gpu.MEMORY, shared_gpu.CORES, shared_gpu.CARDS]


def test_the_example_passes_its_own_checks_and_is_small(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "shared-gpu", ignore=shutil.ignore_patterns("__pycache__"))

    done = subprocess.run([*PROGRAM, "test", str(project)], capture_output=True, text=True, cwd=ROOT, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "SharedGpu keeps the laws of Filters" in done.stdout
    assert len((EXAMPLE / "shared_gpu.py").read_text().splitlines()) <= 150


class Served:
    """The extender, and the API of its cluster."""

    def __init__(self, http: httpx.Client, url: str, api: str) -> None:
        self.url = url
        self._http = http
        self._api = f"{api}/api/v1/namespaces/default/pods"

    def answer_to(self, verb: str, body: Any) -> Any:
        answer = self._http.post(f"{self.url}/extender/{verb}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        answer = self._http.post(self._api, json=obj)
        answer.raise_for_status()
        return dict(answer.json())

    def pods(self) -> dict[str, dict[str, Any]]:
        items = self._http.get(self._api).json()["items"]
        return {item["metadata"]["name"]: {"apiVersion": "v1", "kind": "Pod", **item} for item in items}

    def delete(self, name: str) -> None:
        self._http.request("DELETE", f"{self._api}/{name}", json={"gracePeriodSeconds": 0}).raise_for_status()

    def filtered(self, new_pod: dict[str, Any], *, full: bool) -> tuple[list[str], dict[str, str]]:
        names = [node["metadata"]["name"] for node in NODES]
        body = {"Nodes": {"items": NODES}} if full else {"NodeNames": names}
        answer = self.answer_to("filter", {"Pod": new_pod, **body})
        passing = [node["metadata"]["name"] for node in answer["Nodes"]["items"]] if full else answer["NodeNames"]
        return passing or [], answer["FailedNodes"] or {}

    def bound(self, new_pod: dict[str, Any], where: str) -> str:
        meta = new_pod["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": where}
        return str(self.answer_to("bind", body).get("Error") or "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python finds the example as if it were installed there."""
    directory = tmp_path_factory.mktemp("shared-gpu")
    shutil.copy(EXAMPLE / "shared_gpu.py", directory)
    dist_info = directory / "shared_gpu-0.1.0.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: shared-gpu\nVersion: 0.1.0\n")
    (dist_info / "entry_points.txt").write_text("[extender.plugins]\nSharedGpu = shared_gpu:SharedGpu\n")
    state_file(directory / "state.json", *NODES, LOW, HIGH)
    return directory


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    log, flags = folder / "log", ("--no-schedule", "--serve-bind", "--port", "0", "--kubernetes-port", "0")
    config = ("--config", EXAMPLE / "extender-config.yaml", "--state", folder / "state.json")
    with process("serve", *flags, *config, log=log, environment={"PYTHONPATH": str(folder)}) as started:
        until(lambda: "reaches it" in log.read_text() or started.poll() is not None)
        assert started.poll() is None, log.read_text()
        with httpx.Client(timeout=DEADLINE, trust_env=False) as http:
            yield Served(http, *re.findall(r"http://[\w.]+:\d+", log.read_text())[:2])


@pytest.mark.parametrize("full", [False, True], ids=["by names", "with full nodes"])
def test_kube_scheduler_is_told_which_pods_free_one_card(folder: Path, full: bool) -> None:
    with served(folder) as service:
        for number in range(32):
            low = service.create(pod(f"low-{number}", priority="low", container=limits(memory=8192)))
            passing, _ = service.filtered(low, full=full)
            assert service.bound(low, passing[0]) == ""
            until(lambda: all(item["spec"].get("nodeName") for item in service.pods().values()))
        urgent = service.create(pod("urgent", priority="high", container=limits(memory=10240)))
        _, refused = service.filtered(urgent, full=full)
        before = service.pods()
        by_uid = {item["metadata"]["uid"]: item for item in before.values()}
        which, empty = "NodeNameToVictims" if full else "NodeNameToMetaVictims", {"Pods": list[Any]()}
        answer = service.answer_to("preempt", {"Pod": urgent, which: dict.fromkeys(refused, empty)})
        victims = [by_uid[victim["UID"]] for victim in answer["NodeNameToMetaVictims"]["n2"]["Pods"]]
        for victim in victims:
            service.delete(victim["metadata"]["name"])
        until(lambda: service.filtered(urgent, full=full)[0] == ["n2"])
        error = service.bound(urgent, "n2")
        until(lambda: service.pods()["urgent"]["spec"].get("nodeName"))

        assert refused == {f"n{number}": shared_gpu.NO_CARD for number in range(4)}
        (card,) = {card for victim in victims for card in cards_of(victim)}
        on_card = {
            name for name, item in before.items() if item["spec"].get("nodeName") == "n2" and card in cards_of(item)
        }
        assert {victim["metadata"]["name"] for victim in victims} == on_card
        assert error == ""
        assert cards_of(service.pods()["urgent"]) == {card: (10240, 0)}


def test_the_stanza_names_the_resources_and_the_doctor_finds_nothing(folder: Path, tmp_path: Path) -> None:
    with served(folder) as service:
        verbs = ("--verbs", "filter,prioritize,preempt,bind", "--managed-resources", ",".join(MANAGED))
        printed = subprocess.run(
            [*PROGRAM, "print-scheduler-config", "--url", service.url, *verbs],
            capture_output=True,
            text=True,
            check=False,
        )
        config = tmp_path / "kube-scheduler.yaml"
        config.write_text(printed.stdout)
        doctor = subprocess.run([*PROGRAM, "doctor", "--config", config], capture_output=True, text=True, check=False)

    assert printed.returncode == 0, printed.stderr
    (stanza,) = yaml.safe_load(printed.stdout)["extenders"]
    assert stanza["managedResources"] == [{"name": name, "ignoredByScheduler": True} for name in MANAGED]
    assert doctor.returncode == 0, doctor.stdout


def _full() -> dict[str, Any]:
    """Full cards everywhere; a budget protects all pods but those of card 3 of n2."""
    low = [
        pod(
            f"low-{node_number}-{card}-{half}",
            labels={"kept": str((node_number, card) != (2, 3))},
            nodeName=f"n{node_number}",
            priority="low",
            container=limits(memory=8192),
        )
        for node_number in range(4)
        for card in range(4)
        for half in "ab"
    ]
    for obj in low:
        name = obj["metadata"]["name"]
        obj["spec"]["priority"] = 10
        obj["metadata"] |= {"namespace": "default", "uid": name, "annotations": {shared_gpu.CARD: f"{name[6]}=8192/0"}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"kept": "True"}}},
        "status": {"disruptionsAllowed": 0},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [*NODES, HIGH, *low, budget, URGENT]}


URGENT: Final = pod("urgent", priority="high", container=limits(memory=10240))
URGENT["metadata"] |= {"namespace": "default", "uid": "urgent"}
URGENT["spec"]["priority"] = 100


@cases(
    "command, says",
    ("why", ["why", "urgent"], [shared_gpu.NO_CARD, "low-2-3-a", "low-2-3-b"]),
    ("victims", ["victims", "-f", "urgent.json"], ["2 pods on n2", "low-2-3-a", "low-2-3-b"]),
    ("what-if", ["whatif", "-f", "urgent.json"], ["would go to n2, and 2 pods would be evicted"]),
    ("fits", ["fits", "-f", "urgent.json"], ["no pod like this one fits on any node", shared_gpu.NO_CARD]),
)
def test_answers_know_the_reasons_and_victims_of_the_plugin(folder: Path, command: list[str], says: list[str]) -> None:
    (folder / "full.json").write_text(json.dumps(_full()))
    (folder / "urgent.json").write_text(json.dumps(URGENT))

    done = subprocess.run(
        [*PROGRAM, *command, "--dump", "full.json", "--config", str(EXAMPLE / "scheduler-config.yaml")],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
    )  # fmt: skip

    assert [text for text in says if text not in done.stdout] == [], done.stdout + done.stderr
