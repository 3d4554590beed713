"""Which pod goes first: each rule decides where all rules before it say nothing."""

from datetime import UTC, datetime

import orjson

from extender.values.workloads.deployments import DELETION_COST
from reprieve.cluster.controllers.observed_objects import ObservedPod, Reader
from reprieve.cluster.controllers.replica_set_controller import pods_to_delete
from tests.kit.tables import cases

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AN_HOUR_AGO, A_MINUTE_AGO = "2026-03-01T11:00:00Z", "2026-03-01T11:59:00Z"


def pod(
    name: str,
    *,
    node: str = "a",
    phase: str = "Running",
    ready: str = AN_HOUR_AGO,
    created: str = AN_HOUR_AGO,
    cost: str = "0",
    restarts: int = 0,
) -> ObservedPod:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "creationTimestamp": created,
        "annotations": {DELETION_COST: cost},
    }
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]}
    return Reader().pod(orjson.dumps({"metadata": metadata, "spec": {"nodeName": node}, "status": status}))


@cases(
    "first, other",
    ("one without a node", pod("x", node=""), pod("y", cost="-9")),
    ("one that is pending", pod("x", phase="Pending"), pod("y", ready="")),
    ("one that is not ready", pod("x", ready=""), pod("y", cost="-9")),
    ("one that costs less to delete", pod("x", cost="-1"), pod("y", ready=A_MINUTE_AGO)),
    ("an unreadable cost is 0", pod("x", cost="nonsense"), pod("y", cost="1")),
    ("one that has been ready for less time", pod("x", ready=A_MINUTE_AGO), pod("y", restarts=9)),
    ("one that was restarted more often", pod("x", restarts=9), pod("y", created=A_MINUTE_AGO)),
    ("one that is newer", pod("x", created=A_MINUTE_AGO), pod("y")),
)
def test_the_pod_that_is_missed_least_goes_first(first: ObservedPod, other: ObservedPod) -> None:
    for pods in ([first, other], [other, first]):
        assert [pod.name for pod in pods_to_delete(pods, {"a": 2}, 1, NOW)] == ["x"]


def test_crowded_nodes_are_thinned_out_first() -> None:
    """Pods of the same Deployment's other ReplicaSets count as a crowd, too."""
    mine = [pod("x", node="crowded"), pod("a", node="alone")]

    assert [pod.name for pod in pods_to_delete(mine, {"crowded": 2, "alone": 1}, 1, NOW)] == ["x"]


def test_ages_of_the_same_order_of_magnitude_are_alike() -> None:
    """Otherwise always the youngest would go, and with it a node or a zone that came last."""
    younger, older = pod("b", ready="2026-03-01T11:10:00Z"), pod("a", ready="2026-03-01T11:05:00Z")

    assert [pod.name for pod in pods_to_delete([younger, older], {}, 1, NOW)] == ["a"]
