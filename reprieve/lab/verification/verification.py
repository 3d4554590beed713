"""Verifies rules: makes a rule's cluster, plays through what happens in it, and compares the end."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import msgspec

from extender.answers.trial import Trial
from extender.answers.types import Eviction, QuestionError, WhatIfRequest
from extender.answers.what_if.admission import Admits
from extender.answers.what_if.manifests import unrolled
from extender.answers.what_if.simulation import Simulation
from extender.answers.what_if.what_if import play
from extender.engine.cache.cluster import Cluster
from extender.values.config.configuration import Configuration
from extender.values.objects import decoding
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.label_syntax import parse_selector
from extender.values.objects.node import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Pod
from reprieve.lab.verification.rules import Expectation, PodSelection, Rule, Spread, listed, nodes_of

Manifests = Sequence[Mapping[str, Any]]
"""Kubernetes objects as they are in files."""

_WELL_KNOWN: Final = {"zone": ZONE_LABEL, "region": REGION_LABEL, "hostname": HOSTNAME_LABEL}
_SHOWN: Final = 3
"""The number of pods that a failure names."""


@final
@dataclass(frozen=True, slots=True)
class UnmetExpectation:
    """An expectation that does not hold."""

    expected: str
    happened: str


@final
class PodDestinations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where pods went. Pods are namespace/name."""

    pods: dict[str, str] = {}
    """The node of each pod that had to be placed, or `pending`."""
    evicted: dict[str, str] = {}
    """The node that each pod had to leave."""


@final
@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What became of a rule."""

    unmet: Sequence[UnmetExpectation]
    decisions: PodDestinations


class RuleError(ValueError):
    """The rule cannot be verified; the message says why."""


def verify(
    rule: Rule, existing: Manifests, applied: Manifests, configuration: Configuration, admits: Admits
) -> RuleOutcome:
    """Returns the unmet expectations of the rule, and where the pods went. Raises RuleError and ConfigErrors."""
    try:
        with Trial.of(Cluster(), configuration) as trial:
            end = _played(trial, rule, [*existing, *rule.given.objects], [*applied, *rule.when.create], admits)
        unmet = [failure for expectation in rule.then for failure in _failures(expectation, end)]
        pods = {pod.key: pod.spec.node_name for pod in end.placed if pod.uid in end.concerned}
        pods |= {pending_pod.pod.key: "pending" for pending_pod in end.pending if pending_pod.pod.uid in end.concerned}
        return RuleOutcome(unmet, PodDestinations(pods, {pod.key: eviction.node for pod, eviction in end.evictions}))
    except (QuestionError, SelectorError) as exc:
        raise RuleError(str(exc)) from exc


class _PendingPod(NamedTuple):
    pod: Pod
    message: str


class _End(NamedTuple):
    nodes: Mapping[str, Node]
    placed: Sequence[Pod]
    pending: Sequence[_PendingPod]
    concerned: frozenset[str]
    """UIDs of the pods that had to be placed."""
    evictions: Sequence[tuple[Pod, Eviction]]


def _played(trial: Trial, rule: Rule, existing: Manifests, applied: Manifests, admits: Admits) -> _End:
    cluster = trial.cluster
    objects = unrolled([*nodes_of(rule.given.nodes), *existing], admits())
    # Budgets come last, since what they allow depends on pods that run.
    budgets = [obj for obj in objects if obj["kind"] == "PodDisruptionBudget"]
    simulation = Simulation(trial)
    play(simulation, WhatIfRequest(create=[obj for obj in objects if obj["kind"] != "PodDisruptionBudget"]), admits)
    _run(cluster)
    trial.commit()
    play(Simulation(trial), WhatIfRequest(create=budgets), admits)
    pod_by_uid = {pod.uid: pod for pod in (*cluster.cache.pods, *cluster.pending.values())}
    new = unrolled(applied, admits())
    drained, removed = [*listed(rule.when.drain)], [*listed(rule.when.remove)]
    request = WhatIfRequest(create=new, drain_nodes=drained, remove_nodes=removed, include_pending=True)
    if request != WhatIfRequest(include_pending=True):
        simulation = Simulation(trial)
        play(simulation, request, admits)
    if not simulation.is_complete:
        raise RuleError("the simulation reached its limit: make the cluster smaller")
    placed = [pod for pod in cluster.cache.pods if pod.spec.node_name in cluster.nodes]
    on_nodes = {pod.uid for pod in placed}
    messages = {placement.pod.uid: placement.message for placement in simulation.placements}
    pod_by_uid |= {pod.uid: pod for pod in (*placed, *cluster.pending.values())}
    waiting = [pod for pod in cluster.pending.values() if pod.uid not in on_nodes]
    # Pods that their controllers delete are not evicted.
    evicted = [eviction for eviction in simulation.evictions if eviction.why not in ("scaled down", "replaced")]
    return _End(
        nodes=cluster.nodes,
        placed=placed,
        pending=[_PendingPod(pod, messages.get(pod.uid, "")) for pod in waiting],
        concerned=frozenset(messages),
        evictions=[(pod_by_uid[eviction.victim.pod.uid], eviction) for eviction in evicted],
    )


def _run(cluster: Cluster) -> None:
    for pod in cluster.cache.pods:
        if cluster.cache.is_assumed(pod):
            status = decoding.replaced(pod.status, phase="Running", nominated_node_name="")
            cluster.changed(None, decoding.replaced(pod, status=status))


# Expectations.


def _failures(expected: Expectation, end: _End) -> Iterator[UnmetExpectation]:
    selection = PodSelection.of(expected.pods) if expected.pods is not None else None

    def is_meant(pod: Pod) -> bool:
        return pod.uid in end.concerned if selection is None else selection.selects(pod)

    who = f"pods {expected.pods}" if expected.pods is not None else "pods"
    placed = [pod for pod in end.placed if is_meant(pod)]
    pending = [pending_pod for pending_pod in end.pending if is_meant(pending_pod.pod)]
    if expected.placed is not None and len(placed) != expected.placed:
        yield UnmetExpectation(f"{who}: {expected.placed} placed", f"{len(placed)} placed{_and_pending(pending)}")
    if expected.pending is not None and len(pending) != expected.pending:
        yield UnmetExpectation(f"{who}: {expected.pending} pending", f"{len(pending)} pending{_and_pending(pending)}")
    if expected.evicted is not None:
        evictions = [eviction for pod, eviction in end.evictions if is_meant(pod)]
        if len(evictions) != expected.evicted:
            yield UnmetExpectation(f"{who}: {expected.evicted} evicted", evicted_in_words(evictions))
    if expected.nodes is not None and len(used := {pod.spec.node_name for pod in placed}) != expected.nodes:
        yield UnmetExpectation(f"{who}: on {expected.nodes} nodes", f"on {len(used)}{_and_pending(pending)}")
    if expected.message is not None:
        unlike = [pending_pod for pending_pod in pending if expected.message not in pending_pod.message]
        if not pending or unlike:
            state = _and_pending(unlike).removeprefix("; ") if pending else "none is pending"
            yield UnmetExpectation(f"{who}: pending with {expected.message!r}", state)
    yield from _wrong_nodes(who, expected, placed, end.nodes)
    if expected.spread is not None:
        yield from uneven(who, expected.spread, placed, end.nodes)
    yield from _wrong_evictions(expected, end)


def _wrong_nodes(
    who: str, expected: Expectation, placed: Sequence[Pod], nodes: Mapping[str, Node]
) -> Iterator[UnmetExpectation]:
    for text, is_wanted in ((expected.on_nodes, True), (expected.not_on_nodes, False)):
        if text is None:
            continue
        selector = parse_selector(text)
        wrong = [pod for pod in placed if selector.matches(nodes[pod.spec.node_name].labels) is not is_wanted]
        if wrong:
            where = ", ".join(f"{pod.key} is on {pod.spec.node_name}" for pod in wrong[:_SHOWN])
            yield UnmetExpectation(f"{who}: {'on' if is_wanted else 'not on'} nodes {text}", f"{where}{_more(wrong)}")
        elif is_wanted and not placed:
            yield UnmetExpectation(f"{who}: on nodes {text}", "none is placed")


def uneven(who: str, spread: Spread, placed: Sequence[Pod], nodes: Mapping[str, Node]) -> Iterator[UnmetExpectation]:
    """Yields an unmet expectation if pods are spread unevenly."""
    label = _WELL_KNOWN.get(spread.by, spread.by)
    domains = {node.labels[label] for node in nodes.values() if label in node.labels}
    counts = Counter(dict.fromkeys(domains, 0))
    counts.update(value for pod in placed if (value := nodes[pod.spec.node_name].labels.get(label)) is not None)
    skew = max(counts.values(), default=0) - min(counts.values(), default=0)
    lacks = len(+counts) < spread.min_domains
    if not domains or not placed or lacks or (spread.max_skew is not None and skew > spread.max_skew):
        distribution = ", ".join(f"{count} in {domain}" for domain, count in sorted(counts.items()))
        constraints = (
            constraint
            for pod in placed
            for constraint in pod.spec.topology_spread_constraints
            if constraint.topology_key == label
        )
        is_asked = any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in constraints)
        why = "" if is_asked else f" (they have no constraint over {label} with DoNotSchedule)"
        happened = f"a skew of {skew}: {distribution}{why}" if placed else "none is placed"
        if not domains:
            happened = f"no node has the label {label}"
        over = f" over at least {spread.min_domains}" if spread.min_domains else ""
        limit = "" if spread.max_skew is None else f" with a skew of at most {spread.max_skew}"
        yield UnmetExpectation(f"{who}: spread by {spread.by}{over}{limit}", happened)


def _wrong_evictions(expected: Expectation, end: _End) -> Iterator[UnmetExpectation]:
    checks: tuple[tuple[str | None, str, bool, Callable[[Eviction], bool]], ...] = (
        (expected.evicts, "evicts", True, lambda eviction: True),
        (expected.no_preemption_of, "no preemption of", False, lambda eviction: eviction.why == "preempted"),
        (expected.no_eviction_of, "no eviction of", False, lambda eviction: True),
    )
    for text, words, is_wanted, counts in checks:
        if text is None:
            continue
        selection = PodSelection.of(text)
        evictions = [eviction for pod, eviction in end.evictions if selection.selects(pod) and counts(eviction)]
        if bool(evictions) is not is_wanted:
            yield UnmetExpectation(f"{words} pods {text}", evicted_in_words(evictions))


# In words.


def _and_pending(pending: Sequence[_PendingPod]) -> str:
    sentences = "; ".join(
        f"{pending_pod.pod.key} is pending: {pending_pod.message}" for pending_pod in pending[:_SHOWN]
    )
    return f"; {sentences}{_more(pending)}" if sentences else ""


def evicted_in_words(evictions: Sequence[Eviction]) -> str:
    """Returns how many pods are evicted, and the first ones: from where, why, and by whom."""
    if not evictions:
        return "none is evicted"
    sentences = ", ".join(
        f"{eviction.victim.pod.key} from {eviction.node} "
        f"({eviction.why}{f' by {eviction.by.namespace}/{eviction.by.name}' if eviction.by is not None else ''}"
        f"{f', once {eviction.waits_for[0]} allows it' if eviction.waits_for else ''})"
        for eviction in evictions[:_SHOWN]
    )
    return f"{len(evictions)} evicted: {sentences}{_more(evictions)}"


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
