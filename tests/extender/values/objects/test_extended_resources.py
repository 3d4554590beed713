"""Which device class backs an extended resource, and which of its requests a pod gets devices for."""

from collections.abc import Mapping

from extender.testing import PodBuilder, make_pod
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import convert
from extender.values.objects.devices import DeviceClass
from extender.values.objects.extended_resources import device_class_of, extended_resources_of
from tests.kit.tables import cases

GPU = "example.com/gpu"
MORNING, EVENING = "2026-01-01T08:00:00Z", "2026-01-01T20:00:00Z"


def class_of(name: str, resource: str | None = None, created: str | None = None) -> DeviceClass:
    return convert(
        DeviceClass,
        {"metadata": {"name": name, "creationTimestamp": created}, "spec": {"extendedResourceName": resource}},
    )


@cases(
    "classes, resource, backing",
    ("the class names it", [class_of("gpu", GPU)], GPU, "gpu"),
    ("it is named after the class", [class_of("gpu")], "deviceclass.resource.kubernetes.io/gpu", "gpu"),
    ("both at once", [class_of("gpu", GPU)], "deviceclass.resource.kubernetes.io/gpu", "gpu"),
    ("no class names it", [class_of("gpu", GPU)], "example.com/nic", None),
    ("a class that names none", [class_of("gpu")], GPU, None),
    ("the newest class", [class_of("old", GPU, MORNING), class_of("new", GPU, EVENING)], GPU, "new"),
    ("equally new: by the alphabet", [class_of("b", GPU, MORNING), class_of("a", GPU, MORNING)], GPU, "a"),
    ("a dated class before one without a date", [class_of("undated", GPU), class_of("old", GPU, MORNING)], GPU, "old"),
)
def test_a_device_class_backs_an_extended_resource(
    classes: list[DeviceClass], resource: str, backing: str | None
) -> None:
    objects = ClusterObjects()
    for device_class in classes:
        objects.changed(None, device_class)

    backing_class = device_class_of(resource, objects.device_classes)

    assert (None if backing_class is None else backing_class.name) == backing


def test_when_the_newest_class_goes_the_next_one_backs_the_resource() -> None:
    """In upstream's 1.36, no class does until one of the others is written again; fixed in a later release."""
    objects = ClusterObjects()
    old, new = class_of("old", GPU, MORNING), class_of("new", GPU, EVENING)
    objects.changed(None, old)
    objects.changed(None, new)

    objects.changed(new, None)

    assert device_class_of(GPU, objects.device_classes) is old


def test_a_class_that_names_another_resource_no_longer_backs_the_former_one() -> None:
    objects = ClusterObjects()
    old, new = class_of("gpu", GPU), class_of("gpu", "example.com/nic")
    objects.changed(None, old)

    objects.changed(old, new)

    assert device_class_of(GPU, objects.device_classes) is None
    assert device_class_of("example.com/nic", objects.device_classes) is new


@cases(
    "pod, requested",
    ("native resources are not extended", {GPU: 1, "cpu": 1}, {GPU}),
    ("zero", {GPU: 0}, set()),
    ("huge pages", {"hugepages-2Mi": "2Mi"}, set()),
    ("both", {"deviceclass.resource.kubernetes.io/gpu": 1, GPU: 1}, {"deviceclass.resource.kubernetes.io/gpu", GPU}),
    ("in the domain of Kubernetes", {"another.kubernetes.io/thing": 1}, set()),
)
def test_requests_for_extended_resources(pod: Mapping[str, int | str], requested: set[str]) -> None:
    assert set(extended_resources_of(make_pod().req(pod).obj())) == requested


@cases(
    "pod",
    ("of an init container", make_pod().init_req({GPU: 1})),
    ("of a sidecar", make_pod().sidecar_req({GPU: 1})),
    ("of the overhead", make_pod().overhead({GPU: 1})),
)
def test_requests_count_wherever_they_are(pod: PodBuilder) -> None:
    assert extended_resources_of(pod.obj()) == (GPU,)
