"""Files that an earlier version wrote are read: tests/api/data/kept holds what 0.1.0 wrote about a cluster in which the
pod `second` preempts `first`, and `third` stays pending.
"""

import shutil
from pathlib import Path

from tests.api.in_process import reprieve
from tests.kit.service import DATA, serving

KEPT = DATA / "kept"


def test_saved_cluster_is_served_again(tmp_path: Path) -> None:
    saved = Path(shutil.copy(KEPT / "cluster.json", tmp_path))

    with serving(save=saved, schedule=False) as service:
        pods = service.client.get("/v1/pods", params={"namespace": "default"}).json()["items"]

    assert {pod["pod"]["name"]: pod["node"] for pod in pods} == {"second": "node-a", "third": ""}


def test_recorded_preemption_is_known_after_the_upgrade(tmp_path: Path) -> None:
    records = Path(shutil.copy(KEPT / "records.jsonl", tmp_path))

    with serving(records=records, schedule=False) as service:
        [preemption] = service.client.get("/v1/preemptions").json()["items"]
        decisions = service.client.get("/v1/decisions").json()["items"]

    assert preemption["by"]["name"] == "second"
    assert [victim["pod"]["name"] for victim in preemption["victims"]] == ["first"]
    assert [decision["pod"]["name"] for decision in decisions] == ["third", "second", "second", "first"]


def test_recording_is_decided_again_alike() -> None:
    done = reprieve("replay", str(KEPT / "recording"))

    assert "4 of 4 decisions the same, 0 different" in done.stdout.decode()
