"""What the scheduler counts on when it talks to an API server. The embedded API and a real one have to agree on every
word of it.
"""

import asyncio
import json

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


async def test_an_object_is_created_read_changed_and_deleted(room: Room):
    where = path("", "v1", "nodes", name=room.node)
    created = await room.create(NODES, node(room.node))
    created["metadata"]["labels"]["zone"] = "b"
    updated = await room.update(where, created)
    patched = await room.patch(where, {"spec": {"unschedulable": True}}, MERGE_PATCH)
    read = await room.get(where)
    await room.client.delete(where, uid=created["metadata"]["uid"])
    with pytest.raises(errors.NotFound, match=f'nodes "{room.node}" not found'):
        await room.get(where)

    assert len({obj["metadata"]["uid"] for obj in (created, updated, patched, read)}) == 1
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (created, updated, patched)]
    assert versions == sorted({*versions})
    assert read["metadata"]["labels"]["zone"] == "b"
    assert read["spec"]["unschedulable"] is True


async def test_creating_an_existing_object_is_refused(room: Room):
    await room.create(NODES, node(room.node))
    with pytest.raises(errors.AlreadyExists, match=f'nodes "{room.node}" already exists'):
        await room.create(NODES, node(room.node))


async def test_updating_an_older_version_is_a_conflict(room: Room):
    old = await room.create_pod("web")
    added = [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]
    await room.patch(room.pod_path("web"), added, "application/json-patch+json")  # type: ignore[arg-type]
    with pytest.raises(
        errors.Conflict,
        match="the object has been modified; please apply your changes to the latest version and try again",
    ):
        await room.update(room.pod_path("web"), old)


async def test_invalid_object_is_refused_by_field(room: Room):
    with pytest.raises(errors.Invalid) as caught:
        await room.create(room.pod_path(), {**pod("Bad_Name"), "spec": {"containers": []}})

    assert [cause["field"] for cause in caught.value.details["causes"]] == ["metadata.name", "spec.containers"]


async def test_body_that_is_no_object_is_a_bad_request(room: Room):
    with pytest.raises(errors.BadRequest):
        await room.client.create(room.pod_path(), ["not a pod"])


async def test_another_incarnation_is_not_deleted(room: Room):
    await room.create_pod("web")
    with pytest.raises(errors.Conflict, match="the UID in the precondition"):
        await room.client.delete(room.pod_path("web"), uid="another")

    assert "deletionTimestamp" not in (await room.get(room.pod_path("web")))["metadata"]


async def test_a_bound_pod_is_deleted_gracefully_and_a_second_time_at_once(room: Room):
    created = await room.create_pod("web")
    await room.bind("web", created["metadata"]["uid"], room.node)
    await room.client.delete(room.pod_path("web"), uid=created["metadata"]["uid"])
    terminating = await room.get(room.pod_path("web"))
    await room.client.delete(room.pod_path("web"), grace_period_seconds=0)
    with pytest.raises(errors.NotFound):
        await room.get(room.pod_path("web"))

    assert terminating["metadata"]["deletionTimestamp"]
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_unserved_api_is_distinguished_from_a_missing_object(room: Room):
    for group in ("nobody.example", ""):
        with pytest.raises(errors.NotServed):
            await room.get(path(group, "v1", "things"))
    with pytest.raises(errors.NotFound):
        await room.get(room.pod_path("nobody"))


# Lists


async def test_a_list_comes_in_pages_of_one_version(room: Room):
    for number in range(5):
        await room.create_pod(f"web-{number}")

    pages = [await room.get(room.pod_path(), limit="2")]
    while token := pages[-1]["metadata"].get("continue"):
        pages.append(await room.get(room.pod_path(), limit="2", **{"continue": token}))

    names = [[item["metadata"]["name"] for item in page["items"]] for page in pages]
    assert names == [["web-0", "web-1"], ["web-2", "web-3"], ["web-4"]]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1


async def test_fields_select_the_pods_that_wait_for_a_node(room: Room):
    bound = await room.create_pod("bound")
    await room.create_pod("waiting")
    await room.create_pod("foreign", schedulerName="another")
    await room.bind("bound", bound["metadata"]["uid"], room.node)

    for selector, names in {
        "spec.nodeName=": ["foreign", "waiting"],
        f"spec.nodeName={room.node}": ["bound"],
        "status.phase!=Pending": [],
        "spec.schedulerName=another,spec.nodeName=": ["foreign"],
    }.items():
        pods = await room.get(room.pod_path(), fieldSelector=selector)
        assert [item["metadata"]["name"] for item in pods["items"]] == names, selector


async def test_version_from_the_future_is_distinguished_from_a_slow_server(room: Room):
    with pytest.raises(errors.TooLargeResourceVersion, match="Too large resource version"):
        await room.get(path("", "v1", "pods"), resourceVersion="999999999", timeoutSeconds="2")


# Binding


async def test_a_pod_is_bound_once(room: Room):
    created = await room.create_pod("web")
    uid = created["metadata"]["uid"]
    with pytest.raises(errors.Conflict, match="Precondition failed: UID in precondition: another, UID in object meta"):
        await room.bind("web", "another", room.node)
    await room.bind("web", uid, room.node)
    for node_name in (room.node, "elsewhere"):
        with pytest.raises(errors.Conflict, match=f'pod web is already assigned to node "{room.node}"'):
            await room.bind("web", uid, node_name)
    bound = await room.get(room.pod_path("web"))

    assert bound["spec"]["nodeName"].startswith("node-")
    scheduled = [item["status"] for item in bound["status"]["conditions"] if item["type"] == "PodScheduled"]
    assert scheduled == ["True"]


async def test_one_of_many_simultaneous_bindings_succeeds(room: Room):
    uid = (await room.create_pod("web"))["metadata"]["uid"]
    nodes = [f"node-{number}" for number in range(10)]

    ends = await asyncio.gather(*(room.bind("web", uid, name) for name in nodes), return_exceptions=True)

    winners = [name for name, end in zip(nodes, ends, strict=True) if not isinstance(end, errors.Conflict)]
    assert winners == [(await room.get(room.pod_path("web")))["spec"]["nodeName"]]


async def test_missing_or_terminating_pod_cannot_be_bound(room: Room):
    with pytest.raises(errors.NotFound, match='pods "nobody" not found'):
        await room.bind("nobody", "u", room.node)
    leaving = pod("leaving")
    leaving["metadata"]["finalizers"] = ["example.com/stay"]
    uid = (await room.create(room.pod_path(), leaving))["metadata"]["uid"]
    await room.client.delete(room.pod_path("leaving"))
    with pytest.raises(errors.Conflict, match="pod leaving is being deleted, cannot be assigned to a host"):
        await room.bind("leaving", uid, room.node)
    await room.patch(room.pod_path("leaving"), {"metadata": {"finalizers": None}}, MERGE_PATCH)


async def test_a_gated_pod_can_not_be_bound(room: Room):
    uid = (await room.create_pod("gated", schedulingGates=[{"name": "example.com/wait"}]))["metadata"]["uid"]
    with pytest.raises(errors.Conflict, match=r"non-empty \.spec\.schedulingGates"):
        await room.bind("gated", uid, room.node)


# Status


async def test_conditions_are_merged_by_type(room: Room):
    await room.create_pod("web")
    for kind, status, reason in (
        ("PodScheduled", "False", "Unschedulable"),
        ("DisruptionTarget", "True", "PreemptionByScheduler"),
        ("PodScheduled", "False", "SchedulerError"),
    ):
        condition = {"type": kind, "status": status, "reason": reason, "message": "words"}
        await room.patch(room.pod_path("web", "status"), {"status": {"conditions": [condition]}}, STRATEGIC_MERGE_PATCH)
    conditions = (await room.get(room.pod_path("web")))["status"]["conditions"]

    assert {condition["type"]: condition["reason"] for condition in conditions} == {
        "PodScheduled": "SchedulerError",
        "DisruptionTarget": "PreemptionByScheduler",
    }


async def test_a_nomination_comes_and_goes(room: Room):
    await room.create_pod("web")
    where = room.pod_path("web", "status")
    set_to = [{"status": {"nominatedNodeName": name}} for name in ("n1", None)]
    nominations = [(await room.patch(where, patch, MERGE_PATCH))["status"].get("nominatedNodeName") for patch in set_to]

    assert nominations == ["n1", None]


async def test_the_status_is_not_the_place_for_the_spec(room: Room):
    await room.create_pod("web")
    patched = await room.patch(
        room.pod_path("web", "status"), {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}, MERGE_PATCH
    )

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


async def test_a_watch_tells_what_has_happened_since_and_what_happens_now(room: Room):
    version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]
    created = await room.create_pod("web")
    watching = asyncio.ensure_future(watched(room, 4, resourceVersion=version))
    await room.bind("web", created["metadata"]["uid"], room.node)
    await room.client.delete(room.pod_path("web"), grace_period_seconds=0)
    events = await watching

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["spec"]["nodeName"]
    assert events[2]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


async def test_watch_by_fields_delivers_objects_that_enter_and_leave_the_selection(room: Room):
    version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]
    watching = asyncio.ensure_future(watched(room, 2, resourceVersion=version, fieldSelector="spec.nodeName="))
    created = await room.create_pod("web")
    await room.bind("web", created["metadata"]["uid"], room.node)

    assert [event["type"] for event in await watching] == ["ADDED", "DELETED"]


async def test_a_watch_ends_when_its_time_is_over(room: Room):
    version = (await room.get(room.pod_path()))["metadata"]["resourceVersion"]

    assert await watched(room, 1, resourceVersion=version, timeoutSeconds="1") == []


async def test_a_watch_that_begins_with_what_is_there_says_when_that_was_all(room: Room, server: Server):
    await room.create_pod("a")
    await room.create_pod("b")
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    try:
        *initial, bookmark = await watched(room, 3, **options)
    except errors.Invalid as error:
        if isinstance(server, Embedded) or "sendInitialEvents" not in str(error):
            raise
        pytest.skip(f"its etcd is too old: {error}")

    events = sorted((event["type"], event["object"]["metadata"]["name"]) for event in initial)
    assert events == [("ADDED", "a"), ("ADDED", "b")]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"


# What else the scheduler writes


async def test_lease_is_renewed_only_with_its_latest_version(room: Room):
    leases = path("coordination.k8s.io", "v1", "leases", namespace=room.namespace)
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-11-20T10:00:00.000000Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "scheduler"}, "spec": spec}
    first = await room.create(leases, lease)
    first["spec"]["renewTime"] = "2026-11-20T10:00:02.123456Z"
    second = await room.update(f"{leases}/scheduler", first)
    first["spec"]["holderIdentity"] = "another"
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await room.update(f"{leases}/scheduler", first)

    assert second["spec"]["renewTime"] == "2026-11-20T10:00:02.123456Z"


async def test_an_event_tells_of_a_pod(room: Room):
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
    event_list = await room.get(path("", "v1", "events", namespace=room.namespace))

    assert [item["message"] for item in event_list["items"]] == ["Successfully assigned"]


async def test_a_priority_class_gives_its_value_and_an_unknown_one_nothing(room: Room):
    classes = path("scheduling.k8s.io", "v1", "priorityclasses")
    await room.create(classes, priority_class(room.namespace, 1000))
    with pytest.raises(errors.Forbidden, match="no PriorityClass with name nobody was found"):
        await room.create_pod("poor", priorityClassName="nobody")

    rich = await room.create_pod("rich", priorityClassName=room.namespace)

    assert rich["spec"]["priority"] == 1000
