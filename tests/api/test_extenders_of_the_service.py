"""Extenders that the service's configuration names: asked by a service that schedules, and looked at before it
starts.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from api.settings.settings import Settings
from api.starting import prepare
from reprieve.errors import StartUpError
from tests.extender.client.http_extender.serving import Served, answer, serving
from tests.kit.objects import node, pod, priority_class, state_file

Answers = Callable[[Any], object]
"""Returns the answer to a body."""

A_NODE: Final[dict[str, Any]] = {
    **node("a"),
    "metadata": {"name": "a", "labels": {"zone": "z"}},
    "status": {
        "allocatable": {"cpu": "2", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kernelVersion": "6.12", "kubeletVersion": "v1.36.2", "architecture": "amd64"},
    },
}
NVIDIA: Final = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}
CONTAINER: Final = {
    "args": ["train"],
    "env": [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "disable"}],
    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
}
A_POD: Final = pod("p", container=CONTAINER, volumes=[{"name": "shared", "emptyDir": {}}], runtimeClassName="nvidia")
A_POD["metadata"]["annotations"] = {"nvidia.com/use-gputype": "A100"}

BAD: list[dict[str, object]] = [
    {"urlPrefix": "ftp://e"},
    {"urlPrefix": "https://e", "enableHTTPS": True, "tlsConfig": {"caFile": "/nowhere"}},
]


def settings(tmp_path: Path, extenders: list[dict[str, object]], *more: dict[str, Any], **options: Any) -> Settings:
    config, state = tmp_path / "config.yaml", tmp_path / "state.yaml"
    api_version = "kubescheduler.config.k8s.io/v1"
    config.write_text(
        yaml.safe_dump({"apiVersion": api_version, "kind": "KubeSchedulerConfiguration", "extenders": extenders})
    )
    state_file(state, NVIDIA, A_NODE, node("b"), *more)
    return Settings(config=config, state=state, **options)


def test_invalid_extenders_are_refused_in_one_line_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartUpError) as caught:
        prepare(settings(tmp_path, BAD))

    error = str(caught.value)
    assert error.startswith(f"configuration {tmp_path / 'config.yaml'}: [extenders[0].urlPrefix: ")
    assert "\n" not in error
    assert "[1].tlsConfig: " in error


def test_a_service_that_does_not_schedule_does_not_mind(tmp_path: Path) -> None:
    """The configuration is kube-scheduler's then, which calls its extenders itself."""
    cluster, _ = prepare(settings(tmp_path, BAD, schedule=False))

    assert cluster.words == str(tmp_path / "state.yaml")


def scheduled(
    tmp_path: Path, answered: Answers, extender: dict[str, object], created: dict[str, Any], *objects: dict[str, Any]
) -> tuple[str, Served]:
    """Returns where the pod has come to, and what the extender was asked for it."""

    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(json.dumps(answered(servers[0].requests[-1].body))))
        await writer.drain()

    async def run() -> tuple[str, Served]:
        async with serving(write) as served:
            servers.append(served)
            _, opens = prepare(settings(tmp_path, [extender | {"urlPrefix": served.address}], *objects))
            async with opens() as service:
                assert service.kubernetes is not None
                transport = httpx.ASGITransport(service.kubernetes)
                async with httpx.AsyncClient(
                    transport=transport, base_url="http://cluster/api/v1/namespaces/default"
                ) as client:
                    (await client.post("/pods", json=created)).raise_for_status()
                    where = ""
                    while not where:
                        where = (await client.get("/pods/p")).json()["spec"].get("nodeName", "")
                        await asyncio.sleep(0.01)
            return where, served

    servers: list[Served] = []
    return asyncio.run(asyncio.wait_for(run(), 30))


def test_a_service_that_schedules_asks_them(tmp_path: Path) -> None:
    where, served = scheduled(
        tmp_path, lambda _: {"NodeNames": ["b"]}, {"filterVerb": "filter", "nodeCacheCapable": True}, pod("p")
    )

    assert where == "b"
    assert [request.path for request in served.requests] == ["/filter"]


@pytest.mark.parametrize("by_name", [True, False])
def test_they_get_the_pod_as_the_api_server_has_it_and_nodes_in_full_where_they_ask_for_that(
    tmp_path: Path, by_name: bool
) -> None:
    """Extenders for GPUs read the environment of containers, their mounts, and what the kubelet says of its node."""
    _, served = scheduled(
        tmp_path,
        lambda body: {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"]},
        {"filterVerb": "filter", "nodeCacheCapable": by_name},
        A_POD,
    )

    body = served.requests[0].body
    assert body["Pod"]["metadata"]["annotations"] == A_POD["metadata"]["annotations"]
    assert not {"kind", "apiVersion"} & body["Pod"].keys() and "managedFields" not in body["Pod"]["metadata"]
    (container,) = body["Pod"]["spec"]["containers"]
    assert A_POD["spec"]["containers"][0].items() <= container.items()
    assert body["Pod"]["spec"]["runtimeClassName"] == "nvidia"
    if by_name:
        assert (body["NodeNames"], body["Nodes"]) == (["a", "b"], None)
    else:
        statuses = {item["metadata"]["name"]: item["status"] for item in body["Nodes"]["items"]}
        assert body["NodeNames"] is None
        assert statuses["a"]["addresses"] == A_NODE["status"]["addresses"]
        assert A_NODE["status"]["nodeInfo"].items() <= statuses["a"]["nodeInfo"].items()


def test_they_get_victims_in_full(tmp_path: Path) -> None:
    def accept_all(body: Any) -> object:
        nodes = body["NodeNameToVictims"].items()
        by_uid = {node: [{"UID": victim["metadata"]["uid"]} for victim in victims["Pods"]] for node, victims in nodes}
        return {"NodeNameToMetaVictims": {node: {"Pods": pods} for node, pods in by_uid.items()}}

    urgent = priority_class("u", 9)
    low = {**A_POD, "metadata": {"name": "low", "namespace": "default"}, "spec": {**A_POD["spec"], "nodeName": "a"}}
    high = pod("p", "2", priorityClassName="u", nodeSelector={"zone": "z"})

    where, served = scheduled(tmp_path, accept_all, {"preemptVerb": "preempt"}, high, urgent, low)

    (victim,) = served.requests[0].body["NodeNameToVictims"]["a"]["Pods"]
    assert where == "a"
    assert A_POD["spec"]["containers"][0].items() <= victim["spec"]["containers"][0].items()
