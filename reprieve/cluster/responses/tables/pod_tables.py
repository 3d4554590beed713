"""Tables of pods: how many containers are ready, and the state of the pod in one word.

Upstream: pkg/printers/internalversion/printers.go, printPod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from extender.rules.api_resources import Object
from reprieve.cluster.responses.tables import (
    AGE,
    NAME,
    NONE,
    Ages,
    Column,
    Layout,
    is_going,
    name_of,
    spec_of,
    status_of,
    wide,
)

_FINISHED: Final = ("Succeeded", "Failed")
_NODE_LOST: Final = "NodeLost"


@final
@dataclass(slots=True)
class _Tally:
    """The sums over the containers of a pod."""

    reason: str
    restarts: int = 0
    last_restart: str | None = None
    ready: int = 0

    def count_restarts(self, container: Object) -> None:
        self.restarts += container.get("restartCount") or 0
        finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if finished and (
            self.last_restart is None or datetime.fromisoformat(finished) > datetime.fromisoformat(self.last_restart)
        ):
            self.last_restart = finished


def _cells(pod: Object, ages: Ages) -> list[Any]:
    spec, status = spec_of(pod), status_of(pod)
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    tally = _tally(spec, status, sidecars)
    reason = tally.reason
    if is_going(pod):
        if status.get("reason") == _NODE_LOST:
            reason = "Unknown"
        elif status.get("phase") not in _FINISHED:
            reason = "Terminating"
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({ages.since(tally.last_restart)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    addresses = [address.get("ip") for address in status.get("podIPs") or ()]
    return [
        name_of(pod),
        f"{tally.ready}/{total}",
        reason,
        restarts,
        ages.of(pod),
        (addresses[0] if addresses else None) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, _conditions(status)),
    ]


def _tally(spec: Object, status: Object, sidecars: set[str]) -> _Tally:
    conditions = _conditions(status)
    reason = status.get("reason") or status.get("phase", "")
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    starting, running = _Tally(reason), _Tally(reason)
    waits_for_init = _count_init_containers(spec, status, sidecars, starting, running)
    if waits_for_init and not _is_true(conditions, "Initialized"):
        starting.ready = running.ready
        return starting
    running.reason = starting.reason
    _count_containers(status, conditions, running)
    return running


def _count_init_containers(spec: Object, status: Object, sidecars: set[str], starting: _Tally, running: _Tally) -> bool:
    """Counts up to the first unfinished container, and returns whether there is one. `running` counts the sidecars."""
    for place, container in enumerate(status.get("initContainerStatuses") or ()):
        is_sidecar = container.get("name") in sidecars
        starting.count_restarts(container)
        if is_sidecar:
            running.count_restarts(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            running.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            starting.reason = f"Init:{_end(terminated)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            starting.reason = f"Init:{waiting['reason']}"
        else:
            starting.reason = f"Init:{place}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _count_containers(status: Object, conditions: Mapping[str, Object], tally: _Tally) -> None:
    """Counts the containers; the first one with a reason determines the pod's."""
    is_any_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        tally.count_restarts(container)
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            tally.reason = waiting["reason"]
        elif terminated is not None:
            tally.reason = _end(terminated)
        elif container.get("ready") and state.get("running") is not None:
            is_any_running = True
            tally.ready += 1
    if tally.reason == "Completed" and is_any_running:
        # Some containers have completed, others still run.
        tally.reason = "Running" if _is_true(conditions, "Ready") else "NotReady"


def _end(terminated: Object) -> str:
    reason: str = terminated.get("reason") or ""
    if reason:
        return reason
    return (
        f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode') or 0}"
    )


def _conditions(status: Object) -> dict[str, Object]:
    return {condition.get("type", ""): condition for condition in status.get("conditions") or ()}


def _is_true(conditions: Mapping[str, Object], name: str) -> bool:
    return (conditions.get(name) or {}).get("status") == "True"


def _readiness_gates(spec: Object, conditions: Mapping[str, Object]) -> str:
    gates = spec.get("readinessGates") or ()
    return f"{sum(_is_true(conditions, gate['conditionType']) for gate in gates)}/{len(gates)}" if gates else NONE


def _row_conditions(pod: Object) -> Sequence[Object]:
    phase = status_of(pod).get("phase")
    if phase not in _FINISHED:
        return ()
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


LAYOUTS: Final = {
    "Pod": Layout(
        NAME,
        Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "The aggregate status of the containers in this pod."),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last container in "
            "this pod has restarted.",
        ),
        AGE,
        wide("IP", "The address of the pod."),
        wide("Node", "The node on which the pod is scheduled."),
        wide("Nominated Node", "The node on which room is being made for the pod."),
        wide("Readiness Gates", "How many of the conditions that the pod's readiness waits for are true."),
        row=_cells,
        conditions=_row_conditions,
    ),
}
