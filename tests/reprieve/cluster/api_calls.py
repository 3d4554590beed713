"""Asking a KubeApi, as tests do it."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from extender.rules.api_resources import NODES, PODS
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests.request_info import Request
from reprieve.cluster.responses.response import Response, StreamResponse
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
PODS_PATH = "/api/v1/namespaces/default/pods"


def make_api(
    *, history: int = 20_000, namespaces: tuple[str, ...] = ("default",), features: FeatureGates = DEFAULT_FEATURES
) -> KubeApi:
    """An API with some namespaces, at a time that stands still."""
    store = ObjectStore(history=history)
    return KubeApi(make_registry(*namespaces, store=store, now=lambda: NOW, seed=7, features=features))


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A small pod; `labels` go to its metadata."""
    labels = spec.pop("labels", None)
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def add_pod(api: KubeApi, name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """Create a pod without going through HTTP."""
    return api.registry.create(PODS, namespace, pod(name, **spec))


def add_node(api: KubeApi, name: str, **labels: str) -> None:
    """Create a node likewise."""
    api.registry.create(
        NODES,
        "",
        {"metadata": {"name": name, "labels": {key.replace("__", "/"): value for key, value in labels.items()}}},
    )


def send(
    api: KubeApi,
    method: str,
    url: str,
    body: Any = None,
    *,
    content_type: str = "application/json",
    accept: str = "",
    agent: str = "",
) -> Response | StreamResponse:
    """One request; a body of bytes goes as it is, anything else as JSON."""
    split = urlsplit(url)
    headers = {"accept": accept, "user-agent": agent}
    raw = b""
    if body is not None:
        headers["content-type"] = content_type
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return api.handle(Request(method, split.path, parse_qs(split.query, keep_blank_values=True), headers, raw))


def ask(api: KubeApi, method: str, url: str, body: Any = None, **how: str) -> tuple[int, Any]:
    """The status and the JSON of the answer to a request that is no watch."""
    answer = send(api, method, url, body, **how)
    assert isinstance(answer, Response)
    return answer.status, orjson.loads(answer.body)


def merge(api: KubeApi, url: str, patch: Any) -> tuple[int, Any]:
    """The same for a merge patch."""
    return ask(api, "PATCH", url, patch, content_type="application/merge-patch+json")


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def events(answer: Response | StreamResponse) -> list[Any]:
    """All events of a watch, to its end."""
    assert isinstance(answer, StreamResponse)
    return [orjson.loads(line) for line in b"".join([chunk async for chunk in answer.chunks]).splitlines()]


def summary(event: Any) -> tuple[str, str]:
    """Its type, and the name of its object."""
    return event["type"], event["object"]["metadata"].get("name", "")
