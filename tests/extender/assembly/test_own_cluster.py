"""A cluster of our own is there from the first moment, and is found again where it was saved."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender.rules.api_resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Object
from extender.rules.state_file import load_state, save_state, saved_version
from extender.testing import virtual_time
from reprieve.cluster import own_cluster
from tests.kit.tables import cases

NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"pods": "9"}}}
POD: Object = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
    "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]},
}  # fmt: skip


def names(objects: list[Any], kind: str) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects if obj["kind"] == kind)


async def test_the_namespaces_of_every_cluster_are_there() -> None:
    async with own_cluster() as server:
        listed = names(server.api.registry.list(NAMESPACES), "Namespace")

    assert listed == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_the_priority_classes_of_every_cluster_are_there() -> None:
    async with own_cluster() as server:
        values = {item["metadata"]["name"]: item["value"] for item in server.api.registry.list(PRIORITY_CLASSES)}
        critical = {**POD, "spec": {**POD["spec"], "priorityClassName": "system-cluster-critical"}}
        created = server.api.registry.create(PODS, "kube-system", critical)

    assert values == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    assert created["spec"]["priority"] == 2_000_000_000


def test_cluster_saved_at_the_end_is_restored_with_its_uids(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"

    async def first() -> str:
        async with own_cluster([NODE], save_to=path) as server:
            created = server.api.registry.create(PODS, "default", POD)
            await asyncio.sleep(5)
        return str(created["metadata"]["uid"])

    async def second() -> Object:
        async with own_cluster(load_state(path)) as server:
            assert server.report.refused == ()
            return server.api.registry.get(PODS, "default", "web")

    uid = virtual_time.run(first())
    restored = virtual_time.run(second())

    assert restored["metadata"]["uid"] == uid
    assert (restored["spec"]["nodeName"], restored["status"]["phase"]) == ("a", "Running")


async def test_temporary_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    leftover, other = tmp_path / ".state.json.4711.tmp", tmp_path / ".other.json.4711.tmp"
    for file in (leftover, other):
        file.write_text("half a sta")

    async with own_cluster(save_to=tmp_path / "state.json"):
        pass

    assert (leftover.exists(), other.exists()) == (False, True)


async def test_change_is_saved_within_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"

    async with own_cluster(save_to=path) as server:
        server.api.registry.create(NODES, "", NODE)
        await asyncio.sleep(61)
        objects = load_state(path)

    assert names(objects, "Node") == ["a"]


async def test_write_is_answered_when_it_is_in_the_file_where_each_change_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    async with (
        own_cluster(save_to=path, saves_each_change=True) as server,
        httpx.AsyncClient(transport=server.transport()) as client,
    ):

        async def create(name: str) -> None:
            node = {**NODE, "metadata": {"name": name}}
            answer = await client.post("http://own/api/v1/nodes", json=node)
            assert answer.status_code == 201
            assert name in names(load_state(path), "Node")

        await asyncio.gather(*(create(f"n{number}") for number in range(20)))
        await client.delete("http://own/api/v1/nodes/n7")

        assert len(names(load_state(path), "Node")) == 19


def no_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("away"))


def no_file(path: Path) -> None:
    path.unlink()
    (path / "in-the-way").mkdir(parents=True)


def no_other_file(path: Path) -> None:
    path.with_name(f".{path.name}.{os.getpid()}.tmp").mkdir()


@cases(
    "breaks, why",
    ("the folder is gone", no_folder, "No such file or directory"),
    ("a folder has the name of the file", no_file, "Is a directory"),
    ("nothing can be written beside the file", no_other_file, "Is a directory"),
)
async def test_write_that_is_not_in_the_file_is_answered_with_500_where_each_change_is_saved(
    tmp_path: Path, breaks: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "folder" / "cluster.json"
    path.parent.mkdir()
    async with (
        own_cluster(save_to=path, saves_each_change=True) as server,
        httpx.AsyncClient(transport=server.transport(), base_url="http://own/api/v1/nodes") as client,
    ):
        breaks(path)
        created = await client.post("", json=NODE)
        unchanged = await client.patch("/a", json={}, headers={"Content-Type": "application/merge-patch+json"})
        read = await client.get("/a")
        removed = await client.delete("/a")

    message = f"the last writes are in memory, but not in the file of the cluster: {why}"
    assert created.json() == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
        "reason": "InternalError", "message": f"Internal error occurred: {message}",
        "details": {"causes": [{"message": message}]},
    }  # fmt: skip
    assert [answer.status_code for answer in (created, unchanged, read, removed)] == [500, 500, 200, 500]
    assert "Audit-Id" in created.headers


async def test_writes_are_answered_again_once_the_file_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cluster.json"
    async with (
        own_cluster(save_to=path, saves_each_change=True) as server,
        httpx.AsyncClient(transport=server.transport(), base_url="http://own/api/v1/nodes") as client,
    ):
        before = await client.post("", json=NODE)
        path.parent.mkdir()
        after = await client.post("", json={**NODE, "metadata": {"name": "b"}})

    assert (before.status_code, after.status_code) == (500, 201)
    assert names(load_state(path), "Node") == ["a", "b"]


async def test_a_disk_that_refuses_does_not_end_the_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    path = folder / "cluster.json"

    async with own_cluster(save_to=path) as server:
        server.api.registry.create(NODES, "", NODE)
        await asyncio.sleep(61)
        assert not path.exists()
        folder.mkdir()
        await asyncio.sleep(61)
        objects = load_state(path)

    assert names(objects, "Node") == ["a"]


async def test_without_a_kubelet_a_bound_pod_does_not_run() -> None:
    async with own_cluster([NODE], kubelet=False) as server:
        server.api.registry.create(PODS, "default", POD)
        await asyncio.sleep(5)
        pod = server.api.registry.get(PODS, "default", "web")

    assert pod["status"]["phase"] == "Pending"


def test_a_cluster_that_is_started_again_does_not_repeat_versions() -> None:
    """Who has followed the one before would otherwise go on as if nothing had happened."""

    async def version() -> int:
        async with own_cluster([NODE]) as server:
            return server.api.registry.store.resource_version

    first = virtual_time.run(version())

    assert virtual_time.run(version()) > first


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml.gz"])
def test_a_clock_that_was_set_back_does_not_make_a_saved_cluster_repeat_versions(tmp_path: Path, name: str) -> None:
    """Not even if it is killed before anything has changed: it is saved when it begins."""
    path, last = tmp_path / name, 10**17
    save_state(path, [NODE], last)

    async def opened() -> tuple[int, int]:
        async with own_cluster(load_state(path), save_to=path) as server:
            return server.api.registry.store.resource_version, saved_version(path)

    first, first_saved = virtual_time.run(opened())
    second, _ = virtual_time.run(opened())

    assert last < first == first_saved < second
