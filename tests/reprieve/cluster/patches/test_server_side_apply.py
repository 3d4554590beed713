"""Server-side apply: what several callers each say of one object."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given, strategies as st

from extender.rules import api_resources
from extender.rules.schema import api_types
from extender.rules.statuses import ApiStatus
from reprieve.cluster.patches import managed_fields, server_side_apply, typed_values
from tests.kit.tables import cases

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def deployment(**spec):
    metadata = {"name": "d", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def template(*containers, **more):
    return {"template": {"spec": {"containers": list(containers), **more}}}


def applied(live, obj, manager="me", *, resource=api_resources.DEPLOYMENTS, **more):
    return server_side_apply.apply(resource, live, obj, manager=manager, now=more.pop("now", NOON), **more)


def updated(live, obj, manager="other", *, resource=api_resources.DEPLOYMENTS):
    obj, _ = api_types.read(resource, obj)
    entries = managed_fields.updated(resource, live, obj, manager=manager, now=NOON)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def names(obj):
    return [container["name"] for container in obj["spec"]["template"]["spec"]["containers"]]


def refusal(call):
    with pytest.raises(ApiStatus) as raised:
        call()
    return raised.value


def test_an_object_comes_into_being():
    obj = applied(
        None, deployment(replicas=2, **template({"name": "a", "image": "i", "ports": [{"containerPort": 80}]}))
    )

    assert obj["spec"]["replicas"] == 2
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": "2026-11-20T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"a"}': {
                                    ".": {},
                                    "f:image": {},
                                    "f:name": {},
                                    "f:ports": {
                                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                                    },
                                }
                            }
                        }
                    },
                }
            },
        }
    ]


def test_field_that_is_no_longer_applied_is_removed():
    live = applied(
        None, deployment(replicas=2, paused=True, **template({"name": "a", "image": "i", "tty": True}, {"name": "b"}))
    )

    obj = applied(live, deployment(replicas=2, **template({"name": "a", "image": "i"})))

    assert "paused" not in obj["spec"]
    assert obj["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "i", "resources": {}}]


def test_field_that_another_manager_applies_stays():
    live = applied(None, deployment(replicas=2, paused=True))
    live = applied(live, deployment(paused=True), "other")

    obj = applied(live, deployment(replicas=2))

    assert obj["spec"]["paused"] is True
    assert {entry["manager"] for entry in obj["metadata"]["managedFields"]} == {"me", "other"}


def test_field_that_was_never_applied_stays():
    live = applied(None, deployment(replicas=2))
    live = updated(live, {**live, "spec": {**live["spec"], "minReadySeconds": 5}})

    assert applied(live, deployment(paused=True))["spec"]["minReadySeconds"] == 5


def test_a_change_of_what_another_owns_is_a_conflict():
    live = updated(None, deployment(replicas=2))

    status = refusal(lambda: applied(live, deployment(replicas=3)))

    assert (status.code, status.reason) == (409, "Conflict")
    assert status.message == 'Apply failed with 1 conflict: conflict with "other" using apps/v1: .spec.replicas'
    assert status.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "other" using apps/v1',
                "field": ".spec.replicas",
            }
        ]
    }


def test_several_conflicts_are_listed_by_manager():
    live = updated(None, deployment(replicas=2, minReadySeconds=1, **template({"name": "a", "image": "i"})))
    live = applied(live, deployment(**template({"name": "a", "tty": True})), "z")

    status = refusal(
        lambda: applied(
            live, deployment(replicas=3, minReadySeconds=2, **template({"name": "a", "image": "j", "tty": False}))
        )
    )

    assert status.message == (
        'Apply failed with 4 conflicts: conflicts with "other" using apps/v1:\n'
        "- .spec.minReadySeconds\n"
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="a"].image\n'
        'conflicts with "z":\n'
        '- .spec.template.spec.containers[name="a"].tty'
    )


def test_applying_the_same_value_is_no_conflict_and_shares_ownership():
    live = updated(None, deployment(replicas=2))

    entries = applied(live, deployment(replicas=2))["metadata"]["managedFields"]

    assert [(entry["manager"], entry["fieldsV1"]["f:spec"]["f:replicas"]) for entry in entries] == [
        ("me", {}),
        ("other", {}),
    ]


def test_force_takes_over():
    live = updated(None, deployment(replicas=2, paused=True))

    obj = applied(live, deployment(replicas=3), force=True)

    assert obj["spec"]["replicas"] == 3
    assert [entry["fieldsV1"]["f:spec"] for entry in obj["metadata"]["managedFields"]] == [
        {"f:replicas": {}},
        {"f:paused": {}},
    ]


def test_applying_the_same_again_changes_nothing():
    live = applied(None, deployment(replicas=2, **template({"name": "a"})))

    assert applied(live, deployment(replicas=2, **template({"name": "a"})), now=NOON + timedelta(hours=1)) == live


def test_lists_keep_what_others_put_there_where_it_was():
    live = updated(None, deployment(**template({"name": "a"}, {"name": "x"}, {"name": "b"}, {"name": "y"})))

    obj = applied(live, deployment(**template({"name": "n"}, {"name": "b"}, {"name": "a"})), force=True)

    assert names(obj) == ["x", "n", "b", "y", "a"]


def test_untracked_object_gets_before_first_apply_as_owner():
    live, _ = api_types.read(api_resources.DEPLOYMENTS, deployment(replicas=2))

    status = refusal(lambda: applied(live, deployment(replicas=3)))

    assert (
        status.message
        == 'Apply failed with 1 conflict: conflict with "before-first-apply" using apps/v1: .spec.replicas'
    )


def test_status_is_applied_to_the_status_only():
    live = applied(None, deployment(replicas=2))

    obj = applied(
        live, {**deployment(replicas=3), "status": {"replicas": 1}}, "controller", subresource="status", force=True
    )

    entry = next(record for record in obj["metadata"]["managedFields"] if record["manager"] == "controller")
    assert entry["fieldsV1"] == {"f:status": {"f:replicas": {}}}
    assert entry["subresource"] == "status"


@cases(
    "obj, message",
    (
        "an unknown field",
        deployment(foo=1),
        "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): .spec.foo: field not declared "
        "in schema",
    ),
    (
        "a text for a number",
        deployment(replicas="3"),
        "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): "
        ".spec.replicas: expected numeric (int or float), got string",
    ),
    (
        "two problems",
        deployment(paused="yes", **template({"name": "a"}, {"name": "a"})),
        "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): errors:\n"
        '  .spec.paused: expected boolean, got &value.valueUnstructured{Value:"yes"}\n'
        '  .spec.template.spec.containers: duplicate entries for key [name="a"]',
    ),
    (
        "an item without its key",
        deployment(**template({"image": "a"})),
        "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): "
        ".spec.template.spec.containers: "
        'element 0: associative list with keys has an element that omits key field "name" (and doesn\'t have '
        "default value)",
    ),
    (
        "a list for a map",
        deployment(**template(nodeSelector=["a", True])),
        "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): "
        ".spec.template.spec.nodeSelector: expected map, got &{[a true]}",
    ),
    (
        "no quantity",
        deployment(**template({"name": "a", "resources": {"requests": {"cpu": "lots"}}})),
        "failed to convert new typed object (default/d; apps/v1, Kind=Deployment) to object: "
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
)
def test_object_that_does_not_fit_its_schema_is_refused(obj, message):
    status = refusal(lambda: applied(None, obj))

    assert (status.code, status.message) == (500, message)


@cases(
    "obj, message",
    ("another kind", {**deployment(), "kind": "Pod"}, "invalid object type: apps/v1, Kind=Pod"),
    ("another version", {**deployment(), "apiVersion": "v1"}, "invalid object type: /v1, Kind=Deployment"),
    ("managed fields", {**deployment(), "metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
)
def test_object_of_another_kind_or_version_is_refused(obj, message):
    status = refusal(lambda: applied(None, obj))

    assert (status.code, status.message) == (400, message)


def client_side(obj):
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": orjson.dumps(obj).decode() + "\n"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotation}}


def test_kubectl_takes_over_what_it_applied_from_the_client():
    live = updated(None, client_side(deployment(replicas=2)), "kubectl-client-side-apply")

    obj = applied(live, deployment(replicas=3), "kubectl")

    assert obj["spec"]["replicas"] == 3
    annotation = obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert orjson.loads(annotation) == deployment(replicas=3)


def test_kubectl_does_not_take_over_what_was_changed_since():
    live = updated(None, client_side(deployment(replicas=2)), "kubectl-client-side-apply")
    live = updated(live, {**live, "spec": {**live["spec"], "replicas": 7}}, "autoscaler")

    status = refusal(lambda: applied(live, deployment(replicas=3), "kubectl"))

    assert status.message == 'Apply failed with 1 conflict: conflict with "autoscaler" using apps/v1: .spec.replicas'


NAMES = st.sampled_from(("a", "b", "c"))
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES, "args": st.lists(NAMES, min_size=1, max_size=2)}),
    max_size=3,
    unique_by=lambda container: container["name"],
)


@st.composite
def views(draw):
    """What somebody may say of a deployment."""
    labels, finalizers = draw(st.dictionaries(NAMES, NAMES)), draw(st.lists(NAMES, unique=True))
    spec = draw(
        st.fixed_dictionaries({}, optional={"replicas": st.integers(0, 3), "minReadySeconds": st.integers(1, 3)})
    )
    containers = draw(CONTAINERS)
    obj = deployment(**spec, **(template(*containers) if containers else {}))
    obj["metadata"] |= {"labels": labels} if labels else {}
    obj["metadata"] |= {"finalizers": finalizers} if finalizers else {}
    return obj


@given(views(), views(), views())
def test_last_applied_values_hold_and_may_be_applied_again(mine, theirs, mine_now):
    live = applied(applied(None, mine), theirs, "other", force=True)

    obj = applied(live, mine_now, force=True)

    comparison = typed_values.compare(api_types.type_of(api_resources.DEPLOYMENTS), mine_now, obj)
    assert not comparison.removed
    assert not comparison.modified
    assert applied(obj, mine_now) == obj


@given(views(), views(), views())
def test_manager_that_stops_applying_removes_only_its_own_fields(mine, theirs, mine_now):
    alone = applied(applied(None, theirs, "other"), mine_now, force=True)
    live = applied(applied(applied(None, mine), theirs, "other", force=True), mine_now, force=True)

    assert _without_order(live) == _without_order(alone)


def _without_order(obj):
    """Who came first may decide what stands first, and when it was."""
    spec, metadata = obj["spec"], obj["metadata"]
    containers = {container["name"]: container for container in spec["template"]["spec"]["containers"] or ()}
    entries = {entry["manager"]: entry["fieldsV1"] for entry in metadata.get("managedFields", ())}
    rest = {name: value for name, value in spec.items() if name != "template"}
    return rest, containers, metadata.get("labels"), set(metadata.get("finalizers", ())), entries


def test_the_last_to_stop_applying_leaves_nothing():
    view = deployment(replicas=2, **template({"name": "a", "image": "i"}))
    view["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["x/y"]}
    live = applied(None, view)

    obj = applied(live, deployment())

    assert obj == applied(None, deployment())
