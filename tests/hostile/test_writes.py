"""Writing hostile pods to the embedded cluster keeps nobody from being answered."""

import json
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.hostile import test_pods
from tests.hostile.test_pods import ATTACKS, cluster, hostile

PODS = "/api/v1/namespaces/shop/pods"
APPLY = f"{PODS}/evil?fieldManager=tenant&force=true"


@pytest.mark.parametrize(
    "attack",
    [
        "tolerations",
        "scheduling gates",
        "containers",
        "distinct resources, one of each",
        "affinity, different selectors",
    ],
)
def test_writing_hostile_pods_stops_nobody(attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A long pod is created, replaced, patched in each way and deleted.
    """
    # The names of what its managers set, of which there are two, count as well.
    monkeypatch.setattr(test_pods, "MOST_BYTES", 300_000)
    state, evil = tmp_path / "cluster.json", hostile("evil", ATTACKS[attack]())
    del evil["spec"]["priority"]
    state.write_text(json.dumps(cluster({})))
    created, applied = json.dumps(evil).encode(), json.dumps({**evil, "apiVersion": "v1", "kind": "Pod"}).encode()

    with serving(loop="asyncio", state=state, schedule=False) as service:

        def code(method: str, path: str, media_type: str, body: bytes) -> int:
            return service.client.request(
                method, path, content=body, headers={"content-type": f"application/{media_type}"}
            ).status_code

        codes = [code("POST", PODS, "json", created)]
        stored = service.client.get(f"{PODS}/evil").json()
        stored["metadata"]["labels"]["app"] = "another"
        del stored["metadata"]["resourceVersion"]
        codes += [
            code("PUT", f"{PODS}/evil", "json", json.dumps(stored).encode()),
            code("PATCH", f"{PODS}/evil", "merge-patch+json", b'{"metadata": {"labels": {"app": "third"}}}'),
            code("PATCH", f"{PODS}/evil", "strategic-merge-patch+json", created),
            code("PATCH", APPLY, "apply-patch+yaml", applied),
            code("DELETE", f"{PODS}/evil", "json", b'{"gracePeriodSeconds": 0}'),
        ]

    assert codes[:4] == [201, 200, 200, 200]
