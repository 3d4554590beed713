"""InterPodAffinity: the plugin, its queueing hints and its suggestions.

Node events do not help a pod that only the anti-affinity of existing pods keeps away, as upstream. Such pods are
requeued after the longest time in the unschedulable queue.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from extender.engine import framework as fwk
from extender.engine.framework.interface import LabelScorePlugin
from extender.engine.plugins.inter_pod_affinity import filtering, scoring
from extender.engine.plugins.inter_pod_affinity.existing_terms import ExistingTerms, Incoming, MatchingTerms
from extender.engine.plugins.inter_pod_affinity.terms import (
    NO_TERMS,
    PodTerms,
    SelectedNamespaces,
    Term,
    compiled_terms,
    terms_of,
)
from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.columns import LabelScores
from extender.engine.snapshot.pod_attributes import affinity_class
from extender.engine.snapshot.symbols import LabelPair
from extender.values import limits
from extender.values.config.plugin_args import InterPodAffinityArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import Namespace
from extender.values.objects.pod import Affinity, PodAffinity, PodAffinityTerm

_EXISTING: Final = fwk.StateKey[MatchingTerms]("PreFilterInterPodAffinity/existing")
_REQUIRED: Final = fwk.StateKey[filtering.Required]("PreFilterInterPodAffinity")
_SCORES: Final = fwk.StateKey[Sequence[LabelScores]]("PreScoreInterPodAffinity")
_SKIP: Final = fwk.PreFilterResult(fwk.SKIP)
_NONE_MATCH: Final = MatchingTerms()
_NO_LABELS: Final[frozenset[LabelPair]] = frozenset()
_STANZAS: Final = {"pod_affinity": "pod affinity", "pod_anti_affinity": "pod anti-affinity"}


@final
class InterPodAffinity(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, LabelScorePlugin, fwk.AdvicePlugin):
    """Enforces required affinity and anti-affinity of the pod and anti-affinity of existing pods; scores nodes by the
    preferred terms of both.

    State: the namespaces that selectors match. Upstream: framework/plugins/interpodaffinity/plugin.go.
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._args = arguments if isinstance(arguments, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._namespaces = SelectedNamespaces()
        self._incoming = fwk.PodMemo[Incoming]()
        self._terms_of = fwk.PodMemo[PodTerms]()

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        add = fwk.ActionType.ADD
        pods = add | fwk.ActionType.UPDATE_POD_LABEL | fwk.ActionType.DELETE
        return [
            fwk.on(fwk.EventResource.POD, pods, self._after_pod_change),
            fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL, after_node_change),
            fwk.on(fwk.EventResource.NAMESPACE, add | fwk.ActionType.UPDATE, _after_namespace_change),
        ]

    def _after_pod_change(self, pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> fwk.QueueingHint:
        """Queues the pod if it changed, if affinity gained a pod or anti-affinity lost one, or if it may be the first
        now.

        Raises SelectorError if a required term of the pod is invalid.
        """
        if old is not None and new is not None and new.uid == pod.uid:
            return fwk.QueueingHint.QUEUE
        if not _concerns_nodes(old, new):
            return fwk.QueueingHint.QUEUE_SKIP
        affinity, anti_affinity = _required(pod, anti=False), _required(pod, anti=True)
        was_near, is_near, is_own = (
            bool(affinity) and all(self._matches(term, subject) for term in affinity) for subject in (old, new, pod)
        )
        if is_near != was_near and (is_near or is_own):
            return fwk.QueueingHint.QUEUE
        if any(self._matches(term, old) and not self._matches(term, new) for term in anti_affinity):
            return fwk.QueueingHint.QUEUE
        return fwk.queue_if(
            old is not None and new is None and any(self._matches(term, pod) for term in _required(old, anti=True))
        )

    def _matches(self, term: Term, pod: fwk.Pod | None) -> bool:
        if pod is None:
            return False
        namespace = self.handle.objects.namespaces.get(pod.namespace)
        return term.matches(pod.namespace, pod.labels, namespace.labels if namespace is not None else {})

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods that no required term concerns; unresolvable if a term is invalid."""
        terms = self._terms(state, pod)
        if terms.error:
            return fwk.PreFilterResult(fwk.unresolvable(f"parsing pod: {terms.error}"))
        existing = self._matching_terms(state, pod, snapshot)
        state.write(_EXISTING, existing)
        if terms is NO_TERMS and not existing.anti_affinity:
            return _SKIP
        required = filtering.count_pods(snapshot, pod, self._resolved(terms, snapshot), existing)
        if required.is_irrelevant:
            return _SKIP
        state.write(_REQUIRED, required)
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return filtering.verdicts(rows, state.read(_REQUIRED))

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Skips if no preferred term of the pod matches existing pods, nor any of theirs the pod."""
        terms = self._terms(state, pod)
        if self._args.ignore_preferred_terms_of_existing_pods and not _has_preferred_terms(pod):
            return fwk.SKIP
        if terms.error:
            return fwk.error(f"failed to parse pod: {terms.error}")
        snapshot = rows.snapshot
        existing = state.find(_EXISTING) or self._matching_terms(state, pod, snapshot)
        if terms is NO_TERMS and not existing.weights:
            return fwk.SKIP
        scores = scoring.scores_by_key(snapshot, self._resolved(terms, snapshot), existing)
        if not scores:
            return fwk.SKIP
        state.write(_SCORES, scores)
        return fwk.SUCCESS

    def label_scores(self, state: fwk.CycleState) -> Sequence[LabelScores]:
        """Returns the scores by each topology key; negative where anti-affinity prevails (Score)."""
        return state.read(_SCORES)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return scoring.normalized(scores)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod without each required term, then without all of them."""
        number = 0
        for field, name in _STANZAS.items():
            required = _required_in(pod, field)
            number += len(required)
            keys = [term.topology_key for term in required]
            for place, key in enumerate(keys[: limits.SUGGESTED_ONE_BY_ONE]):
                which = f", term {place + 1} of {len(keys)}" if keys.count(key) > 1 else ""
                text = f"drop the required {name} over {key}{which}"
                yield fwk.Suggestion("affinity", text, without_terms(pod, field, place))
        if number > 1 and (all_of_them := self.suggest_for_node(pod, rows)) is not None:
            yield all_of_them

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without any required term."""
        names = [name for field, name in _STANZAS.items() if _required_in(pod, field)]
        for field in _STANZAS:
            pod = without_terms(pod, field)
        return fwk.Suggestion("affinity", f"drop the required {' and '.join(names)}", pod) if names else None

    def _terms(self, state: fwk.CycleState, pod: fwk.Pod) -> PodTerms:
        return NO_TERMS if pod.spec.affinity is None else self._terms_of.of(state, lambda: _terms(pod))

    def _resolved(self, terms: PodTerms, snapshot: fwk.Snapshot) -> PodTerms:
        return self._namespaces.resolved(terms, snapshot.objects.namespaces)

    def _matching_terms(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> MatchingTerms:
        index = snapshot.tallies.index(fwk.Attribute.AFFINITY, ExistingTerms)
        if not index.size:
            return _NONE_MATCH
        namespace = snapshot.objects.namespaces.get(pod.namespace)
        namespace_labels = frozenset(namespace.metadata.labels.items()) if namespace is not None else _NO_LABELS
        incoming = self._incoming.of(
            state,
            lambda: Incoming(pod.namespace, frozenset(pod.labels.items()), namespace_labels),
            also=namespace_labels,
        )
        return index.matching(incoming, self._args.hard_pod_affinity_weight, snapshot.nodes.label_keys)


def _terms(pod: fwk.Pod) -> PodTerms:
    stanzas = affinity_class(pod)
    return terms_of(stanzas) if stanzas is not None else NO_TERMS


def _has_preferred_terms(pod: fwk.Pod) -> bool:
    affinity = pod.spec.affinity
    stanzas = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(stanza is not None and stanza.preferred for stanza in stanzas)


def after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    """Queues the pod if the node joined a domain of its affinity, or left one of its anti-affinity.

    Raises SelectorError if a required term of the pod is invalid.
    """
    if any(_has_appeared(term.topology_key, old, new) for term in _required(pod, anti=False)):
        return fwk.QueueingHint.QUEUE
    apart = _required(pod, anti=True)
    return fwk.queue_if(any(old is None or _has_appeared(term.topology_key, new, old) for term in apart))


def _after_namespace_change(pod: fwk.Pod, old: Namespace | None, new: Namespace) -> fwk.QueueingHint:
    """Queues the pod if its terms begin or cease to select the namespace, or if its own one has other labels now.

    Terms of existing pods may select these. Raises SelectorError if a required term of the pod is invalid.
    """
    was_selected, is_selected = (
        [
            namespace is not None and term.namespace_selector.matches(namespace.labels)
            for anti in (False, True)
            for term in _required(pod, anti=anti)
        ]
        for namespace in (old, new)
    )
    is_own = new.name == pod.namespace and (old is None or old.labels != new.labels)
    return fwk.queue_if(is_own or was_selected != is_selected)


def _required(pod: fwk.Pod, *, anti: bool) -> Sequence[Term]:
    stanzas = affinity_class(pod)
    return compiled_terms(stanzas, anti=anti) if stanzas is not None else ()


def _concerns_nodes(old: fwk.Pod | None, new: fwk.Pod | None) -> bool:
    return all(pod is None or bool(pod.spec.node_name or pod.status.nominated_node_name) for pod in (old, new))


def _has_appeared(key: str, old: fwk.Node | None, new: fwk.Node) -> bool:
    return key in new.labels and (old is None or old.labels.get(key) != new.labels[key])


def without_terms(pod: fwk.Pod, field: str, *places: int) -> fwk.Pod:
    """Returns the pod without these required terms of the field; without places, without all of them."""
    required = _required_in(pod, field)
    if not required:
        return pod
    remaining = [term for place, term in enumerate(required) if places and place not in places]
    affinity = pod.spec.affinity or Affinity()
    changed = replaced(affinity, **{field: replaced(getattr(affinity, field), required=remaining)})
    return replaced(pod, spec=replaced(pod.spec, affinity=changed))


def _required_in(pod: fwk.Pod, field: str) -> Sequence[PodAffinityTerm]:
    stanza: PodAffinity | None = getattr(pod.spec.affinity or Affinity(), field)
    return stanza.required if stanza is not None else ()
