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
from tests.each_case import each_case
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
    given = case["input"]
    objects = [convert(kind, written) for name, kind in WORLD.items() for written in given["world"].get(name) or ()]
    handle = make_framework(live=make_cache(objects=objects))
    plugin = IN_TREE[given["plugin"]](None, handle)
    registered, event = event_of(given["registered"]), event_of(given["event"])
    (hint,) = [each.hint for each in plugin.events_to_register() if each.event == registered]
    old, new = object_of(event, given["old"]), object_of(event, given["new"])

    answer: dict[str, Any] = {}
    try:
        answer["hint"] = (hint or always_queue)(convert(Pod, given["pod"]), old, new).value
    except ValueError as exc:
        answer |= {"hint": case["expect"]["hint"], "error": str(exc)}

    assert registered.matches(event)
    found = answer | ({"noHintFn": True} if hint is None else {})
    if case["id"] in KNOWN:
        assert found != case["expect"]
    else:
        assert found == case["expect"]
    assert isinstance(plugin, fwk.Plugin)
