"""Extenders that the service's configuration names: asked by a service that schedules, and looked at before it
starts.
"""

import asyncio
from pathlib import Path

import httpx
import pytest
import yaml

from api.fatal_errors import StartUpError
from api.settings.settings import Settings
from api.starting import prepare
from tests.extender.client.http_extender.serving import Served, says_json, serving
from tests.kit.cluster import node, pod

BAD: list[dict[str, object]] = [
    {"urlPrefix": "ftp://e"},
    {"urlPrefix": "https://e", "enableHTTPS": True, "tlsConfig": {"caFile": "/nowhere"}},
]


def settings(tmp_path: Path, extenders: list[dict[str, object]], **options: object) -> Settings:
    config, state = tmp_path / "config.yaml", tmp_path / "state.yaml"
    api_version = "kubescheduler.config.k8s.io/v1"
    config.write_text(
        yaml.safe_dump({"apiVersion": api_version, "kind": "KubeSchedulerConfiguration", "extenders": extenders})
    )
    state.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [node("a"), node("b")]}))
    return Settings.model_validate({"config": config, "state": state, **options})


def test_invalid_extenders_are_refused_in_one_line_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartUpError) as caught:
        prepare(settings(tmp_path, BAD))

    said = str(caught.value)
    assert said.startswith(f"configuration {tmp_path / 'config.yaml'}: [extenders[0].urlPrefix: ")
    assert "\n" not in said
    assert "[1].tlsConfig: " in said


def test_a_service_that_does_not_schedule_does_not_mind(tmp_path: Path) -> None:
    """The configuration is kube-scheduler's then, which calls its extenders itself."""
    cluster, _ = prepare(settings(tmp_path, BAD, schedule=False))

    assert cluster.words == str(tmp_path / "state.yaml")


def test_a_service_that_schedules_asks_them(tmp_path: Path) -> None:
    async def scheduled() -> tuple[str, Served]:
        async with serving(says_json({"NodeNames": ["b"]})) as served:
            extender: dict[str, object] = {
                "urlPrefix": served.address,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
            }
            _, opens = prepare(settings(tmp_path, [extender]))
            async with opens() as service:
                assert service.kubernetes is not None
                transport = httpx.ASGITransport(service.kubernetes)
                async with httpx.AsyncClient(
                    transport=transport, base_url="http://cluster/api/v1/namespaces/default"
                ) as client:
                    (await client.post("/pods", json=pod("p"))).raise_for_status()
                    where = ""
                    while not where:
                        where = (await client.get("/pods/p")).json()["spec"].get("nodeName", "")
                        await asyncio.sleep(0.01)
            return where, served

    where, served = asyncio.run(asyncio.wait_for(scheduled(), 30))

    assert where == "b"
    assert [request.path for request in served.requests] == ["/filter"]
