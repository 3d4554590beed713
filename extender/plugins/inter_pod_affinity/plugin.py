"""InterPodAffinity: the plugin."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

from extender import framework as fwk
from extender.config.plugin_args import InterPodAffinityArgs
from extender.plugins.inter_pod_affinity import advice, filtering, hints, scoring
from extender.plugins.inter_pod_affinity.existing_terms import ExistingTerms, Incoming, Said
from extender.plugins.inter_pod_affinity.terms import NO_TERMS, KnownNamespaces, PodTerms, WeightedTerm, terms_of
from extender.snapshot.axes import Int64s
from extender.snapshot.pod_attributes import affinity_class

_SAID: Final = fwk.StateKey[Said]("PreFilterInterPodAffinity/said")
_REQUIRED: Final = fwk.StateKey[filtering.Required]("PreFilterInterPodAffinity")
_WORTHS: Final = fwk.StateKey[Sequence[scoring.Worth]]("PreScoreInterPodAffinity")


@final
class InterPodAffinity(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Refuses nodes that are far from what the pod must be near to, or near to what it must be away from or what must be away from it;
    prefers nodes by what the pod wishes of the pods that run, and they of it.

    State: which namespaces selectors select.

    Upstream: framework/plugins/interpodaffinity/plugin.go (v1.36.2).
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._args = arguments if isinstance(arguments, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._namespaces = KnownNamespaces()

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """Pods on nodes come, go, or have other labels; so do nodes."""
        add = fwk.ActionType.ADD
        pods = add | fwk.ActionType.UPDATE_POD_LABEL | fwk.ActionType.DELETE
        return [
            fwk.on(fwk.EventResource.POD, pods, hints.after_pod_change),
            fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL, hints.after_node_change),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods that demand nothing and of which nothing is demanded; refused for good if a term cannot be read."""
        terms = _terms(pod)
        if terms.error:
            return fwk.PreFilterResult(fwk.unresolvable(f"parsing pod: {terms.error}"))
        said = self._said(pod, snapshot)
        state.write(_SAID, said)
        required = filtering.look_around(snapshot, pod, self._looked_up(terms, snapshot), said)
        if required.is_irrelevant:
            return fwk.PreFilterResult(fwk.SKIP)
        state.write(_REQUIRED, required)
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """See `filtering.verdicts`."""
        return filtering.verdicts(rows, state.read(_REQUIRED))

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Skip where neither the pod nor those that run wish for anything that concerns the other."""
        terms = _terms(pod)
        if self._args.ignore_preferred_terms_of_existing_pods and not _wishes(pod):
            return fwk.SKIP
        if terms.error:
            return fwk.error(f"failed to parse pod: {terms.error}")
        snapshot = rows.snapshot
        said = state.find(_SAID) or self._said(pod, snapshot)
        found = scoring.worths(snapshot, self._looked_up(terms, snapshot).preferred, said)
        if not found:
            return fwk.SKIP
        state.write(_WORTHS, found)
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) see `scoring.raw_scores`."""
        return scoring.raw_scores(rows, state.read(_WORTHS))

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        """(R,) see `scoring.normalized`."""
        return scoring.normalized(scores)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Fewer required terms; see `advice.suggestions`."""
        return advice.suggestions(pod)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without any required term."""
        return advice.without_requirements(pod)

    def _looked_up(self, terms: PodTerms, snapshot: fwk.Snapshot) -> PodTerms:
        if terms is NO_TERMS:
            return terms
        namespaces, table = self._namespaces, snapshot.objects.namespaces
        return PodTerms(
            affinity=tuple(namespaces.looked_up(term, table) for term in terms.affinity),
            anti_affinity=tuple(namespaces.looked_up(term, table) for term in terms.anti_affinity),
            preferred=tuple(WeightedTerm(weighted.weight, namespaces.looked_up(weighted.term, table)) for weighted in terms.preferred),
        )

    def _said(self, pod: fwk.Pod, snapshot: fwk.Snapshot) -> Said:
        namespace = snapshot.objects.namespaces.get(pod.namespace)
        namespace_labels = namespace.metadata.labels if namespace is not None else {}
        incoming = Incoming(pod.namespace, frozenset(pod.labels.items()), frozenset(namespace_labels.items()))
        existing = snapshot.tallies.index(fwk.Attribute.AFFINITY, ExistingTerms)
        return existing.about(incoming, self._args.hard_pod_affinity_weight)


def _terms(pod: fwk.Pod) -> PodTerms:
    stanzas = affinity_class(pod)
    return terms_of(stanzas) if stanzas is not None else NO_TERMS


def _wishes(pod: fwk.Pod) -> bool:
    """Whether the pod has preferred terms, be they readable or not."""
    affinity = pod.spec.affinity
    stanzas = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(stanza is not None and stanza.preferred for stanza in stanzas)
