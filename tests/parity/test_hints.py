"""The hint of each plugin, for one pod and one change, says what upstream's says."""

from typing import Any

from extender.engine import framework as fwk
from extender.engine.framework.events import always_queue
from extender.engine.plugins import IN_TREE
from extender.testing import make_cache, make_framework
from extender.values.objects.decoding import convert
from extender.values.objects.devices import DeviceClass, ResourceClaim
from extender.values.objects.grouping import ReplicaSet, Service
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.many_cases import each_case
from tests.parity.cases import KNOWN, component_cases
from tests.parity.recorded_events import event_of, object_of

WORLD: dict[str, type[HasMetadata]] = {
    "resourceClaims": ResourceClaim,
    "deviceClasses": DeviceClass,
    "services": Service,
    "replicaSets": ReplicaSet,
}


@each_case(lambda: component_cases("hints"))
def test_hints(case: dict[str, Any]) -> None:
    """The same pod and the same change get the same hint, or the same error; those without a hint function are always
    worth a try. Where kube-scheduler is known to have a fault, the hint is another one.
    """
    record = case["input"]
    objects = [convert(kind, obj) for name, kind in WORLD.items() for obj in record["world"].get(name) or ()]
    handle = make_framework(live=make_cache(objects=objects))
    plugin = IN_TREE[record["plugin"]](None, handle)
    registered, event = event_of(record["registered"]), event_of(record["event"])
    (hint,) = [registration.hint for registration in plugin.events_to_register() if registration.event == registered]
    old, new = object_of(event, record["old"]), object_of(event, record["new"])

    answer: dict[str, Any] = {}
    try:
        answer["hint"] = (hint or always_queue)(convert(Pod, record["pod"]), old, new).value
    except ValueError as exc:
        answer |= {"hint": case["expect"]["hint"], "error": str(exc)}

    assert registered.matches(event)
    outcome = answer | ({"noHintFn": True} if hint is None else {})
    if case["id"] in KNOWN:
        assert outcome != case["expect"]
    else:
        assert outcome == case["expect"]
    assert isinstance(plugin, fwk.Plugin)
