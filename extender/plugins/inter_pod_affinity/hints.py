"""Which changes may let in a pod that was kept from, or by, other pods.

Of several anti-affinity terms upstream looks for one pod that all of them mean, although each of them alone keeps a pod away; and a pod
that is only kept away by others' anti-affinity is not helped by nodes that change. The flush of pods that have waited too long brings
those back.

Upstream: framework/plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange, isSchedulableAfterNodeChange (v1.36.2).
"""

from collections.abc import Sequence

from extender import framework as fwk
from extender.plugins.inter_pod_affinity.terms import Term, required_affinity_terms, required_anti_affinity_terms
from extender.snapshot.pod_attributes import affinity_class


def after_pod_change(pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> fwk.QueueingHint:
    """The pod itself was changed, a pod on a node is now what it must be near to, or one that it must be away from is no more.

    Raises:
        SelectorError: a required term of the pod cannot be used.
    """
    if old is not None and new is not None and new.uid == pod.uid:
        return fwk.QueueingHint.QUEUE
    if not _concerns_nodes(old, new):
        return fwk.QueueingHint.QUEUE_SKIP
    near, away = _affinity(pod), _anti_affinity(pod)
    if new is not None and _mean(near, new) and not _mean(near, old):
        return fwk.QueueingHint.QUEUE
    if new is not None:
        return fwk.queue_if(_mean(away, old) and not _mean(away, new))
    return fwk.queue_if(_mean(away, old) or (old is not None and _mean(_anti_affinity(old), pod)))


def after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    """A place to be near to has appeared, or one to be away from has been given up.

    Raises:
        SelectorError: a required term of the pod cannot be used.
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
    """Whether the pod is on a node; one that is gone may also have had the promise of one."""
    if new is None:
        return old is not None and bool(old.spec.node_name or old.status.nominated_node_name)
    return bool(new.spec.node_name) and (old is None or bool(old.spec.node_name))


def _mean(terms: Sequence[Term], pod: fwk.Pod | None) -> bool:
    """Whether there is a pod, there are terms, and all of them mean it. Namespace selectors are held against no labels, as upstream has it.

    Upstream: filtering.go, podMatchesAllAffinityTerms.
    """
    return pod is not None and bool(terms) and all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _has_appeared(key: str, old: fwk.Node | None, new: fwk.Node) -> bool:
    return key in new.labels and (old is None or old.labels.get(key) != new.labels[key])


def _has_been_left(key: str, old: fwk.Node, new: fwk.Node) -> bool:
    return key in old.labels and old.labels[key] != new.labels.get(key)
