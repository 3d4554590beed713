"""What would happen if objects were created, nodes were drained or removed, or the configuration were another one."""

import asyncio
import shlex
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Any, Final

import msgspec

from extender.answers.parts import gpu_hours_of
from extender.answers.phrases import all_of, plural
from extender.answers.profiles import stand_in_notes
from extender.answers.trial import Trial
from extender.answers.types import Eviction, EvictionLoop, NodesLike, Placement, QuestionError, WhatIf, WhatIfRequest
from extender.answers.what_if.admission import Admits
from extender.answers.what_if.manifests import apply_manifests
from extender.answers.what_if.pinned_pods import run_on_named_nodes
from extender.answers.what_if.rollout_steps import RunningRollout, run_all
from extender.answers.what_if.simulated_pods import drop_leftover_claims
from extender.answers.what_if.simulation import STEPS, Simulation
from extender.engine.cache.cluster import Cluster
from extender.values import limits
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.near_names import did_you_mean
from extender.values.objects.node import HOSTNAME_LABEL, Node

_WITHDRAWN: Final = {
    "scaled down": "deleted, since fewer are wanted",
    "replaced": "replaced by pods of the new template",
}
"""Why a controller deletes its pods -> in words."""


def what_if(
    cluster: Cluster,
    configuration: Configuration,
    request: WhatIfRequest,
    admits: Admits,
    *,
    for_everybody: bool = False,
    steps: int = STEPS,
) -> WhatIf:
    """Returns what becomes of every pod concerned, equally for equal questions. Raises QuestionError, ConfigErrors."""
    if request.configuration is not None:
        configuration = load(msgspec.json.encode(request.configuration), configuration.feature_gates)
        if len(configuration.profiles) > limits.PROFILES_TRIED:
            raise QuestionError(f"more than {limits.PROFILES_TRIED} profiles cannot be tried at a time")
    would_fit = _pending_that_would_fit(cluster, configuration, request, admits, for_everybody=for_everybody)
    with Trial.of(cluster, configuration, for_everybody=for_everybody) as trial:
        simulation = Simulation(trial, steps)
        hidden, notes = play(simulation, request, admits)
    placements, evictions, loops = simulation.placements, simulation.evictions, tuple(simulation.loops)
    return WhatIf(
        summary=summary(
            placements, evictions, loops, (*hidden, *(group.text for group in simulation.groups), *would_fit)
        ),
        placements=placements,
        groups=simulation.groups,
        evictions=evictions,
        loops=loops,
        unplaced=sum(not placement.node for placement in placements),
        gpu_hours=gpu_hours_of(eviction.victim for eviction in evictions),
        is_complete=simulation.is_complete,
        notes=(*stand_in_notes(trial.frameworks), *notes),
    )


def play(simulation: Simulation, request: WhatIfRequest, admits: Admits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Plays the request through, but its configuration. Returns (what placements hide, notes). Raises QuestionError."""
    trial, cluster = simulation.trial, simulation.trial.cluster
    pending_pods = cluster.pending.values() if request.include_pending else ()
    pending = [pod for pod in pending_pods if not cluster.cache.is_assumed(pod)]
    applied = apply_manifests(trial, [*nodes_like(cluster, request.add_nodes), *request.create], admits)
    drop_leftover_claims(trial, pending)
    going = [*request.remove_nodes, *request.drain_nodes]
    for name in going:
        if name not in cluster.nodes:
            raise QuestionError(f'node "{name}" not found{did_you_mean(name, cluster.nodes)}')
    if len(going) > limits.NODES_TRIED:
        raise QuestionError(f"more than {limits.NODES_TRIED} nodes cannot go at a time")
    pinned = run_on_named_nodes(trial, applied.on_named_nodes)
    for pod in applied.surplus:
        simulation.withdraw(pod, "scaled down")
    rollouts = [RunningRollout(simulation, *rollout) for rollout in applied.rollouts]
    for rollout in rollouts:
        rollout.begin()
    for pod in applied.daemons:
        simulation.submit(pod, "created")
    for pod in pending:
        if cluster.pending.get(pod.uid) is pod:
            simulation.submit(pod, "pending")
    for pod in applied.pods:
        simulation.submit(pod, "created")
    for name in dict.fromkeys(request.remove_nodes):
        simulation.remove_node(name)
    for name in dict.fromkeys(request.drain_nodes):
        if name in cluster.nodes:
            simulation.drain_node(name)
    asyncio.run(run_all(simulation, rollouts))
    stopped = tuple(outcome for rollout in rollouts if (outcome := rollout.outcome) and simulation.is_complete)
    drained = [kubectl_drain(request.drain_nodes, simulation.evictions)] if request.drain_nodes else []
    return (*pinned, *stopped), (*drained, *applied.notes, *applied.missing_notes)


def kubectl_drain(nodes: Iterable[str], evictions: Iterable[Eviction]) -> str:
    """Returns the command that drains the nodes, and for whom it takes --force. Upstream: kubectl/pkg/drain."""
    lost = [eviction.victim.pod.key for eviction in evictions if eviction.why == "drained" and not eviction.returns]
    force = ["--force"] if lost else []
    command = shlex.join(["kubectl", "drain", *dict.fromkeys(nodes), "--ignore-daemonsets", *force])
    advice = f"{command} does the same, with --delete-emptydir-data where pods have emptyDir volumes"
    if not lost:
        return advice
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return f"{advice}; without --force it refuses pods that nothing recreates, here {lost[0]}{more}"


def nodes_like(cluster: Cluster, requests: Sequence[NodesLike]) -> list[dict[str, Any]]:
    """Returns further nodes as objects to create: ready, and empty. Raises QuestionError if that cannot be."""
    models = []
    for request in requests:
        model = cluster.nodes.get(request.like)
        if model is None:
            raise QuestionError(f'node "{request.like}" not found{did_you_mean(request.like, cluster.nodes)}')
        models.append((model, request.count))
    return nodes_of(cluster, models)


def nodes_of(cluster: Cluster, models: Sequence[tuple[Node, int]]) -> list[dict[str, Any]]:
    """Returns so many nodes of each model, as `nodes_like`."""
    if sum(number for _, number in models) > limits.NODES_TRIED:
        raise QuestionError(f"more than {limits.NODES_TRIED} nodes cannot be added at a time")
    nodes_by_name: dict[str, dict[str, Any]] = {}
    for model, number in models:
        names = (f"{model.name}-new-{number}" for number in count(1))
        free = (name for name in names if name not in cluster.nodes and name not in nodes_by_name)
        for name in islice(free, number):
            nodes_by_name[name] = _node_like(model, name)
    return list(nodes_by_name.values())


def _node_like(model: Node, name: str) -> dict[str, Any]:
    labels = {**model.labels, **({HOSTNAME_LABEL: name} if HOSTNAME_LABEL in model.labels else {})}
    # Taints of this domain come and go with the state of a node.
    taints = [taint for taint in model.spec.taints if not taint.key.startswith("node.kubernetes.io/")]
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": model.status.allocatable, "capacity": model.status.capacity, "conditions": conditions}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": msgspec.to_builtins(taints)},
        "status": {key: value for key, value in status.items() if value},
    }


def _pending_that_would_fit(
    cluster: Cluster,
    configuration: Configuration,
    request: WhatIfRequest,
    admits: Admits,
    *,
    for_everybody: bool,
) -> tuple[str, ...]:
    """Returns a sentence about pending pods if nodes come and nobody asked about those pods."""
    adds_nodes = bool(request.add_nodes) or any(obj.get("kind") == "Node" for obj in request.create)
    number = len(cluster.pending)
    if request.include_pending or not adds_nodes or not 0 < number <= limits.PENDING_TRIED:
        return ()
    question = msgspec.structs.replace(request, include_pending=True, configuration=None)
    answer = what_if(cluster, configuration, question, admits, for_everybody=for_everybody)
    placed = sum(placement.cause == "pending" and bool(placement.node) for placement in answer.placements)
    if not placed:
        return (f"None of the {plural(number, 'pending pod')} would fit then",)
    return (f"{placed} of {plural(number, 'pending pod')} would now fit; include the pending pods to see where",)


# The summary: what becomes of the pods, in a sentence or a few.


def summary(
    placements: Sequence[Placement],
    evictions: Sequence[Eviction],
    loops: Sequence[EvictionLoop],
    hidden: Sequence[str] = (),
) -> str:
    """Returns one sentence, or more if something needs attention; `hidden` is what placements do not show."""
    submitted = [placement for placement in placements if placement.cause != "evicted"]
    withdrawn = [eviction for eviction in evictions if eviction.why in _WITHDRAWN]
    at_once = [eviction for eviction in evictions if not eviction.waits_for and eviction.why not in _WITHDRAWN]
    waiting = [eviction for eviction in evictions if eviction.waits_for]
    if not placements and not evictions:
        return " ".join(f"{sentence}." for sentence in hidden) if hidden else "Nothing would change."
    parts = []
    if len(submitted) == 1:
        parts.append(_one(submitted[0]))
    elif submitted:
        parts.append(_of_several(submitted))
    if at_once:
        parts.append(_of_evictions(at_once))
    for why, how in _WITHDRAWN.items():
        names = [eviction.victim.pod.key for eviction in withdrawn if eviction.why == why]
        if names:
            parts.append(f"{names[0] if len(names) == 1 else f'{len(names)} pods'} would be {how}")
    sentences = [_capital(", and ".join(parts)) + "."] if parts else []
    sentences += [f"{sentence}." for sentence in hidden]
    if waiting:
        sentences.append(_of_waiting(waiting))
    violating = [eviction for eviction in evictions if eviction.victim.violates]
    if violating:
        one = violating[0].victim.pod.key
        subject = f"the eviction of {one} violates" if len(violating) == 1 else f"{len(violating)} evictions violate"
        names = [
            f"{eviction.victim.pod.namespace}/{name}" for eviction in violating for name in eviction.victim.violates
        ]
        sentences.append(_capital(f"{subject} {_budgets(names)}."))
    if loops:
        sentences.append("Pods would evict each other forever.")
    return " ".join(sentences)


def _one(placement: Placement) -> str:
    name = placement.pod.key
    if not placement.node:
        why = f": {placement.message.rstrip('.')}" if placement.message else ""
        return f"{name} would be unschedulable{why}"
    return f"{name} would go to {placement.node}"


def _of_several(placements: Sequence[Placement]) -> str:
    number, placed = len(placements), sum(bool(placement.node) for placement in placements)
    if placed == number:
        return f"{'both' if number == 2 else f'all {number}'} pods would be scheduled"
    if not placed:
        return "neither pod would be scheduled" if number == 2 else f"none of {number} pods would be scheduled"
    return f"{placed} of {number} pods would be scheduled"


def _of_evictions(evictions: Sequence[Eviction]) -> str:
    if len(evictions) == 1:
        eviction = evictions[0]
        return f"{eviction.victim.pod.key} would be evicted from {eviction.node} and {_outcome(eviction)}"
    return f"{len(evictions)} pods would be evicted ({', '.join(_outcomes(evictions))})"


def _of_waiting(evictions: Sequence[Eviction]) -> str:
    names = [f"{eviction.victim.pod.namespace}/{name}" for eviction in evictions for name in eviction.waits_for]
    drain = f"The drain would wait for {_budgets(names)}"
    if len(evictions) == 1:
        one = evictions[0]
        return f"{drain} before {one.victim.pod.key} may leave {one.node}; then it would {_outcome(one)}."
    return f"{drain} before {len(evictions)} pods may leave (then {', '.join(_outcomes(evictions))})."


def _outcome(eviction: Eviction) -> str:
    if eviction.lands_on:
        return f"land on {eviction.lands_on}"
    return "be unschedulable" if eviction.returns else "not be recreated"


def _outcomes(evictions: Sequence[Eviction]) -> list[str]:
    lost = sum(not eviction.returns for eviction in evictions)
    unplaced = sum(eviction.returns and not eviction.lands_on for eviction in evictions)
    landed = len(evictions) - lost - unplaced
    outcomes = ((landed, "land elsewhere"), (unplaced, "be unschedulable"), (lost, "not be recreated"))
    return [f"{number} would {how}" for number, how in outcomes if number]


def _budgets(names: Sequence[str]) -> str:
    """The budgets, each with its kind, by which redaction recognizes their names."""
    return all_of(f"PodDisruptionBudget {name}" for name in dict.fromkeys(names))


def _capital(text: str) -> str:
    # Names of pods stay as they are.
    return text if "/" in text.split(" ", 1)[0] else text[:1].upper() + text[1:]
