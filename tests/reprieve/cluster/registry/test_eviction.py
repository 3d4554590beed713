"""The eviction subresource and its accounting against disruption budgets."""

from collections.abc import Sequence
from typing import Any

import pytest

from extender.rules.api_resources import POD_DISRUPTION_BUDGETS
from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import PODS_PATH, add_pod, ask, make_api, merge, send

EVICTION = f"{PODS_PATH}/a/eviction"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def evict(api: KubeApi, **options: Any) -> tuple[int, Any]:
    return ask(api, "POST", EVICTION, {"metadata": {"name": "a"}, **({"deleteOptions": options} if options else {})})


def running(api: KubeApi, *, ready: bool = True, labels: Sequence[str] = ("app",)) -> None:
    add_pod(api, "a", nodeName="n", labels=dict.fromkeys(labels, "x"))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    merge(api, f"{PODS_PATH}/a/status", {"status": {"phase": "Running", "conditions": conditions}})


def budget(api: KubeApi, name: str = "b", selector: Any = None, policy: str | None = None, **status: Any) -> None:
    spec: dict[str, Any] = {
        "minAvailable": 1,
        "selector": {"matchLabels": {"app": "x"}} if selector is None else selector,
    }
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    api.registry.create(POD_DISRUPTION_BUDGETS, "default", {"metadata": {"name": name}, "spec": spec})
    whole = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        **status,
    }
    code, _ = merge(api, f"{BUDGETS}/{name}/status", {"status": whole})
    assert code == 200


def test_without_a_budget_the_pod_is_deleted_gracefully_and_told_why(api: KubeApi) -> None:
    running(api)

    code, status = evict(api)
    _, evicted_pod = ask(api, "GET", f"{PODS_PATH}/a")

    assert (code, status["status"]) == (201, "Success")
    assert evicted_pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert evicted_pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def test_a_budget_that_is_spent_refuses(api: KubeApi) -> None:
    running(api)
    budget(api)

    code, status = evict(api)

    assert (code, status["reason"], status["message"]) == (
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    assert status["details"] == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
            }
        ]
    }


def test_each_eviction_takes_one_disruption_from_the_budget(api: KubeApi) -> None:
    running(api)
    budget(api, disruptionsAllowed=1, currentHealthy=2)

    code, _ = evict(api)
    _, obj = ask(api, "GET", f"{BUDGETS}/b")

    assert code == 201
    assert obj["status"]["disruptionsAllowed"] == 0
    assert obj["status"]["disruptedPods"] == {"a": "2026-01-01T12:00:00Z"}
    assert [(item["type"], item["status"], item["reason"]) for item in obj["status"]["conditions"]] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]


def test_a_budget_that_its_controller_has_not_seen_asks_for_patience(api: KubeApi) -> None:
    running(api)
    budget(api, observedGeneration=0, disruptionsAllowed=5)

    answer = send(api, "POST", EVICTION, {"metadata": {"name": "a"}})

    assert (answer.status, answer.headers["Retry-After"]) == (429, "10")
    assert b"The disruption budget b is still being processed by the server." in getattr(answer, "body", b"")


def test_two_budgets_are_more_than_evictions_can_account_for(api: KubeApi) -> None:
    running(api)
    budget(api, disruptionsAllowed=1)
    budget(api, "c", disruptionsAllowed=1)

    code, status = evict(api)

    assert (code, status["message"]) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [(None, 1, 201), (None, 0, 429), ("AlwaysAllow", 0, 201), ("IfHealthyBudget", 0, 429)],
)
def test_a_pod_that_is_not_ready_needs_no_budget_if_enough_others_are(
    api: KubeApi, policy: str | None, healthy: int, code: int
) -> None:
    running(api, ready=False)
    budget(api, policy=policy, currentHealthy=healthy)

    assert evict(api)[0] == code


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"app": "y"}}, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}]
)
def test_budgets_of_others_do_not_count(api: KubeApi, selector: dict[str, Any]) -> None:
    running(api)
    budget(api, selector=selector)

    assert evict(api)[0] == 201


@pytest.mark.parametrize("labels", [["app"], []])
@pytest.mark.parametrize(
    "selector", [{}, {"matchLabels": {}}, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["y"]}]}]
)
def test_budget_that_asks_for_no_label_counts_for_pods_with_and_without_labels(
    api: KubeApi, selector: dict[str, Any], labels: list[str]
) -> None:
    running(api, labels=labels)
    budget(api, selector=selector)

    assert evict(api)[0] == 429


def test_evicting_a_pending_pod_needs_no_budget(api: KubeApi) -> None:
    add_pod(api, "a", labels={"app": "x"})
    budget(api)

    code, _ = evict(api)

    assert (code, ask(api, "GET", f"{PODS_PATH}/a")[0]) == (201, 404)


def test_a_dry_run_spends_nothing(api: KubeApi) -> None:
    running(api)
    budget(api, disruptionsAllowed=1)
    version = api.registry.store.resource_version

    code, _ = evict(api, dryRun=["All"])

    assert (code, api.registry.store.resource_version) == (201, version)


def test_preconditions_are_kept(api: KubeApi) -> None:
    running(api)

    code, status = evict(api, preconditions={"uid": "another"})

    assert (code, status["reason"]) == (409, "Conflict")
    assert "deletionTimestamp" not in ask(api, "GET", f"{PODS_PATH}/a")[1]["metadata"]


def test_the_body_names_the_pod() -> None:
    code, status = ask(make_api(), "POST", EVICTION, {"metadata": {"name": "b"}})

    assert (code, status["message"]) == (400, "name in URL does not match name in Eviction object")


def test_eviction_of_a_missing_pod_is_404() -> None:
    code, status = evict(make_api())

    assert (code, status["message"]) == (404, 'pods "a" not found')
