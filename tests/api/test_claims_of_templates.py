"""Pods that want a device by a ResourceClaimTemplate: asked about in a dump, and in a cluster of our own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from tests.kit.objects import node, obj, pod, state_file
from tests.kit.service import serving

DEVICES = "resource.k8s.io/v1"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
TEMPLATE = {"spec": {"devices": {"requests": [REQUEST]}}}


def devices_on(name: str, count: int) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"g{number}"} for number in range(count)]
    spec = {"driver": "gpu.example", "nodeName": name, "pool": pool, "devices": devices}
    return obj("ResourceSlice", DEVICES, f"on-{name}", spec=spec)


SELECTORS = [{"cel": {"expression": "device.driver == 'gpu.example'"}}]
GPU = obj("DeviceClass", DEVICES, "gpu", spec={"selectors": SELECTORS})
ONE_GPU = obj("ResourceClaimTemplate", DEVICES, "one-gpu", spec=TEMPLATE)
CLUSTER = [node("n1", "4"), node("n2", "4"), GPU, devices_on("n1", 2), ONE_GPU]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return state_file(tmp_path_factory.mktemp("dump") / "cluster.json", *CLUSTER)


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
    file.write_text(json.dumps(pod("train", containers=[container], resourceClaims=claims)))
    return str(file)


def reprieve(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "-o", "json"], catch_exceptions=False)
    return json.loads(result.stdout)


def test_pod_of_a_claim_template_goes_where_there_are_devices(source: list[str], wants: str) -> None:
    answer = reprieve("whatif", "-f", wants, *source)

    assert (answer["summary"], answer["notes"]) == ("default/train would go to n1.", [])


def test_each_copy_takes_a_device_of_its_own(source: list[str], wants: str) -> None:
    answer = reprieve("fits", "-f", wants, *source)

    assert (answer["fits"], answer["byNode"], answer["notes"]) == (2, [{"node": "n1", "pods": 2}], [])


def test_a_template_that_is_not_known_is_asked_for(tmp_path: Path, wants: str) -> None:
    incomplete_dump = tmp_path / "without.json"
    state_file(incomplete_dump, *CLUSTER[:-1])

    answer = reprieve("whatif", "-f", wants, "--dump", str(incomplete_dump))

    assert (
        answer["summary"] == 'default/train would be unschedulable: pod "default/train": ResourceClaim not created yet.'
    )
    assert answer["notes"] == ["ResourceClaimTemplate default/one-gpu is not known here: put it into the file as well"]
