"""Which events may help a pod that required affinity or anti-affinity keeps off nodes.

With several anti-affinity terms, upstream looks for a pod that matches all of them, although each of them alone keeps a
pod away; and node events do not help a pod that only the anti-affinity of existing pods keeps away. Such pods are
requeued after the longest time in the unschedulable queue.

Upstream: framework/plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange, isSchedulableAfterNodeChange
(v1.36.2).
"""

from collections.abc import Sequence

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity.terms import Term, required_affinity_terms, required_anti_affinity_terms
from extender.engine.snapshot.pod_attributes import affinity_class


def after_pod_change(pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> fwk.QueueingHint:
    """Queues the pod if it was updated, if a pod now matches its affinity, or if one no longer conflicts with
    anti-affinity.

    Raises:
        SelectorError: a required term of the pod is invalid.
    """
    if old is not None and new is not None and new.uid == pod.uid:
        return fwk.QueueingHint.QUEUE
    if not _concerns_nodes(old, new):
        return fwk.QueueingHint.QUEUE_SKIP
    affinity, anti_affinity = _affinity(pod), _anti_affinity(pod)
    if new is not None and _all_match(affinity, new) and not _all_match(affinity, old):
        return fwk.QueueingHint.QUEUE
    if new is not None:
        return fwk.queue_if(_all_match(anti_affinity, old) and not _all_match(anti_affinity, new))
    return fwk.queue_if(_all_match(anti_affinity, old) or (old is not None and _all_match(_anti_affinity(old), pod)))


def after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    """Queues the pod if the node joined a domain of its affinity, or left one of its anti-affinity.

    Raises:
        SelectorError: a required term of the pod is invalid.
    """
    if any(_has_appeared(term.topology_key, old, new) for term in _affinity(pod)):
        return fwk.QueueingHint.QUEUE
    return fwk.queue_if(any(old is None or _has_been_left(term.topology_key, old, new) for term in _anti_affinity(pod)))


def _affinity(pod: fwk.Pod) -> Sequence[Term]:
    stanzas = affinity_class(pod)
    return required_affinity_terms(stanzas) if stanzas is not None else ()


def _anti_affinity(pod: fwk.Pod) -> Sequence[Term]:
    stanzas = affinity_class(pod)
    return required_anti_affinity_terms(stanzas) if stanzas is not None else ()


def _concerns_nodes(old: fwk.Pod | None, new: fwk.Pod | None) -> bool:
    """True if the pod is on a node or nominated to one, before and after."""
    return all(pod is None or bool(pod.spec.node_name or pod.status.nominated_node_name) for pod in (old, new))


def _all_match(terms: Sequence[Term], pod: fwk.Pod | None) -> bool:
    """True if there are a pod and terms, and all terms match it. Namespace selectors are evaluated against no labels,
    as upstream.

    Upstream: filtering.go, podMatchesAllAffinityTerms.
    """
    return pod is not None and bool(terms) and all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _has_appeared(key: str, old: fwk.Node | None, new: fwk.Node) -> bool:
    return key in new.labels and (old is None or old.labels.get(key) != new.labels[key])


def _has_been_left(key: str, old: fwk.Node, new: fwk.Node) -> bool:
    return key in old.labels and old.labels[key] != new.labels.get(key)
