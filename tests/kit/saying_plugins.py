"""Plugins for stories: each says what the story wants it to say, and registers for the events that the story names."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from extender.engine import framework as fwk
from extender.values.objects.pod import Pod

NO_EVENTS: Sequence[fwk.ClusterEventWithHint] = ()


def gating(
    says: Callable[[Pod], fwk.Status], name: str = "Gate", events: Sequence[fwk.ClusterEventWithHint] = NO_EVENTS
) -> type[fwk.Plugin]:
    class Gate(fwk.PreEnqueuePlugin):
        def pre_enqueue(self, pod: Pod) -> fwk.Status:
            return says(pod)

    return _with_name(Gate, name, events)


def looking_first(
    says: Callable[[Pod], fwk.Status],
    name: str = "LookingFirst",
    events: Sequence[fwk.ClusterEventWithHint] = NO_EVENTS,
) -> type[fwk.Plugin]:
    """Is asked once an attempt, which cannot be said of a Filter."""

    class LookingFirst(fwk.PreFilterPlugin):
        def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
            return fwk.PreFilterResult(says(pod))

    return _with_name(LookingFirst, name, events)


def filtering(
    says: Callable[[Pod, fwk.NodeInfo], fwk.Status],
    name: str = "Filtering",
    events: Sequence[fwk.ClusterEventWithHint] = NO_EVENTS,
) -> type[fwk.Plugin]:
    class Filtering(fwk.EachNodeFilterPlugin):
        def filter(self, state: fwk.CycleState, pod: Pod, node: fwk.NodeInfo) -> fwk.Status:
            return says(pod, node)

    return _with_name(Filtering, name, events)


def scoring_nodes(scores: Mapping[str, int], name: str = "Scoring") -> type[fwk.Plugin]:
    """So many points for these nodes, none for others."""

    class Scoring(fwk.EachNodeScorePlugin):
        def score(self, state: fwk.CycleState, pod: Pod, node: fwk.NodeInfo) -> int:
            return scores.get(node.name, 0)

    return _with_name(Scoring, name)


def reserving(
    says: Callable[[Pod], fwk.Status],
    unreserved: Callable[[Pod], None] = lambda pod: None,
    name: str = "Reserving",
    events: Sequence[fwk.ClusterEventWithHint] = NO_EVENTS,
) -> type[fwk.Plugin]:
    class Reserving(fwk.ReservePlugin):
        def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            return says(pod)

        def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
            unreserved(pod)

    return _with_name(Reserving, name, events)


def permitting(
    says: Callable[[Pod, fwk.Handle], tuple[fwk.Status, float]],
    name: str = "Permitting",
    events: Sequence[fwk.ClusterEventWithHint] = NO_EVENTS,
) -> type[fwk.Plugin]:
    class Permitting(fwk.PermitPlugin):
        def permit(self, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, float]:
            return says(pod, self.handle)

    return _with_name(Permitting, name, events)


def holding(name: str, seconds: float = 600.0, held_by: str = "Permitting") -> type[fwk.Plugin]:
    return permitting(lambda pod, _: (WAIT, seconds) if pod.name == name else (fwk.SUCCESS, 0), held_by)


def pre_binding(
    says: Callable[[Pod], Awaitable[fwk.Status]],
    name: str = "PreBinding",
    *,
    concerns: Callable[[Pod], bool] = lambda pod: True,
    before: fwk.Status = fwk.SUCCESS,
) -> type[fwk.Plugin]:
    """Arguments: what it says in PreBind, and what before that of the pods that concern it."""

    class PreBinding(fwk.PreBindPlugin):
        def pre_bind_pre_flight(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.PreFlight:
            return fwk.PreFlight(before if concerns(pod) else fwk.SKIP)

        async def pre_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            return await says(pod)

    return _with_name(PreBinding, name)


def binding(says: Callable[[Pod, str, fwk.Handle], Awaitable[fwk.Status]], name: str = "Binding") -> type[fwk.Plugin]:
    class Binding(fwk.BindPlugin):
        async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            return await says(pod, node, self.handle)

    return _with_name(Binding, name)


def binding_when(may_go_on: Callable[[Pod], Awaitable[object]], name: str = "PatientBinding") -> type[fwk.Plugin]:
    """Binds as ever, once it may. It stands in for DefaultBinder."""

    async def says(pod: Pod, node: str, handle: fwk.Handle) -> fwk.Status:
        await may_go_on(pod)
        assert handle.dispatcher is not None
        try:
            await handle.dispatcher.perform(fwk.BindPod.of(pod, node))
        except fwk.CallError as exc:
            return fwk.error(str(exc))
        return fwk.SUCCESS

    return binding(says, name)


def lending_one(name: str, is_known: Callable[[str], bool]) -> type[fwk.Plugin]:
    """Something that there is one of: the pod of that name has it from Reserve to Unreserve, and meanwhile no other pod
    goes anywhere.

    It would be there for others if that pod went: that is how preemption hopes for it.

    Arguments:
        is_known: whether the pod of this UID takes room on a node.
    """
    lent: list[str] = []

    class Lending(fwk.EachNodeFilterPlugin, fwk.ReservePlugin):
        def filter(self, state: fwk.CycleState, pod: Pod, node: fwk.NodeInfo) -> fwk.Status:
            if not lent or lent == [pod.uid]:
                return fwk.SUCCESS
            would_be_gone = is_known(lent[0]) and all(other_pod.uid != lent[0] for other_pod in node.pods)
            return fwk.SUCCESS if would_be_gone else fwk.unschedulable("it is lent")

        def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            if pod.name == name:
                lent[:] = [pod.uid]
            return fwk.SUCCESS

        def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
            if lent == [pod.uid]:
                lent.clear()

    return _with_name(Lending, "Lending")


def post_binding(says: Callable[[Pod, fwk.CycleState], None], name: str = "PostBinding") -> type[fwk.Plugin]:
    class PostBinding(fwk.PostBindPlugin):
        async def post_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
            says(pod, state)

    return _with_name(PostBinding, name)


WAIT = fwk.Status(fwk.Code.WAIT)


def _with_name(
    plugin: type[fwk.Plugin], name: str, events: Sequence[fwk.ClusterEventWithHint] | None = None
) -> type[fwk.Plugin]:
    """Registers for these events, or for those that any plugin of its kind does."""
    plugin.name = name
    if events is not None:
        plugin.events_to_register = lambda self: events  # type: ignore[method-assign]
    return plugin
