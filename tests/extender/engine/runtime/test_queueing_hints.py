"""What the plugins of a profile tell the queue."""

from collections.abc import Sequence

from extender.engine import framework as fwk
from extender.engine.framework.events import always_queue
from extender.engine.runtime.queueing_hints import EXTENDER, gating_plugin, queueing_hint_map, registrations
from extender.testing import make_framework, make_pod
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

ADD, LABEL, TAINT = fwk.ActionType.ADD, fwk.ActionType.UPDATE_NODE_LABEL, fwk.ActionType.UPDATE_NODE_TAINT
NODE, POD = fwk.EventResource.NODE, fwk.EventResource.POD


class Chatty(fwk.FilterPlugin):
    """Does not say what it wants to hear."""

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.accept(len(rows))


class OneByOne(fwk.EachNodeFilterPlugin):
    """Wants to hear of new nodes."""

    def filter(self, state: fwk.CycleState, pod: Pod, node: fwk.NodeInfo) -> fwk.Status:
        return fwk.SUCCESS

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [fwk.on(NODE, ADD)]


class Scores(fwk.PreScorePlugin):
    """Refuses nobody."""

    def pre_score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Status:
        return fwk.SUCCESS


class MakesRoom(fwk.PostFilterPlugin):
    """Refuses nobody either, and says nothing."""

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        return fwk.PostFilterResult(fwk.unschedulable())


class Gate(fwk.PreEnqueuePlugin):
    """Holds back pods with its name among their labels; breaks at others."""

    calls: list[str]

    def __init__(self, name: str, calls: list[str]) -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]
        self.calls = calls

    def pre_enqueue(self, pod: Pod) -> fwk.Status:
        self.calls.append(self.name)
        match pod.labels.get(self.name):
            case "breaks":
                raise RuntimeError("broken")
            case "closed":
                return fwk.unresolvable("closed")
            case _:
                return fwk.SUCCESS


def test_plugins_that_can_refuse_a_pod_are_asked_what_they_want_to_hear() -> None:
    plugins = make_framework(Chatty, OneByOne, Scores, MakesRoom).plugins

    assert registrations(plugins) == {"Chatty": fwk.ALL_EVENTS, "OneByOne": [fwk.on(NODE, ADD)]}


def test_extenders_cannot_say_and_hear_of_everything() -> None:
    assert registrations(make_framework().plugins, has_extenders=True) == {EXTENDER: fwk.ALL_EVENTS}


@cases(
    "action, hears_of_taints",
    ("new nodes: taints, too", ADD, True),
    ("and labels: taints, too", ADD | LABEL, True),
    ("and taints: no more than that", ADD | TAINT, False),
    ("labels alone", LABEL, False),
)
def test_registering_for_new_nodes_registers_for_their_taints(action: fwk.ActionType, hears_of_taints: bool) -> None:
    """A new node often has taints that it loses when it is ready."""
    table = queueing_hint_map({"P": [fwk.on(NODE, action, lambda pod, old, new: fwk.QueueingHint.QUEUE_SKIP)]})

    extra = table.get(fwk.ClusterEvent(NODE, TAINT), ())
    assert [hint.hint for hint in extra] == ([always_queue] if hears_of_taints else [])


def test_plugins_share_events() -> None:
    table = queueing_hint_map({"P": [fwk.on(POD, ADD)], "Q": [fwk.on(POD, ADD)]})

    assert {event.label: [hint.plugin_name for hint in hints] for event, hints in table.items()} == {
        "PodAdd": ["P", "Q"]
    }


@cases(
    "labels, gated_by, answer, order",
    ("no gate closed", {}, "", "", "abc"),
    ("the first closed gate", {"b": "closed", "c": "closed"}, "", "b", "ab"),
    ("the one that gated it so far, first of all", {"b": "closed", "c": "closed"}, "c", "c", "c"),
    ("the remembered gate opens: then the others", {}, "c", "", "cab"),
    ("a raising gate holds it back", {"a": "breaks"}, "", "a", "a"),
)
def test_first_gate_that_holds_the_pod_back_is_reported(
    labels: dict[str, str], gated_by: str, answer: str, order: str
) -> None:
    calls: list[str] = []

    gate = gating_plugin([Gate(name, calls) for name in "abc"], make_pod().label(labels).obj(), gated_by)

    assert (gate, "".join(calls)) == (answer, order)
