"""What containers ask for is changed by the subresource resize, and nothing else is."""

from typing import Any

from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import PODS_PATH, ask, make_api, merge

BURSTABLE: Any = {"requests": {"cpu": "1"}}


def resized(change: Any, before: Any = BURSTABLE) -> tuple[int, Any]:
    api = make_api()
    container = {"name": "c", "image": "i", "resources": before}
    ask(api, "POST", PODS_PATH, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    return ask(api, "PATCH", f"{PODS_PATH}/p/resize", change, content_type="application/strategic-merge-patch+json")


def of_container(**fields: Any) -> Any:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


def test_the_amounts_of_a_container_change() -> None:
    code, pod = resized(of_container(resources={"requests": {"cpu": "2"}}))

    assert (code, pod["spec"]["containers"][0]["resources"]) == (200, {"requests": {"cpu": "2"}})
    assert pod["metadata"]["generation"] == 2


def test_other_changes_are_left_out() -> None:
    change = of_container(image="other", resources={"requests": {"cpu": "2"}})

    code, pod = resized({**change, "metadata": {"labels": {"a": "b"}}})

    assert (code, pod["spec"]["containers"][0]["image"]) == (200, "i")
    assert "labels" not in pod["metadata"]


def test_the_quality_of_service_stays() -> None:
    code, refusal = resized(of_container(resources={"requests": {"cpu": "1"}}), {})

    assert code == 422
    assert "Pod QOS Class may not change as a result of resizing" in refusal["message"]


def test_only_cpu_and_memory_change() -> None:
    code, refusal = resized(of_container(resources={"requests": {"ephemeral-storage": "1Gi"}}))

    assert code == 422
    assert "only cpu and memory resources are mutable" in refusal["message"]


def test_a_bound_pod_is_not_nominated(api: KubeApi) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    ask(api, "POST", PODS_PATH, {"metadata": {"name": "p"}, "spec": spec})

    code, refusal = merge(api, f"{PODS_PATH}/p/status", {"status": {"nominatedNodeName": "m"}})

    assert code == 422
    assert refusal["message"].endswith(
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    )
