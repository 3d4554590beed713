"""What the scheduler counts on when it talks to an API server. The embedded API and a real one have to agree on every
word of it.
"""

import asyncio
import json
from typing import Any

import pytest

from extender.client import errors
from extender.client.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.paths import path
from tests.envtest.servers import Embedded, Object, Room, Server, pod
from tests.kit.objects import priority_class

NODES = path("", "v1", "nodes")


def node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a"}}}


# Objects


def test_an_object_is_created_read_changed_and_deleted(server: Server):
    async def act(room: Room) -> list[Object]:
        where = path("", "v1", "nodes", name=room.node)
        created = await room.create(NODES, node(room.node))
        created["metadata"]["labels"]["zone"] = "b"
        updated = await room.update(where, created)
        patched = await room.patch(where, {"spec": {"unschedulable": True}}, MERGE_PATCH)
        read = await room.get(where)
        await room.client.delete(where, uid=created["metadata"]["uid"])
        with pytest.raises(errors.NotFound, match=f'nodes "{room.node}" not found'):
            await room.get(where)
        return [created, updated, patched, read]

    created, updated, patched, read = server.run(act)

    assert len({obj["metadata"]["uid"] for obj in (created, updated, patched, read)}) == 1
    assert (
        int(created["metadata"]["resourceVersion"])
        < int(updated["metadata"]["resourceVersion"])
        < int(patched["metadata"]["resourceVersion"])
    )
    assert read["metadata"]["labels"]["zone"] == "b"
    assert read["spec"]["unschedulable"] is True


def test_creating_an_existing_object_is_refused(server: Server):
    async def act(room: Room) -> None:
        await room.create(NODES, node(room.node))
        with pytest.raises(errors.AlreadyExists, match=f'nodes "{room.node}" already exists'):
            await room.create(NODES, node(room.node))

    server.run(act)


def test_updating_an_older_version_is_a_conflict(server: Server):
    async def act(room: Room) -> None:
        old = await room.create_pod("web")
        added = [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]
        await room.patch(room.pod_path("web"), added, "application/json-patch+json")  # type: ignore[arg-type]
        with pytest.raises(
            errors.Conflict,
            match="the object has been modified; please apply your changes to the latest version and try again",
        ):
            await room.update(room.pod_path("web"), old)

    server.run(act)


def test_invalid_object_is_refused_by_field(server: Server):
    async def act(room: Room) -> list[str]:
        with pytest.raises(errors.Invalid) as caught:
            await room.create(room.pod_path(), {**pod("Bad_Name"), "spec": {"containers": []}})
        return [cause["field"] for cause in caught.value.details["causes"]]

    assert server.run(act) == ["metadata.name", "spec.containers"]


def test_body_that_is_no_object_is_a_bad_request(server: Server):
    async def act(room: Room) -> None:
        with pytest.raises(errors.BadRequest):
            await room.client.create(room.pod_path(), ["not a pod"])

    server.run(act)


def test_another_incarnation_is_not_deleted(server: Server):
    async def act(room: Room) -> Object:
        await room.create_pod("web")
        with pytest.raises(errors.Conflict, match="the UID in the precondition"):
            await room.client.delete(room.pod_path("web"), uid="another")
        return await room.get(room.pod_path("web"))

    assert "deletionTimestamp" not in server.run(act)["metadata"]


def test_a_bound_pod_is_deleted_gracefully_and_a_second_time_at_once(server: Server):
    async def act(room: Room) -> Object:
        created = await room.create_pod("web")
        await room.bind("web", created["metadata"]["uid"], room.node)
        await room.client.delete(room.pod_path("web"), uid=created["metadata"]["uid"])
        terminating = await room.get(room.pod_path("web"))
        await room.client.delete(room.pod_path("web"), grace_period_seconds=0)
        with pytest.raises(errors.NotFound):
            await room.get(room.pod_path("web"))
        return terminating

    metadata = server.run(act)["metadata"]

    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 30


def test_unserved_api_is_distinguished_from_a_missing_object(server: Server):
    async def act(room: Room) -> None:
        with pytest.raises(errors.NotServed):
            await room.get(path("nobody.example", "v1", "things"))
        with pytest.raises(errors.NotServed):
            await room.get(path("", "v1", "things"))
        with pytest.raises(errors.NotFound):
            await room.get(room.pod_path("nobody"))

    server.run(act)


# Lists


def test_a_list_comes_in_pages_of_one_version(server: Server):
    async def act(room: Room) -> tuple[list[str], set[str]]:
        for number in range(5):
            await room.create_pod(f"web-{number}")
        names, versions, token = [], set(), ""
        while True:
            page = await room.get(room.pod_path(), limit="2", **({"continue": token} if token else {}))
            names += [item["metadata"]["name"] for item in page["items"]]
            versions.add(page["metadata"]["resourceVersion"])
            token = page["metadata"].get("continue", "")
            if not token:
                return names, versions

    names, versions = server.run(act)

    assert names == [f"web-{number}" for number in range(5)]
    assert len(versions) == 1


def test_fields_select_the_pods_that_wait_for_a_node(server: Server):
    async def act(room: Room) -> list[list[str]]:
        bound = await room.create_pod("bound")
        await room.create_pod("waiting")
        await room.create_pod("foreign", schedulerName="another")
        await room.bind("bound", bound["metadata"]["uid"], room.node)
        selectors = (
            "spec.nodeName=",
            f"spec.nodeName={room.node}",
            "status.phase!=Pending",
            "spec.schedulerName=another,spec.nodeName=",
        )
        lists = [await room.get(room.pod_path(), fieldSelector=selector) for selector in selectors]
        return [[item["metadata"]["name"] for item in found["items"]] for found in lists]

    assert server.run(act) == [["foreign", "waiting"], ["bound"], [], ["foreign"]]


def test_version_from_the_future_is_distinguished_from_a_slow_server(server: Server):
    async def act(room: Room) -> None:
        with pytest.raises(errors.TooLargeResourceVersion, match="Too large resource version"):
            await room.get(path("", "v1", "pods"), resourceVersion="999999999", timeoutSeconds="2")

    server.run(act)


# Binding


def test_a_pod_is_bound_once(server: Server):
    async def act(room: Room) -> Object:
        created = await room.create_pod("web")
        uid = created["metadata"]["uid"]
        with pytest.raises(
            errors.Conflict, match="Precondition failed: UID in precondition: another, UID in object meta"
        ):
            await room.bind("web", "another", room.node)
        await room.bind("web", uid, room.node)
        for again in (room.node, "elsewhere"):
            with pytest.raises(errors.Conflict, match=f'pod web is already assigned to node "{room.node}"'):
                await room.bind("web", uid, again)
        return await room.get(room.pod_path("web"))

    bound = server.run(act)

    assert bound["spec"]["nodeName"].startswith("node-")
    assert [
        condition["status"] for condition in bound["status"]["conditions"] if condition["type"] == "PodScheduled"
    ] == ["True"]


def test_one_of_many_simultaneous_bindings_succeeds(server: Server):
    async def act(room: Room) -> tuple[list[str | None], str]:
        created = await room.create_pod("web")

        async def bind(to: str) -> str | None:
            try:
                await room.bind("web", created["metadata"]["uid"], to)
            except errors.Conflict:
                return None
            return to

        winners = await asyncio.gather(*(bind(f"node-{number}") for number in range(10)))
        return [winner for winner in winners if winner], (await room.get(room.pod_path("web")))["spec"]["nodeName"]

    winners, node_name = server.run(act)

    assert winners == [node_name]


def test_missing_or_terminating_pod_cannot_be_bound(server: Server):
    async def act(room: Room) -> None:
        with pytest.raises(errors.NotFound, match='pods "nobody" not found'):
            await room.bind("nobody", "u", room.node)
        leaving = pod("leaving")
        leaving["metadata"]["finalizers"] = ["example.com/stay"]
        uid = (await room.create(room.pod_path(), leaving))["metadata"]["uid"]
        await room.client.delete(room.pod_path("leaving"))
        with pytest.raises(errors.Conflict, match="pod leaving is being deleted, cannot be assigned to a host"):
            await room.bind("leaving", uid, room.node)
        await room.patch(room.pod_path("leaving"), {"metadata": {"finalizers": None}}, MERGE_PATCH)

    server.run(act)


def test_a_gated_pod_can_not_be_bound(server: Server):
    async def act(room: Room) -> None:
        uid = (await room.create_pod("gated", schedulingGates=[{"name": "example.com/wait"}]))["metadata"]["uid"]
        with pytest.raises(errors.Conflict, match=r"non-empty \.spec\.schedulingGates"):
            await room.bind("gated", uid, room.node)

    server.run(act)


# Status


def test_conditions_are_merged_by_type(server: Server):
    async def act(room: Room) -> Object:
        await room.create_pod("web")
        for kind, reason in (
            ("PodScheduled", "Unschedulable"),
            ("DisruptionTarget", "PreemptionByScheduler"),
            ("PodScheduled", "SchedulerError"),
        ):
            condition = {
                "type": kind,
                "status": "False" if kind == "PodScheduled" else "True",
                "reason": reason,
                "message": "words",
            }
            await room.patch(
                room.pod_path("web", "status"), {"status": {"conditions": [condition]}}, STRATEGIC_MERGE_PATCH
            )
        return await room.get(room.pod_path("web"))

    conditions = server.run(act)["status"]["conditions"]

    assert {condition["type"]: condition["reason"] for condition in conditions} == {
        "PodScheduled": "SchedulerError",
        "DisruptionTarget": "PreemptionByScheduler",
    }


def test_a_nomination_comes_and_goes(server: Server):
    async def act(room: Room) -> list[Any]:
        await room.create_pod("web")
        where = room.pod_path("web", "status")
        set_to = [{"status": {"nominatedNodeName": name}} for name in ("n1", None)]
        return [(await room.patch(where, patch, MERGE_PATCH))["status"].get("nominatedNodeName") for patch in set_to]

    assert server.run(act) == ["n1", None]


def test_the_status_is_not_the_place_for_the_spec(server: Server):
    async def act(room: Room) -> Object:
        await room.create_pod("web")
        return await room.patch(
            room.pod_path("web", "status"), {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}, MERGE_PATCH
        )

    patched = server.run(act)

    assert "nodeName" not in patched["spec"]
    assert patched["status"]["phase"] == "Running"


# Watches


async def watched(room: Room, count: int, **params: str) -> list[Object]:
    """So many events of this room's pods."""
    events: list[Object] = []
    async with room.client.watch(room.pod_path(), params={"watch": "1", **params}, silence=30) as lines:
        async for line in lines:
            events.append(json.loads(line))
            if len(events) == count:
                break
    return events


def test_a_watch_tells_what_has_happened_since_and_what_happens_now(server: Server):
    async def act(room: Room) -> list[Object]:
        version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]
        created = await room.create_pod("web")
        watching = asyncio.ensure_future(watched(room, 4, resourceVersion=version))
        await room.bind("web", created["metadata"]["uid"], room.node)
        await room.client.delete(room.pod_path("web"), grace_period_seconds=0)
        return await watching

    events = server.run(act)

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["spec"]["nodeName"]
    assert events[2]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


def test_watch_by_fields_delivers_objects_that_enter_and_leave_the_selection(server: Server):
    async def act(room: Room) -> list[Object]:
        version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]
        watching = asyncio.ensure_future(watched(room, 2, resourceVersion=version, fieldSelector="spec.nodeName="))
        created = await room.create_pod("web")
        await room.bind("web", created["metadata"]["uid"], room.node)
        return await watching

    assert [event["type"] for event in server.run(act)] == ["ADDED", "DELETED"]


def test_a_watch_ends_when_its_time_is_over(server: Server):
    async def act(room: Room) -> list[Object]:
        version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]
        return await watched(room, 1, resourceVersion=version, timeoutSeconds="1")

    assert server.run(act) == []


def test_a_watch_that_begins_with_what_is_there_says_when_that_was_all(server: Server):
    async def act(room: Room) -> list[Object]:
        await room.create_pod("a")
        await room.create_pod("b")
        options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        return await watched(room, 3, **options)

    try:
        *initial, bookmark = server.run(act)
    except errors.Invalid as error:
        if isinstance(server, Embedded) or "sendInitialEvents" not in str(error):
            raise
        pytest.skip(f"its etcd is too old: {error}")

    assert sorted((event["type"], event["object"]["metadata"]["name"]) for event in initial) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"


# What else the scheduler writes


def test_lease_is_renewed_only_with_its_latest_version(server: Server):
    async def act(room: Room) -> str:
        leases = path("coordination.k8s.io", "v1", "leases", namespace=room.namespace)
        where = path("coordination.k8s.io", "v1", "leases", namespace=room.namespace, name="scheduler")
        first = await room.create(
            leases,
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "scheduler"},
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "renewTime": "2026-11-20T10:00:00.000000Z",
                },
            },
        )
        first["spec"]["renewTime"] = "2026-11-20T10:00:02.123456Z"
        second = await room.update(where, first)
        first["spec"]["holderIdentity"] = "another"
        with pytest.raises(errors.Conflict, match="the object has been modified"):
            await room.update(where, first)
        return str(second["spec"]["renewTime"])

    assert server.run(act) == "2026-11-20T10:00:02.123456Z"


def test_an_event_tells_of_a_pod(server: Server):
    async def act(room: Room) -> list[str]:
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "web.1", "namespace": room.namespace},
            "eventTime": "2026-11-20T10:00:00.000000Z",
            "action": "Binding",
            "reason": "Scheduled",
            "note": "Successfully assigned",
            "type": "Normal",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": room.namespace, "name": "web"},
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
        }
        await room.create(path("events.k8s.io", "v1", "events", namespace=room.namespace), event)
        seen = await room.get(path("", "v1", "events", namespace=room.namespace))
        return [item["message"] for item in seen["items"]]

    assert server.run(act) == ["Successfully assigned"]


def test_a_priority_class_gives_its_value_and_an_unknown_one_nothing(server: Server):
    async def act(room: Room) -> int:
        classes = path("scheduling.k8s.io", "v1", "priorityclasses")
        body = priority_class(room.namespace, 1000)
        await room.create(classes, body)
        with pytest.raises(errors.Forbidden, match="no PriorityClass with name nobody was found"):
            await room.create_pod("poor", priorityClassName="nobody")
        return int((await room.create_pod("rich", priorityClassName=room.namespace))["spec"]["priority"])

    assert server.run(act) == 1000
