"""Pods that want a device by a ResourceClaimTemplate: asked about in a dump, and in a cluster of our own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from tests.kit.service import serving

DEVICES = "resource.k8s.io/v1"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
TEMPLATE = {"spec": {"devices": {"requests": [REQUEST]}}}


def obj(kind: str, name: str, spec: dict[str, Any], api_version: str = DEVICES, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def node(name: str) -> dict[str, Any]:
    return obj("Node", name, {}, "v1", status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}})


def devices_on(name: str, count: int) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    of = [{"name": f"g{number}"} for number in range(count)]
    return obj("ResourceSlice", f"on-{name}", {"driver": "gpu.example", "nodeName": name, "pool": pool, "devices": of})


GPU = obj("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example'"}}]})
CLUSTER = [node("n1"), node("n2"), GPU, devices_on("n1", 2), obj("ResourceClaimTemplate", "one-gpu", TEMPLATE)]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dump") / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": CLUSTER}))
    return file


@pytest.fixture(scope="module", params=["dump", "service"])
def source(request: pytest.FixtureRequest, dump: Path) -> Iterator[list[str]]:
    if request.param == "dump":
        yield ["--dump", str(dump)]
        return
    with serving(state=dump) as service:
        yield ["--server", f"http://127.0.0.1:{service.port}"]


@pytest.fixture
def wants(tmp_path: Path) -> str:
    container = {"name": "c", "image": "registry.example/train:1", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(obj("Pod", "train", {"containers": [container], "resourceClaims": claims}, "v1")))
    return str(file)


def reprieve(*arguments: str) -> Any:
    told = CliRunner().invoke(app, [*arguments, "-o", "json"], catch_exceptions=False)
    return json.loads(told.stdout)


def test_pod_of_a_claim_template_goes_where_there_are_devices(source: list[str], wants: str) -> None:
    answer = reprieve("whatif", "-f", wants, *source)

    assert (answer["summary"], answer["notes"]) == ("default/train would go to n1.", [])


def test_each_copy_takes_a_device_of_its_own(source: list[str], wants: str) -> None:
    answer = reprieve("fits", "-f", wants, *source)

    assert (answer["fits"], answer["byNode"], answer["notes"]) == (2, [{"node": "n1", "pods": 2}], [])


def test_a_template_that_is_not_known_is_asked_for(tmp_path: Path, wants: str) -> None:
    without = tmp_path / "without.json"
    without.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": CLUSTER[:-1]}))

    answer = reprieve("whatif", "-f", wants, "--dump", str(without))

    assert (
        answer["summary"] == 'default/train would be unschedulable: pod "default/train": ResourceClaim not created yet.'
    )
    assert answer["notes"] == ["ResourceClaimTemplate default/one-gpu is not known here: put it into the file as well"]
