"""Whoever writes an object owns what the write changed. The expected values are those of a real API server."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from extender.rules import api_resources
from extender.rules.schema import api_types
from reprieve.cluster.patches import managed_fields
from tests.kit.tables import cases

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONTAINER: dict[str, Any] = {
    ".": {},
    "f:image": {},
    "f:imagePullPolicy": {},
    "f:name": {},
    "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}},
    "f:terminationMessagePath": {},
    "f:terminationMessagePolicy": {},
}


def pod(**status):
    obj, _ = api_types.read(
        api_resources.PODS,
        {
            "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i:1",
                        "imagePullPolicy": "IfNotPresent",
                        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }
                ],
                "restartPolicy": "Always",
                "securityContext": {},
            },
            "status": {"phase": "Pending", **status},
        },
    )
    return obj


def write(old, new, *, manager="me", subresource="", now=NOON, resource=api_resources.PODS):
    """The object as it is stored then."""
    entries = managed_fields.updated(resource, old, new, manager=manager, subresource=subresource, now=now)
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


def entries_of(obj):
    return obj["metadata"]["managedFields"]


def labelled(obj, **labels):
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


@pytest.fixture
def live():
    return write(None, pod())


def test_creator_of_a_pod_owns_its_labels_and_spec_and_not_its_status():
    created = write(None, pod())

    assert entries_of(created) == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-20T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {'k:{"name":"c"}': CONTAINER},
                    "f:restartPolicy": {},
                    "f:securityContext": {},
                },
            },
        }
    ]


@cases(
    "resource, obj, fields",
    (
        "a node: neither its status nor its empty spec",
        api_resources.NODES,
        {"metadata": {"name": "n", "labels": {"a/b": "c"}}, "status": {"capacity": {"cpu": "4"}}},
        {"f:metadata": {"f:labels": {".": {}, "f:a/b": {}}}},
    ),
    (
        "a lease: a zero that was said counts",
        api_resources.LEASES,
        {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseTransitions": 0}},
        {"f:spec": {"f:holderIdentity": {}, "f:leaseTransitions": {}}},
    ),
    (
        "a budget: its selector is one field",
        api_resources.POD_DISRUPTION_BUDGETS,
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
        {"f:spec": {"f:minAvailable": {}, "f:selector": {}}},
    ),
    (
        "a priority class",
        api_resources.PRIORITY_CLASSES,
        {"metadata": {"name": "c"}, "value": 1000, "preemptionPolicy": "Never"},
        {"f:preemptionPolicy": {}, "f:value": {}},
    ),
    (
        "a set is owned by its values",
        api_resources.PODS,
        {"metadata": {"generateName": "p-", "name": "p-x", "finalizers": ["a/b"]}, "spec": {"containers": []}},
        {
            "f:metadata": {"f:finalizers": {".": {}, 'v:"a/b"': {}}, "f:generateName": {}},
            "f:spec": {"f:containers": {}},
        },
    ),
    (
        "a service: items with two keys",
        api_resources.SERVICES,
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}},
        {
            "f:spec": {
                "f:ports": {
                    ".": {},
                    'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}},
                }
            }
        },
    ),
)
def test_creator_owns_the_fields_of_each_kind(resource, obj, fields):
    obj, _ = api_types.read(resource, obj)

    created = write(None, obj, resource=resource)

    assert [entry["fieldsV1"] for entry in entries_of(created)] == [fields]


def test_a_status_patch_has_an_entry_of_its_own():
    live = write(None, pod(conditions=[{"type": "PodScheduled", "status": "True"}]))
    conditions = [{"type": "DisruptionTarget", "status": "True"}, {"type": "PodScheduled", "status": "True"}]

    patched = write(live, pod(conditions=conditions), subresource="status")

    assert entries_of(patched)[0] == entries_of(live)[0]
    assert entries_of(patched)[1] == {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-20T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:conditions": {
                    'k:{"type":"DisruptionTarget"}': {
                        ".": {},
                        "f:lastProbeTime": {},
                        "f:lastTransitionTime": {},
                        "f:status": {},
                        "f:type": {},
                    }
                }
            }
        },
        "subresource": "status",
    }


def test_an_owner_of_nothing_is_forgotten(live):
    nominated = write(live, pod(nominatedNodeName="n"), subresource="status")

    cleared = write(nominated, pod(), subresource="status")

    assert len(entries_of(nominated)) == 2
    assert entries_of(cleared) == entries_of(live)


def test_changed_field_belongs_to_the_manager_that_changed_it():
    live = write(None, labelled(pod(), app="x", tier="web"))

    changed = write(live, labelled(live, app="x", tier="db"), manager="other", now=NOON + timedelta(minutes=1))

    mine, theirs = entries_of(changed)
    assert mine["fieldsV1"]["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    assert theirs["fieldsV1"] == {"f:metadata": {"f:labels": {"f:tier": {}}}}
    assert (mine["time"], theirs["time"]) == ("2026-11-20T12:00:00Z", "2026-11-20T12:01:00Z")


def test_a_write_that_changes_nothing_keeps_the_time(live):
    assert entries_of(write(live, live, now=NOON + timedelta(hours=1))) == entries_of(live)


def test_status_in_a_write_to_the_object_itself_changes_no_owner(live):
    assert entries_of(write(live, {**live, "status": {"phase": "Failed"}}, manager="other")) == entries_of(live)


@pytest.mark.parametrize("record", [[], [{}]])
def test_callers_may_have_the_record_dropped(record):
    live = write(None, pod())
    record = {**live, "metadata": {**live["metadata"], "managedFields": record}}

    assert entries_of(write(live, record)) == []


def test_an_object_without_a_record_does_not_begin_one_by_an_update():
    live = pod()

    assert entries_of(write(live, labelled(live, a="b"))) == []


def test_callers_may_edit_the_record():
    """As kubectl does when it goes from client-side to server-side apply."""
    live = write(None, pod(), manager="kubectl-client-side-apply")
    edited = [{**entries_of(live)[0], "manager": "kubectl", "operation": "Apply"}]

    updated = write(live, {**live, "metadata": {**live["metadata"], "managedFields": edited}})

    assert entries_of(updated) == edited


def test_a_malformed_record_counts_for_nothing(live):
    malformed = [{**entries_of(live)[0], "operation": "Guess"}]

    updated = write(live, {**live, "metadata": {**live["metadata"], "managedFields": malformed}})

    assert entries_of(updated) == entries_of(live)


def test_oldest_updaters_beyond_ten_are_merged():
    live = write(None, pod())
    for place in range(12):
        labels = {**live["metadata"]["labels"], f"l{place}": "v"}
        live = write(live, labelled(live, **labels), manager=f"m{place}", now=NOON + timedelta(minutes=place + 1))

    entries = entries_of(live)

    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{place}" for place in range(3, 12))]
    assert entries[0]["fieldsV1"]["f:metadata"]["f:labels"].keys() == {".", "f:app", "f:l0", "f:l1", "f:l2"}


def test_indistinguishable_items_are_one_field():
    obj, _ = api_types.read(
        api_resources.PODS,
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "a"}, {"name": "c", "image": "b"}]}},
    )

    assert entries_of(write(None, obj))[0]["fieldsV1"] == {"f:spec": {"f:containers": {'k:{"name":"c"}': {}}}}
