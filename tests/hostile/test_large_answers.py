"""Nothing asked of a large cluster holds the event loop: no endpoint that is read, no page, and no long call of a
verb.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Service, serving
from tests.api.test_questions import pod
from tests.hostile.test_pods import Manifest, nodes, shop
from tests.kit.waiting import until

NUM_NODES, NUM_PODS, NUM_WAITING = 15_000, 15_000, 50
NUM_UNKNOWN = 15_000

AMOUNTS = {"cpu": "10m", "memory": "1Mi", "ephemeral-storage": "1Mi", "hugepages-2Mi": "2Mi"}

ROOT = Path(__file__).parents[2]

GIVEN = {
    "/healthz/{check}": "/healthz/ping",
    "/livez/{check}": "/livez/ping",
    "/readyz/{check}": "/readyz/ping",
    "/v1/capacity": "/v1/capacity?pod=shop/large-0",
    "/v1/cluster/{node}": "/v1/cluster/node-7",
    "/v1/decisions": "/v1/decisions?limit=1000",
    "/v1/decisions/{id}": "/v1/decisions/1?picture=true",
    "/v1/explain/{namespace}/{pod}": "/v1/explain/shop/large-0?picture=true",
    "/v1/find": "/v1/find?q=web&limit=100",
    "/v1/history": "/v1/history?range=all",
    "/v1/pods": "/v1/pods?namespace=shop&limit=1000",
    "/v1/preemptions": "/v1/preemptions?limit=1000",
}
"""What is put into a path that is not complete without it, and what makes an answer longest."""

PAGES = (
    "/",
    "/ui/cells",
    "/ui/nodes",
    "/ui/nodes/node-7",
    "/ui/pods",
    "/ui/pods?namespace=shop",
    "/ui/pods/shop/large-0",
    "/ui/history",
)

OBJECTS = ("/api/v1/pods", "/api/v1/nodes")


def read_paths() -> list[str]:
    """Returns every path that openapi.json lets a caller read, filled in."""
    documented = json.loads((ROOT / "openapi.json").read_text())["paths"]
    paths = [GIVEN.get(path, path) for path, methods in documented.items() if "get" in methods]
    assert not [path for path in paths if "{" in path], "say in GIVEN how to ask for it"
    return paths


def running(number: int) -> Manifest:
    written = pod(f"web-{number}", "10m", node=f"node-{number % NUM_NODES}")
    written["spec"]["containers"][0]["resources"] = {"requests": AMOUNTS, "limits": AMOUNTS}
    return written


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    state = tmp_path_factory.mktemp("large") / "cluster.json"
    waiting = (pod(f"large-{number}", "64", priority=number % 3) for number in range(NUM_WAITING))
    state.write_text(json.dumps(shop(*nodes(NUM_NODES), *map(running, range(NUM_PODS)), *waiting)))
    with serving(loop="asyncio", state=state, schedule=True) as service:
        until(lambda: service.client.get("/v1/queue").json()["counts"].get("unschedulable") == NUM_WAITING)
        yield service


@pytest.mark.parametrize("path", [*read_paths(), *PAGES, *OBJECTS])
def test_an_answer_about_a_large_cluster_stops_nobody(path: str, large: Service) -> None:
    answer = large.client.get(path)

    assert answer.status_code == (404 if path == "/v1/agreement" else 200), answer.text[:200]


@pytest.mark.parametrize("in_full", [False, True], ids=["by UID", "in full"])
def test_a_preemption_with_victims_everywhere_stops_nobody(in_full: bool, large: Service) -> None:
    running_now = [each for each in large.client.get("/api/v1/pods").json()["items"] if each["spec"].get("nodeName")]
    victims = {
        each["spec"]["nodeName"]: {
            "Pods": [each if in_full else {"UID": each["metadata"]["uid"]}],
            "NumPDBViolations": 0,
        }
        for each in running_now
    }
    preemptor = pod("urgent", "4", priority=100)

    answer = large.call(
        "preempt", {"Pod": preemptor, "NodeNameToVictims" if in_full else "NodeNameToMetaVictims": victims}
    )

    assert len(answer.json()["NodeNameToMetaVictims"]) == NUM_PODS


def test_nodes_in_full_that_nobody_knows_stop_nobody(large: Service) -> None:
    """
    Every call has other nodes.
    """
    both = [
        [each | {"metadata": {"name": f"{turn}-{place}"}} for place, each in enumerate(nodes(NUM_UNKNOWN))]
        for turn in range(2)
    ]

    answers = [large.call("filter", {"Pod": pod("asked", "1"), "Nodes": {"items": unknown}}) for unknown in both]

    assert [len(answer.json()["Nodes"]["items"]) for answer in answers] == [NUM_UNKNOWN, NUM_UNKNOWN]
