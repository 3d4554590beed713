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

from extender.engine.preemption.preemptions import STOPPED_AFTER
from tests.kit.objects import HIGH, node, pod, workload
from tests.kit.service import Running, process, running
from tests.kit.waiting import DEADLINE, until

pytestmark = pytest.mark.slow

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


@final
class FoughtOver:
    """The served cluster, as its users see it."""

    def __init__(self, served: Running) -> None:
        self._served = served

    def _get(self, path: str) -> Any:
        return httpx.get(f"{self._served.url}{path}", timeout=DEADLINE, trust_env=False).json()

    def preemptions(self) -> list[dict[str, Any]]:
        """Those that were carried out, the newest one first."""
        return [item for item in self._get("/v1/preemptions?limit=1000")["items"] if item["outcome"] == "told"]

    def why(self, name: str) -> Any:
        return self._get(f"/v1/explain/default/{name}")

    def running(self) -> list[str]:
        """The names of the pods that have a node."""
        return [obj["metadata"]["name"] for obj in self._served.pods() if obj["spec"].get("nodeName")]

    def message(self, name: str) -> str:
        """What the condition of the pod says."""
        (waiting_pod,) = (obj for obj in self._served.pods() if obj["metadata"]["name"] == name)
        conditions = waiting_pod["status"].get("conditions", [])
        return next((row.get("message", "") for row in conditions if row["type"] == "PodScheduled"), "")


@contextmanager
def a_fight(folder: Path, *, guarded: bool) -> Iterator[FoughtOver]:
    """A node with room for one pod, which a ReplicaSet of a rival scheduler fills, and an important pod of ours that
    wants it.
    """
    config, state = folder / "config.yaml", folder / "state.yaml"
    config.write_text(CONFIGURATION % str(guarded).lower())
    state.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [node("node-1", "2"), HIGH]}))
    filler = pod("filler", "2", schedulerName="rival", terminationGracePeriodSeconds=1)
    with (
        running("--state", state, "--config", config) as served,
        process(
            "-m", "tests.stories.rival_scheduler", served.kubernetes, log=folder / "rival", program=[sys.executable]
        ),
    ):
        served.create(
            "/apis/apps/v1/namespaces/default/replicasets", workload("ReplicaSet", "filler", filler, replicas=1)
        )
        cluster = FoughtOver(served)
        until(lambda: bool(cluster.running()))
        served.create("/api/v1/namespaces/default/pods", pod("important", "2", "high"))
        yield cluster


def test_without_the_guard_evictions_go_on_and_on(tmp_path: Path) -> None:
    with a_fight(tmp_path, guarded=False) as cluster:
        until(lambda: len(cluster.preemptions()) > MANY)
        assert "important" not in cluster.running()


def test_loop_guard_pauses_the_preemptor_and_both_pods_explain_it(tmp_path: Path) -> None:
    with a_fight(tmp_path, guarded=True) as cluster:
        until(lambda: "wasted preemptions in a row" in cluster.message("important"))
        (taker,) = [name for name in cluster.running() if name in cluster.message("important")]
        preemptions = cluster.preemptions()

        assert len(preemptions) == 2
        assert "the room on node node-1 was taken by default/" + taker in cluster.message("important")
        assert any("wasted preemptions in a row" in row["message"] for row in cluster.why("important")["attempts"])
        assert [preemption["verdict"] for preemption in preemptions] == ["wasted", "wasted"]
        assert [taking_pod["name"] for taking_pod in preemptions[0]["roomTakenBy"]] == [taker]
        (took,) = (step["preemption"] for step in cluster.why(taker)["story"]["steps"] if step["what"] == "took")
        assert (took["by"]["name"], took["node"], took["verdict"]) == ("important", "node-1", "wasted")

        time.sleep(8)  # less than the first pause
        assert len(cluster.preemptions()) == 2
