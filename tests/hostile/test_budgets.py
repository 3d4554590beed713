"""Thousands of disruption budgets, or long ones, keep the scheduler from nobody, also while a pod preempts others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound
from tests.hostile.test_pods import MOST_SECONDS, nodes, shop
from tests.loop_budget import held_too_long

NUM_PODS, NUM_NODES = 2000, 20

Selector = dict[str, Any]


def excluding(key: str, value: str) -> Selector:
    return {"key": key, "operator": "NotIn", "values": [value]}


BUDGETS: dict[str, Callable[[], list[Selector]]] = {
    "thousands": lambda: [{"matchExpressions": [excluding("app", f"app-{number}")]} for number in range(NUM_PODS)],
    "long ones": lambda: [{"matchExpressions": [excluding(f"key-{place}", "x") for place in range(3000)]} for _ in range(2)],
}


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS)
def test_a_tenant_with_budgets_stops_nobody(budgets: Callable[[], list[Selector]], tmp_path: Path) -> None:
    """
    A pod preempts others, of which each is protected by all of the budgets.
    """
    running = [pod(f"running-{number}", "1m", nodeName=f"node-{number % NUM_NODES}") for number in range(NUM_PODS)]
    for number, each in enumerate(running):
        each["metadata"]["labels"] = {"app": f"app-{number}"}
        each["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    protecting = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number}", "namespace": running[0]["metadata"]["namespace"]},
            "spec": {"minAvailable": 1, "selector": selector},
        }
        for number, selector in enumerate(budgets())
    ]
    state = tmp_path / "cluster.json"
    state.write_text(json.dumps(shop(*nodes(NUM_NODES), *running, *protecting, pod("urgent", "3999m", priority=100))))

    with held_too_long(MOST_SECONDS) as found, serving(loop="asyncio", state=state, schedule=True) as service:
        until_bound(service, ["shop/urgent"])

    assert not found, "\n".join(found)
