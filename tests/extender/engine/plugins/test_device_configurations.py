"""The configuration that drivers get for the devices they prepare."""

from typing import Any

from extender.engine.plugins.dynamic_resources.allocated_state import allocated_state_of
from extender.engine.plugins.dynamic_resources.allocation import Allocator
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches
from extender.testing import make_node
from extender.values.objects.decoding import convert
from extender.values.objects.devices import DeviceClass, ResourceClaim
from tests.kit.devices import Manifest, exactly, first_of, make_claim, make_slice
from tests.kit.tables import cases


def opaque(mode: str) -> Manifest:
    """A configuration that only the driver understands."""
    return {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": mode}}}


def device_class(name: str, *modes: str) -> DeviceClass:
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"config": [opaque(mode) for mode in modes]}})


def claim(*requests: Manifest, config: list[Manifest]) -> ResourceClaim:
    uid = make_claim("c", *requests).metadata.uid
    spec = {"devices": {"requests": list(requests), "config": config}}
    return convert(ResourceClaim, {"metadata": {"name": "c", "namespace": "default", "uid": uid}, "spec": spec})


def configurations(configured_claim: ResourceClaim) -> list[tuple[str, list[str], Any]]:
    """(source, requests, mode) of each configuration in the claim's allocation."""
    slices = Slices([make_slice("gpu-1", "gpu-2", "gpu-3")])
    classes = {"plain": device_class("plain"), "fast": device_class("fast", "turbo", "loud")}
    allocations = (
        Allocator([configured_claim], classes, slices, allocated_state_of([]), Matches())
        .allocate(make_node("n").obj(), Allowance())
        .allocations
    )
    return [
        (one.source, one.requests, one.opaque.parameters["mode"]) for one in allocations[0].devices.config if one.opaque
    ]


PLAIN, FAST = exactly(1, "plain", "plain"), exactly(1, "fast", "fast")
ALTERNATIVES = first_of(exactly(9, "many", "fast"), exactly(1, "one", "fast"), name="some")


@cases(
    "requests, config, expected",
    ("nothing to say", [PLAIN], [], []),
    ("all of a class's, for all requests", [FAST], [], [("FromClass", [], "turbo"), ("FromClass", [], "loud")]),
    (
        "a class's once, for its requests",
        [FAST, PLAIN, exactly(1, "too", "fast")],
        [],
        [("FromClass", ["fast", "too"], "turbo"), ("FromClass", ["fast", "too"], "loud")],
    ),
    ("the claim's for all requests", [PLAIN], [opaque("quiet")], [("FromClaim", [], "quiet")]),
    (
        "the claim's for one request",
        [PLAIN, exactly(1, "other", "plain")],
        [{"requests": ["other"], **opaque("quiet")}],
        [("FromClaim", ["other"], "quiet")],
    ),
    (
        "one request that is all there are",
        [PLAIN],
        [{"requests": ["plain"], **opaque("quiet")}],
        [("FromClaim", [], "quiet")],
    ),
    (
        "only of the alternative that was taken",
        [ALTERNATIVES],
        [{"requests": ["some/one"], **opaque("small")}, {"requests": ["some/many"], **opaque("large")}],
        [("FromClass", [], "turbo"), ("FromClass", [], "loud"), ("FromClaim", [], "small")],
    ),
)
def test_configurations(requests: list[Manifest], config: list[Manifest], expected: list[Any]) -> None:
    assert configurations(claim(*requests, config=config)) == expected
