"""InterPodAffinity: the plugin."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity import advice, filtering, hints, scoring
from extender.engine.plugins.inter_pod_affinity.existing_terms import ExistingTerms, Incoming, MatchingTerms
from extender.engine.plugins.inter_pod_affinity.terms import NO_TERMS, PodTerms, SelectedNamespaces, terms_of
from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.pod_attributes import affinity_class
from extender.engine.snapshot.symbols import LabelPair
from extender.values.config.plugin_args import InterPodAffinityArgs

_EXISTING: Final = fwk.StateKey[MatchingTerms]("PreFilterInterPodAffinity/existing")
_REQUIRED: Final = fwk.StateKey[filtering.Required]("PreFilterInterPodAffinity")
_SCORES: Final = fwk.StateKey[Sequence[fwk.LabelScores]]("PreScoreInterPodAffinity")
_SKIP: Final = fwk.PreFilterResult(fwk.SKIP)
_NONE_MATCH: Final = MatchingTerms()
_NO_LABELS: Final[frozenset[LabelPair]] = frozenset()


@final
class InterPodAffinity(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Enforces required affinity and anti-affinity of the pod and anti-affinity of existing pods; scores nodes by the
    preferred terms of both.

    State: the namespaces that selectors match.

    Upstream: framework/plugins/interpodaffinity/plugin.go (v1.36.2).
    """

    normalizes_by_extremes = True

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
            fwk.on(fwk.EventResource.POD, pods, hints.after_pod_change),
            fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL, hints.after_node_change),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without required terms that no existing anti-affinity matches; unresolvable if a term is
        invalid.
        """
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
        found = scoring.scores_by_key(snapshot, self._resolved(terms, snapshot), existing)
        if not found:
            return fwk.SKIP
        state.write(_SCORES, found)
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return scoring.raw_scores(rows, state.read(_SCORES))

    def score_by_label(self, state: fwk.CycleState, pod: fwk.Pod) -> fwk.LabelScores | None:
        found = state.read(_SCORES)
        return found[0] if len(found) == 1 else None

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return scoring.normalized(scores)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Fewer required terms; see `advice.suggestions`."""
        return advice.suggestions(pod)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without any required term."""
        return advice.without_requirements(pod)

    def _terms(self, state: fwk.CycleState, pod: fwk.Pod) -> PodTerms:
        return self._terms_of.of(state, lambda: _terms(pod))

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
    """True if the pod has preferred terms, whether valid or not."""
    affinity = pod.spec.affinity
    stanzas = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(stanza is not None and stanza.preferred for stanza in stanzas)
