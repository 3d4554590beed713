"""NodeAffinity: restricts and ranks nodes by the node selector and affinity of the pod, and of the profile."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.matching import (
    node_selector_mask,
    required_node_affinity_mask,
    weights_of_terms,
)
from extender.values import limits
from extender.values.config.args_validation import validate_node_affinity
from extender.values.config.plugin_args import NodeAffinityArgs
from extender.values.golang.field_errors import aggregate
from extender.values.objects.decoding import replaced
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement
from extender.values.objects.node_selectors import (
    NAME_FIELD,
    PreferredTerms,
    RequiredNodeAffinity,
    node_selector_of,
    parsed_node_affinity,
    parsed_preferred_terms,
    preferred_terms,
)
from extender.values.objects.pod import Affinity, NodeAffinity as NodeAffinityStanza

REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT: Final = "pod affinity terms conflict"

_ENCODE: Final = msgspec.json.Encoder().encode

_MATCHING: Final = fwk.StateKey[Mask]("FilterNodeAffinity")
_WEIGHTS: Final = fwk.StateKey[Int64s]("PreScoreNodeAffinity")


@final
class NodeAffinity(
    fwk.SignPlugin, fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin
):
    """Enforces spec.nodeSelector and required node affinity, and prefers nodes that match the preferred terms.

    Upstream: framework/plugins/nodeaffinity/node_affinity.go.
    """

    looks_at_pods = False
    looks_only_at_node = True
    normalizes_by_extremes = True

    def __init__(self, arguments: NodeAffinityArgs | None = None, handle: fwk.Handle | None = None) -> None:
        """Parses `addedAffinity`. Raises SelectorError with all its faults."""
        super().__init__(arguments, handle)
        added = (arguments.added_affinity if arguments else None) or NodeAffinityStanza()
        faults = list(validate_node_affinity("addedAffinity", added))
        if faults:
            raise SelectorError(aggregate(faults))
        self._added_selector = node_selector_of(added.required) if added.required is not None else None
        self._added_terms = preferred_terms(added.preferred) if added.preferred else None

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        action = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL
        return [fwk.on(fwk.EventResource.NODE, action, self._after_node_change)]

    def _after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
        """Raises SelectorError if an invalid term may keep the pod off the node."""
        if self._added_selector is not None and not self._added_selector.matches(new):
            return fwk.QueueingHint.QUEUE_SKIP
        required = parsed_node_affinity(pod)
        return fwk.queue_if(_matches(required, new) and (old is None or not _matches(required, old)))

    def sign_pod(self, pod: fwk.Pod) -> bytes:
        affinity = pod.spec.affinity
        return _ENCODE((pod.spec.node_selector, affinity.node_affinity if affinity is not None else None))

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without requirements; narrows the search to the named nodes if every term names some."""
        required = _required(pod)
        if required is None and self._added_selector is None and pod.spec.node_selector is None:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        names = _named_nodes(required)
        if names is not None and not names:
            return fwk.PreFilterResult(fwk.unresolvable(REASON_CONFLICT))
        return fwk.PreFilterResult(fwk.SUCCESS_EQUAL_PODS, names)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods does not change labels."""
        matching = state.find(_MATCHING)
        if matching is None:
            # Not by PreFilter: for equal pods the Filter is asked about nodes that have changed, and most often there
            # are none.
            matching = required_node_affinity_mask(rows.snapshot, pod)
            state.write(_MATCHING, matching)
        by_pod = fwk.reject(~matching[rows.node], REASON_POD, unresolvable=True)
        if self._added_selector is None:
            return by_pod
        enforced = node_selector_mask(rows.snapshot, self._added_selector)[rows.node]
        return fwk.first_of([fwk.reject(~enforced, REASON_ENFORCED, unresolvable=True), by_pod])

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Skips without preferred terms of pod and profile; Error if one of the pod's is invalid."""
        try:
            preferred = _preferred(pod)
        except SelectorError as exc:
            return fwk.error(str(exc))
        if preferred is None and self._added_terms is None:
            return fwk.SKIP_EQUAL_PODS
        state.write(_WEIGHTS, self._weights(preferred, rows.snapshot))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the sum of the weights of the matching preferred terms; SelectorError if PreScore did not run."""
        weights = state.find(_WEIGHTS)
        if weights is None:
            weights = self._weights(_preferred(pod), rows.snapshot)
        return rows.of_nodes(weights)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return fwk.default_normalize_score(scores)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod without each part of its node selector and required affinity, then without all of them.

        Architecture and operating system stay, since the image is built for them.
        """
        selector, requirements = _wishes(pod)
        for key, value in islice(selector.items(), limits.SUGGESTED_ONE_BY_ONE):
            text = f"drop {key}={value} from the node selector"
            yield fwk.Suggestion("affinity", text, without_node_selector(pod, key))
        for requirement in requirements[: limits.SUGGESTED_ONE_BY_ONE]:
            yield _without_requirement(pod, requirement)
        if len(selector) + len(requirements) > 1:
            yield _without_demands(pod)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without the entries of node selector and required node affinity that may be dropped."""
        return _without_demands(pod) if any(_wishes(pod)) else None

    def _weights(self, preferred: PreferredTerms | None, snapshot: fwk.Snapshot) -> Int64s:
        weights = np.zeros(len(snapshot.nodes), np.int64)
        for terms in (self._added_terms, preferred):
            if terms is not None:
                weights += weights_of_terms(snapshot, terms)
        return weights


def _required(pod: fwk.Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required if affinity else None


def _preferred(pod: fwk.Pod) -> PreferredTerms | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not affinity or affinity.preferred is None:
        return None
    return parsed_preferred_terms(affinity.preferred)


def _named_nodes(required: NodeSelector | None) -> frozenset[str] | None:
    """Returns the nodes that the terms name; None if a term names none, so that every node may match."""
    if required is None or not required.node_selector_terms:
        return None
    names: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        node_sets = [
            frozenset(field.values) for field in term.match_fields if field.key == NAME_FIELD and field.operator == "In"
        ]
        if not node_sets:
            return None
        names |= frozenset.intersection(*node_sets)
    return names


def _matches(required: RequiredNodeAffinity, node: fwk.Node) -> bool:
    if required.matches(node):
        return True
    error = required.error(node)
    if error is not None:
        raise SelectorError(error)
    return False


# Advice.


_BUILT_FOR: Final = frozenset(
    ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
)


def _wishes(pod: fwk.Pod) -> tuple[dict[str, str], list[NodeSelectorRequirement]]:
    """Returns the entries of the node selector and the requirements of the affinity that may be dropped."""
    selector = {key: value for key, value in (pod.spec.node_selector or {}).items() if key not in _BUILT_FOR}
    return selector, [requirement for requirement in _requirements(pod) if requirement.key not in _BUILT_FOR]


def _without_demands(pod: fwk.Pod) -> fwk.Suggestion:
    selector, requirements = _wishes(pod)
    if len(selector) == len(pod.spec.node_selector or {}) and len(requirements) == len(_requirements(pod)):
        parts = ["node selector"] if selector else []
        parts += ["required node affinity"] if requirements else []
        changed = without_node_affinity(without_node_selector(pod))
        return fwk.Suggestion("affinity", f"drop the {' and the '.join(parts)}", changed)
    texts = [f"drop {key}={value} from the node selector" for key, value in selector.items()]
    pod = without_node_selector(pod, *selector) if selector else pod
    for requirement in requirements:
        one = _without_requirement(pod, requirement)
        texts.append(one.text)
        pod = one.pod
    return fwk.Suggestion("affinity", " and ".join(texts), pod)


def _without_requirement(pod: fwk.Pod, requirement: NodeSelectorRequirement) -> fwk.Suggestion:
    changed, words = without_node_affinity(pod, requirement), _written(requirement)
    is_all = _required(changed) is None
    text = f"drop the required node affinity, {words}" if is_all else f"drop {words} from the node affinity"
    return fwk.Suggestion("affinity", text, changed)


def _requirements(pod: fwk.Pod) -> list[NodeSelectorRequirement]:
    required = _required(pod)
    terms = required.node_selector_terms if required is not None else ()
    every = (requirement for term in terms for requirement in (*term.match_expressions, *term.match_fields))
    return [
        *{(requirement.key, requirement.operator, *requirement.values): requirement for requirement in every}.values()
    ]


def _written(requirement: NodeSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f'"{requirement.key} {requirement.operator}{values}"'


def without_node_selector(pod: fwk.Pod, *keys: str) -> fwk.Pod:
    """Returns the pod without these entries of its node selector; without keys, without all of it."""
    selector = pod.spec.node_selector or {}
    remaining = {key: value for key, value in selector.items() if key not in keys} if keys else {}
    return replaced(pod, spec=replaced(pod.spec, node_selector=remaining or None))


def without_node_affinity(pod: fwk.Pod, *requirements: NodeSelectorRequirement) -> fwk.Pod:
    """Returns the pod without these requirements of its node affinity; without all of it if none is named.

    A term without requirements would match no node, so it goes, and the others stay: one of them has to match. With the
    last one the required affinity goes.
    """
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    if of_nodes is None or of_nodes.required is None:
        return pod
    required = None
    if requirements:
        terms = [
            replaced(
                term,
                match_expressions=[
                    requirement for requirement in term.match_expressions if requirement not in requirements
                ],
                match_fields=[requirement for requirement in term.match_fields if requirement not in requirements],
            )
            for term in of_nodes.required.node_selector_terms
        ]
        nonempty_terms = [term for term in terms if term.match_expressions or term.match_fields]
        required = NodeSelector(node_selector_terms=nonempty_terms) if nonempty_terms else None
    affinity = replaced(pod.spec.affinity or Affinity(), node_affinity=replaced(of_nodes, required=required))
    return replaced(pod, spec=replaced(pod.spec, affinity=affinity))
