"""Minding less which other pods are there: affinity, spread, host ports."""

from collections.abc import Iterator

import numpy as np

from extender.answers.explain.relaxed_pods import spreading, without_host_ports, without_pod_affinity, without_pod_anti_affinity
from extender.answers.explain.suggestions.situation import MAX_OF_A_SORT, Situation, Suggestion, listed
from extender.objects.pod import Affinity, Pod, PodAffinity
from extender.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, compiled
from extender.plugins.pod_topology_spread.filtering import measure
from extender.snapshot.pod_attributes import ANY_ADDRESS, HostPort, host_ports


def fewer_terms(situation: Situation) -> Iterator[Suggestion]:
    """Without each required term of pod affinity and anti-affinity, then without all of them."""
    pod = situation.pod
    near, apart = _stanzas(pod)
    for place, term in enumerate(near.required[:MAX_OF_A_SORT]):
        text = f"drop the required pod affinity over {term.topology_key}"
        yield Suggestion("affinity", text, without_pod_affinity(pod, place))
    for place, term in enumerate(apart.required[:MAX_OF_A_SORT]):
        text = f"drop the required pod anti-affinity over {term.topology_key}"
        yield Suggestion("affinity", text, without_pod_anti_affinity(pod, place))
    if len(near.required) + len(apart.required) > 1:
        yield _no_terms(pod)


def no_terms(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    near, apart = _stanzas(situation.pod)
    return _no_terms(situation.pod) if near.required or apart.required else None


def _no_terms(pod: Pod) -> Suggestion:
    near, apart = _stanzas(pod)
    named = [*(["pod affinity"] if near.required else []), *(["pod anti-affinity"] if apart.required else [])]
    changed = without_pod_anti_affinity(without_pod_affinity(pod))
    return Suggestion("affinity", f"drop the required {' and '.join(named)}", changed)


def _stanzas(pod: Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity or Affinity()
    return affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()


def looser_spread(situation: Situation) -> Iterator[Suggestion]:
    """Each constraint with the smallest skew that lets a node in which nothing else closes, then as a mere wish."""
    pod = situation.pod
    hard = [(place, one) for place, one in enumerate(pod.spec.topology_spread_constraints) if one.when_unsatisfiable == DO_NOT_SCHEDULE]
    for (place, constraint), needed in zip(hard[:MAX_OF_A_SORT], _skews_needed(situation), strict=False):
        over = constraint.topology_key
        if needed is not None and needed > constraint.max_skew:
            text = f"allow a maxSkew of {needed} over {over} instead of {constraint.max_skew}"
            yield Suggestion("spread", text, spreading(pod, place, max_skew=needed))
        yield Suggestion("spread", f"only prefer to spread over {over} (ScheduleAnyway)", spreading(pod, place))


def no_spread(situation: Situation, place: int) -> Suggestion | None:
    """All constraints as mere wishes, whichever the node."""
    changed, keys = situation.pod, []
    for at, constraint in enumerate(situation.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE:
            changed = spreading(changed, at)
            keys.append(constraint.topology_key)
    return Suggestion("spread", f"only prefer to spread over {' and '.join(keys)} (ScheduleAnyway)", changed) if keys else None


def _skews_needed(situation: Situation) -> list[int | None]:
    """For each constraint that must be kept, the least skew of the nodes that only spreading closes; None without such a node."""
    pod, snapshot, refusals = situation.pod, situation.snapshot, situation.refusals
    constraints = compiled(pod.spec.topology_spread_constraints, pod.labels, DO_NOT_SCHEDULE)
    if refusals is None or not constraints:
        # Without constraints of its own, the pod is held to the profile's.
        return [None] * len(constraints)
    closed = refusals.only_by("PodTopologySpread")
    needed: list[int | None] = []
    for domains in measure(snapshot, pod, constraints):
        at = domains.column.codes[closed]
        skews = domains.counts[at[at >= 0]] + (domains.self_match - (0 if domains.is_too_few else domains.fewest))
        beyond = skews[skews > domains.constraint.max_skew]
        needed.append(int(np.min(beyond)) if len(beyond) else None)
    return needed


def fewer_host_ports(situation: Situation) -> Iterator[Suggestion]:
    """Without each of them, then without all."""
    ports = list(dict.fromkeys(host_ports(situation.pod)))
    for port in ports[:MAX_OF_A_SORT]:
        yield _without_host_ports(situation.pod, [port])
    if len(ports) > 1:
        yield _without_host_ports(situation.pod, ports)


def no_host_ports(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    ports = list(dict.fromkeys(host_ports(situation.pod)))
    return _without_host_ports(situation.pod, ports) if ports else None


def _without_host_ports(pod: Pod, ports: list[HostPort]) -> Suggestion:
    return Suggestion("ports", f"free or do without the {listed('host port', list(map(_port, ports)))}", without_host_ports(pod, ports))


def _port(port: HostPort) -> str:
    address, protocol, number = port
    return f"{number}/{protocol}" if address == ANY_ADDRESS else f"{address}:{number}/{protocol}"
