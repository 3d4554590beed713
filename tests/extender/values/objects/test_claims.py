import msgspec
import pytest

from extender.testing import make_pod
from extender.values.objects.claims import (
    BOUND_BY_CONTROLLER_ANNOTATION,
    STORAGE_CLASS_ANNOTATION,
    bound_to,
    claim_class,
    claim_name,
    has_access_of,
    is_bound_to,
    is_fully_bound,
    requested_storage,
    storage_capacity,
    volume_group,
    why_not_owned,
)
from extender.values.objects.pod import Volume
from extender.values.objects.quantity import QuantityError
from extender.values.objects.storage import ObjectReference, PersistentVolumeClaim
from tests.kit.storage import ephemeral, make_claim, make_volume
from tests.kit.tables import cases


def annotated(claim: PersistentVolumeClaim, **annotations: str) -> PersistentVolumeClaim:
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))


def test_the_claim_of_a_volume() -> None:
    pod = make_pod("web").claim("data").volume(ephemeral("scratch")).volume(Volume(name="cfg")).obj()

    assert [claim_name(pod, volume) for volume in pod.spec.volumes] == ["data", "web-scratch", None]


@cases(
    "claim, name",
    ("as it says", make_claim("c", storage_class="fast"), "fast"),
    ("none", make_claim("c", storage_class=None), ""),
    ("as it once said", annotated(make_claim("c", storage_class="fast"), **{STORAGE_CLASS_ANNOTATION: "old"}), "old"),
    ("even if that was none", annotated(make_claim("c", storage_class="fast"), **{STORAGE_CLASS_ANNOTATION: ""}), ""),
)
def test_the_class_of_a_claim(claim: PersistentVolumeClaim, name: str) -> None:
    assert claim_class(claim) == name


@cases(
    "claim, bound",
    ("by both sides", make_claim("c", volume="pv"), True),
    ("not yet by the controller", annotated(make_claim("c", volume="pv")), False),
    ("to nothing", make_claim("c"), False),
)
def test_fully_bound(claim: PersistentVolumeClaim, bound: bool) -> None:
    assert is_fully_bound(claim) == bound


@cases(
    "reference, bound",
    ("free", None, False),
    ("this very claim", ObjectReference(namespace="default", name="c", uid="uid-c"), True),
    ("by name alone, before it existed", ObjectReference(namespace="default", name="c"), True),
    ("an earlier claim of that name", ObjectReference(namespace="default", name="c", uid="of-old"), False),
    ("in another namespace", ObjectReference(namespace="other", name="c", uid="uid-c"), False),
)
def test_volumes_that_are_meant_for_a_claim(reference: ObjectReference | None, bound: bool) -> None:
    volume = make_volume("pv")
    volume = msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=reference))

    assert is_bound_to(volume, make_claim("c")) == bound


def test_binding_a_free_volume() -> None:
    bound = bound_to(make_volume("pv"), make_claim("c", version="5"))

    assert bound.spec.claim_ref == ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace="default", name="c", uid="uid-c", resource_version="5"
    )
    assert bound.metadata.annotations == {BOUND_BY_CONTROLLER_ANNOTATION: "yes"}


def test_binding_a_volume_that_a_user_meant_for_the_claim() -> None:
    """It gets the claim's UID, and the controller takes no credit."""
    volume = make_volume("pv")
    volume = msgspec.structs.replace(
        volume, spec=msgspec.structs.replace(volume.spec, claim_ref=ObjectReference(namespace="default", name="c"))
    )

    bound = bound_to(volume, make_claim("c"))

    assert bound.spec.claim_ref is not None
    assert bound.spec.claim_ref.uid == "uid-c"
    assert bound.metadata.annotations == {}


def test_binding_what_is_bound_changes_nothing() -> None:
    volume = make_volume("pv", claim="c")

    assert bound_to(volume, make_claim("c")) is volume


def test_volumes_are_grouped_by_class_and_claim() -> None:
    assert volume_group(make_volume("pv")) == ("std", None)
    assert volume_group(make_volume("pv", claim="c")) == ("std", ("default", "c"))


@pytest.mark.parametrize(
    ("modes", "offered", "fits"), [(["RWO"], ["RWO", "ROX"], True), (["RWO", "ROX"], ["RWO"], False), ([], [], True)]
)
def test_access(modes: list[str], offered: list[str], fits: bool) -> None:
    """All that a claim asks for."""
    claim, volume = make_claim("c"), make_volume("pv")
    claim = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, access_modes=modes))
    volume = msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, access_modes=offered))

    assert has_access_of(volume, claim) == fits


def test_sizes() -> None:
    assert requested_storage(make_claim("c", size="")) is None
    assert storage_capacity(make_volume("pv", size="1Gi")).value() == 2**30


def test_invalid_sizes_are_reported_with_their_field() -> None:
    with pytest.raises(
        QuantityError, match=r'persistentvolumeclaim "c": spec.resources.requests.storage: quantities must match'
    ):
        requested_storage(make_claim("c", size="much"))
    with pytest.raises(QuantityError, match=r'persistentvolume "pv": spec.capacity.storage: quantities must match'):
        storage_capacity(make_volume("pv", size="much"))


def test_owners_of_ephemeral_claims() -> None:
    """By UID: a pod of the same name that came later is another one."""
    pod = make_pod("web").uid("1").obj()
    claim = make_claim("web-scratch", owner=pod)

    assert why_not_owned(claim, "web", "1") is None
    reason = why_not_owned(claim, "web", "2")
    assert reason == "PVC default/web-scratch was not created for pod default/web (pod is not owner)"
    assert why_not_owned(make_claim("web-scratch"), "web", "1") is not None
