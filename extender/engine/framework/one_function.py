"""Plugins of one function that looks at one node: the decorators `node_filter` and `node_score`.

    @fwk.node_filter
    def licence_aware(pod, node):
        if node.labels.get("example.com/licences") == "down":
            return f"licence server of {node.name} is down"

The decorated name is a plugin class, as an entry point names it.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from extender.engine.framework.cycle_state import CycleState
from extender.engine.framework.events import ALL_EVENTS, ClusterEventWithHint
from extender.engine.framework.interface import EachNodeFilterPlugin, EachNodeScorePlugin
from extender.engine.framework.status import SUCCESS, Status, unschedulable
from extender.engine.snapshot import NodeInfo
from extender.values.objects.pod import Pod

NodeFilterFunction = Callable[[Pod, NodeInfo], Status | str | None]
"""Returns None if the node may have the pod, else why not: a sentence, or a Status such as `fwk.unresolvable("...")`.
"""

NodeScoreFunction = Callable[[Pod, NodeInfo], int]
"""Returns how good the node is, from 0 to 100."""

C = TypeVar("C", bound=type)


def node_filter(
    function: NodeFilterFunction, *, events: Sequence[ClusterEventWithHint] = ALL_EVENTS
) -> type[EachNodeFilterPlugin]:
    """Returns the Filter plugin that asks the function about each node; TypeError if it is not of a pod and a node.

    A sentence refuses the node in a way that removing pods might resolve; `fwk.unresolvable` says that it cannot. Which
    `events` may help the refused pods: see `Plugin.events_to_register`.
    """
    _check(function, "node_filter")

    class OneFunctionFilter(EachNodeFilterPlugin):
        def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
            answer = function(pod, node)
            if isinstance(answer, str):
                return unschedulable(answer)
            if answer is not None and not isinstance(answer, Status):
                raise TypeError(
                    f"{function.__name__} returned {type(answer).__name__}: return None to accept the node, or a "
                    "sentence that says why not"
                )
            return SUCCESS if answer is None else answer

        def events_to_register(self) -> Sequence[ClusterEventWithHint]:
            return events

    return _named(OneFunctionFilter, function)


def node_score(function: NodeScoreFunction) -> type[EachNodeScorePlugin]:
    """Returns the Score plugin that asks the function about each node; TypeError if it is not of a pod and a node."""
    _check(function, "node_score")

    class OneFunctionScore(EachNodeScorePlugin):
        def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            return function(pod, node)

    return _named(OneFunctionScore, function)


def _check(function: Callable[..., Any], decorator: str) -> None:
    name = getattr(function, "__name__", repr(function))
    if not callable(function) or inspect.isclass(function):
        raise TypeError(
            f"@{decorator} is for a function of a pod and a node; {name} is none: derive the class from "
            "fwk.EachNodeFilterPlugin"
        )
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"@{decorator}: nothing waits for an async def: write def {name}")
    parameters = list(inspect.signature(function).parameters.values())
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    if len(needed) != 2 or any(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in needed):
        raise TypeError(
            f"@{decorator}: write `def {name}(pod, node)`; it takes "
            f"{', '.join(parameter.name for parameter in parameters) or 'nothing'}"
        )


def _named(plugin: C, function: Callable[..., Any]) -> C:
    plugin.__name__ = plugin.__qualname__ = plugin.name = function.__name__  # type: ignore[attr-defined]
    plugin.__module__, plugin.__doc__ = function.__module__, function.__doc__
    return plugin
