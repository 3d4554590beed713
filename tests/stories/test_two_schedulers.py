"""Two schedulers, each a process of its own, fight for the room of one node: evictions go on forever, unless the loop
guard ends them.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import httpx
import pytest
import yaml

from extender.engine.preemption.loop_guard import STOPPED_AFTER
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.stories.objects import HIGH, node, pod

pytestmark = pytest.mark.slow

SECONDS: Final = 60.0
MANY: Final = 2 * STOPPED_AFTER
"""More evictions than the guard would ever allow."""
CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- pluginConfig: [{name: DefaultPreemption, args: {loopGuard: %s}}]
"""
ROOT: Final = Path(__file__).parents[2]


@final
class FoughtOver:
    """The served cluster, as its users see it."""

    def __init__(self, ours: str, kubernetes: str) -> None:
        self._ours = httpx.Client(base_url=ours, timeout=30, trust_env=False)
        self._kubernetes = httpx.Client(base_url=kubernetes, timeout=30, trust_env=False)

    def close(self) -> None:
        self._ours.close()
        self._kubernetes.close()

    def create(self, path: str, obj: dict[str, Any]) -> None:
        self._kubernetes.post(path, json=obj).raise_for_status()

    def is_ready(self) -> bool:
        try:
            return self._ours.get("/readyz").is_success and self._kubernetes.get("/api/v1/nodes").is_success
        except httpx.HTTPError:
            return False

    def preemptions(self) -> list[dict[str, Any]]:
        """Those that were carried out, the newest one first."""
        items: list[dict[str, Any]] = self._ours.get("/v1/preemptions?limit=1000").json()["items"]
        return [item for item in items if item["outcome"] == "told"]

    def why(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._ours.get(f"/v1/explain/default/{name}").json()
        return answer

    def running(self) -> list[str]:
        """The names of the pods that have a node."""
        found = self._kubernetes.get("/api/v1/namespaces/default/pods").json()["items"]
        return [each["metadata"]["name"] for each in found if each["spec"].get("nodeName")]

    def message(self, name: str) -> str:
        """What the condition of the pod says."""
        conditions = (
            self._kubernetes.get(f"/api/v1/namespaces/default/pods/{name}").json()["status"].get("conditions", [])
        )
        return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


@contextmanager
def a_fight(folder: Path, *, guarded: bool) -> Iterator[FoughtOver]:
    """A node with room for one pod, which a ReplicaSet of a rival scheduler fills, and an important pod of ours that
    wants it.
    """
    config, state = folder / "config.yaml", folder / "state.yaml"
    config.write_text(CONFIGURATION % str(guarded).lower())
    state.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [node("node-1", "2"), HIGH]}))
    ours, kubernetes = free_port(), free_port()
    flags = ["--port", str(ours), "--kubernetes-port", str(kubernetes), "--state", str(state), "--config", str(config)]
    python = ["/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable]
    serving = Process([*python, "-m", "api.cli", "serve", *flags], folder / "serve.log")
    cluster = FoughtOver(f"http://127.0.0.1:{ours}", f"http://127.0.0.1:{kubernetes}")
    try:
        serving.wait_until(cluster.is_ready, SECONDS)
        rival = Process(
            [*python, "-u", "tests/stories/rival_scheduler.py", f"http://127.0.0.1:{kubernetes}"], folder / "rival.log"
        )
        try:
            filler = pod(
                "filler", "2", schedulerName="rival", terminationGracePeriodSeconds=1, labels={"app": "filler"}
            )
            template = {"metadata": {"labels": {"app": "filler"}}, "spec": filler["spec"]}
            spec = {"replicas": 1, "selector": {"matchLabels": {"app": "filler"}}, "template": template}
            cluster.create(
                "/apis/apps/v1/namespaces/default/replicasets",
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "filler"}, "spec": spec},
            )
            until(lambda: bool(cluster.running()), SECONDS)
            cluster.create("/api/v1/namespaces/default/pods", pod("important", "2", "high"))
            yield cluster
        finally:
            cluster.close()
            rival.stop(SECONDS)
    finally:
        serving.stop(SECONDS)


def until(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.1)


def test_without_the_guard_evictions_go_on_and_on(tmp_path: Path) -> None:
    with a_fight(tmp_path, guarded=False) as cluster:
        until(lambda: len(cluster.preemptions()) > MANY, 180)
        assert "important" not in cluster.running()


def test_loop_guard_pauses_the_preemptor_and_both_pods_explain_it(tmp_path: Path) -> None:
    with a_fight(tmp_path, guarded=True) as cluster:
        until(lambda: "in a row that helped nobody" in cluster.message("important"), 120)
        (taker,) = [name for name in cluster.running() if name in cluster.message("important")]
        made = cluster.preemptions()

        assert len(made) == 2
        assert "the room on node node-1 was taken by default/" + taker in cluster.message("important")
        assert any(
            "in a row that helped nobody" in attempt["message"] for attempt in cluster.why("important")["attempts"]
        )
        assert [each["verdict"] for each in made] == ["wasted", "wasted"]
        assert [each["name"] for each in made[0]["roomTakenBy"]] == [taker]
        took = cluster.why(taker)["tookRoomOf"]
        assert (took["by"]["name"], took["node"], took["verdict"]) == ("important", "node-1", "wasted")

        time.sleep(8)  # less than the first pause
        assert len(cluster.preemptions()) == 2
