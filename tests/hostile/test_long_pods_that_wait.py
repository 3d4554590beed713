"""Many of the longest pods that an API server takes may wait together."""

import json
from pathlib import Path

from tests.api.serving import Service, serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound
from tests.hostile.test_pods import Manifest, as_many, hostile, node_affinity, nodes, shop

NUM_LONG = 12
JSON = {"content-type": "application/json"}


def between(number: int) -> Manifest:
    """A term that matches the node with this number only."""
    limits = (("Gt", number - 1), ("Lt", number + 1))
    return {
        "matchExpressions": [
            {"key": "place", "operator": operator, "values": [str(limit)]} for operator, limit in limits
        ]
    }


def on_no_node(place: int) -> Manifest:
    return node_affinity(*as_many(lambda number: between(1_000_000 * (place + 1) + number)))


def until_refused(service: Service, names: list[str]) -> None:
    """Waits until the pods have the condition of pods that fit nowhere."""
    for name in names:
        while not service.client.get(f"/api/v1/namespaces/shop/pods/{name}").json()["status"].get("conditions"):
            pass


def test_an_event_that_concerns_many_long_pods_is_handled_at_once(tmp_path: Path) -> None:
    """
    Nodes are added while long pods wait for one, each with demands of its own.
    """
    state, names = tmp_path / "cluster.json", [f"long-{place}" for place in range(NUM_LONG)]
    waiting = [hostile(name, on_no_node(place)) for place, name in enumerate(names)]
    state.write_text(json.dumps(shop(*nodes(10), *waiting)))

    with serving(loop="asyncio", state=state, schedule=True) as service:
        until_refused(service, names)
        codes = [
            service.client.post("/api/v1/nodes", content=json.dumps(node), headers=JSON).status_code
            for node in nodes(13)[10:]
        ]
        service.client.post("/api/v1/namespaces/shop/pods", content=json.dumps(pod("ordinary", "100m")), headers=JSON)
        until_bound(service, ["shop/ordinary"])

    assert codes == [201, 201, 201]
