"""Public charts apply whole, by the requests that kubectl makes: it looks up each kind, and creates or patches."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from extender.rules.api_resources import DAEMON_SETS, PODS
from extender.values.config.feature_gates import FeatureGates
from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import ask, make_api, merge
from tests.reprieve.cluster.controllers.running_cluster import add_node, running_controllers, settle

CHARTS = sorted((Path(__file__).parent / "charts").glob("*.yaml"))
POD_GROUPS = Path(__file__).parents[3] / "docs" / "pod-groups.md"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def objects_of(text: str) -> Iterator[Any]:
    return (obj for obj in yaml.safe_load_all(text) if obj)


def place_of(api: KubeApi, obj: Any) -> str:
    """The path of the objects of this kind in its namespace, as discovery tells it."""
    group, _, version = obj["apiVersion"].rpartition("/")
    items = ask(api, "GET", "/apis" if group else "/api", accept=AGGREGATED)[1]["items"]
    resources = [
        resource
        for item in items
        if item["metadata"].get("name", "") == group
        for served_version in item["versions"]
        if served_version["version"] == version
        for resource in served_version["resources"]
        if resource["responseKind"]["kind"] == obj["kind"]
    ]
    assert resources, f"no matches for kind {obj['kind']} in version {obj['apiVersion']}"
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    is_namespaced = resources[0]["scope"] == "Namespaced"
    namespace_path = f"/namespaces/{obj['metadata'].get('namespace', 'default')}" if is_namespaced else ""
    return f"{root}{namespace_path}/{resources[0]['resource']}"


def applied(api: KubeApi, obj: Any) -> tuple[int, Any]:
    """As `kubectl apply`: what there is is patched with what was written."""
    place, name = place_of(api, obj), obj["metadata"]["name"]
    manifest = json.loads(json.dumps(obj))
    manifest["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(obj)
    how = "fieldManager=kubectl-client-side-apply&fieldValidation=Strict"
    if ask(api, "GET", f"{place}/{name}")[0] == 404:
        return ask(api, "POST", f"{place}?{how}", manifest)
    return merge(api, f"{place}/{name}?{how}", manifest)


def applied_by_the_server(api: KubeApi, obj: Any) -> tuple[int, Any]:
    """As `kubectl apply --server-side`."""
    place, name = place_of(api, obj), obj["metadata"]["name"]
    path = f"{place}/{name}?fieldManager=kubectl&fieldValidation=Strict"
    return ask(api, "PATCH", path, orjson.dumps(obj), content_type="application/apply-patch+yaml")


@pytest.mark.parametrize("apply", [applied, applied_by_the_server], ids=["client-side", "server-side"])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.stem)
def test_a_chart_applies_whole_and_again(chart: Path, apply: Any) -> None:
    api = make_api(namespaces=("default", "kube-system"))
    for name in ("system-node-critical", "system-cluster-critical"):
        value = 2000001000 if "node" in name else 2000000000
        ask(api, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    objects = list(objects_of(chart.read_text()))

    first = [apply(api, obj) for obj in objects]
    second = [apply(api, obj) for obj in objects]

    assert [answer["message"] for code, answer in first if code != 201] == []
    assert [answer["message"] for code, answer in second if code != 200] == []
    assert [answer["metadata"].get("generation") for _, answer in second] == [
        answer["metadata"].get("generation") for _, answer in first
    ]


async def test_the_agents_of_a_chart_get_their_pods() -> None:
    (chart,) = (path for path in CHARTS if path.stem == "kube-prometheus-stack")
    async with running_controllers() as registry:
        linux = {"name": "a", "labels": {"kubernetes.io/os": "linux"}}
        add_node(registry, "a", metadata=linux)
        api = KubeApi(registry)
        value = {"metadata": {"name": "system-node-critical"}, "value": 2000001000}
        ask(api, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", value)

        for obj in objects_of(chart.read_text()):
            applied(api, obj)
        await settle()

        (agents,) = registry.list(DAEMON_SETS)
        assert agents["status"]["desiredNumberScheduled"] == 1
        assert [
            pod["spec"]["priority"] for pod in registry.list(PODS) if "node-exporter" in pod["metadata"]["name"]
        ] == [2000001000]


def test_the_yaml_of_the_page_about_pod_groups_applies() -> None:
    text = POD_GROUPS.read_text()
    blocks = [part.partition("```")[0] for part in text.split("```yaml\n")[1:]]
    api = make_api(features=FeatureGates.of({"GenericWorkload": True, "GangScheduling": True}))

    answers = [applied(api, obj) for text in blocks for obj in objects_of(text) if "kind" in obj]

    assert answers
    assert [answer["message"] for code, answer in answers if code != 201] == []
