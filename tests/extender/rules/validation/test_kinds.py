"""What may change about kinds other than pods, and what is judged of each kind."""

import copy

from extender.rules import validation
from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, RESOURCE_CLAIMS, RESOURCES
from tests.kit.tables import cases
from tests.reprieve.cluster import made_objects

NFS = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nfs": {"server": "s", "path": "/"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def stored(resource, name="x", **fields):
    metadata = {"name": name, "resourceVersion": "1"} | ({"namespace": "default"} if resource.namespaced else {})
    return made_objects.made(resource, {"metadata": metadata, **fields})


def errors_of(resource, name="x", **fields):
    return list(map(str, validation.validate_create(resource, stored(resource, name, **fields))))


def errors_of_change(resource, before, after):
    return list(map(str, validation.validate_update(resource, stored(resource, **after), stored(resource, **before))))


def test_the_volume_of_an_unbound_claim_may_be_named():
    assert errors_of_change(PERSISTENT_VOLUME_CLAIMS, {"spec": CLAIM}, {"spec": {**CLAIM, "volumeName": "v"}}) == []


def test_a_bound_claim_may_grow():
    old, new = stored(PERSISTENT_VOLUME_CLAIMS, spec=CLAIM), stored(PERSISTENT_VOLUME_CLAIMS, spec=CLAIM)
    for claim in (old, new):
        claim["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    new["spec"]["resources"]["requests"]["storage"] = "2Gi"

    assert validation.validate_update(PERSISTENT_VOLUME_CLAIMS, new, old) == []


def test_a_claim_may_be_allocated():
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}
    old = stored(RESOURCE_CLAIMS, spec={"devices": devices})
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    allocated = copy.deepcopy(old) | {"status": {"allocation": {"devices": {"results": [result]}}}}

    assert validation.validate_update(RESOURCE_CLAIMS, allocated, old, "status") == []


def test_every_stored_kind_is_judged():
    """A name that no kind allows is refused by all of them but core/v1's events, as upstream."""
    lenient = {
        (resource.group, resource.kind)
        for resource in RESOURCES
        if resource.is_stored and not any(error.startswith("metadata.name") for error in errors_of(resource, "%"))
    }

    assert lenient == {("", "Event")}


def near(key, zone="a"):
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}]
    return {"spec": {**NFS, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


@cases(
    "after, is_refused",
    ("as it was", near("failure-domain.beta.kubernetes.io/zone"), False),
    ("the name of today", near("topology.kubernetes.io/zone"), False),
    ("the name of something else", near("topology.kubernetes.io/region"), True),
    ("the name of today, and another zone", near("topology.kubernetes.io/zone", "b"), True),
    ("nothing any more", {"spec": NFS}, True),
)
def test_node_affinity_of_a_volume_may_change_only_to_current_label_names(after, is_refused):
    errors = errors_of_change(PERSISTENT_VOLUMES, near("failure-domain.beta.kubernetes.io/zone"), after)

    assert any("nodeAffinity" in error and "field is immutable" in error for error in errors) is is_refused
    assert len(errors) == is_refused
