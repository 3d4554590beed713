"""Minding less which node it is: taints, cordons, labels."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from extender.answers.explain.relaxed_pods import tolerating, without_node_affinity, without_node_selector
from extender.answers.explain.suggestions.situation import MAX_OF_A_SORT, Situation, Suggestion, listed
from extender.objects.meta import NodeSelectorRequirement
from extender.objects.node import Taint
from extender.objects.pod import Affinity, Pod
from extender.objects.tolerations import find_untolerated_taint
from extender.plugins.node_unschedulable import UNSCHEDULABLE_TAINT

_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that say how a node is, rather than whom it is for: the node has to be mended, not the pod."""


def tolerations(situation: Situation) -> Iterator[Suggestion]:
    """Those that the pod lacks for the lists of taints on most nodes."""
    if situation.refusals is None:
        return
    nodes = situation.snapshot.nodes
    codes, counts = np.unique(nodes.taint_set[situation.refusals.only_by("TaintToleration")], return_counts=True)
    lists: Counter[tuple[Taint, ...]] = Counter()
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        lists[_untolerated(situation.pod, nodes.taints_of(code))] += count
    for taints, _ in lists.most_common(MAX_OF_A_SORT):
        if taints:
            yield _tolerating(situation.pod, taints)


def all_tolerations(situation: Situation, place: int) -> Suggestion | None:
    """Those that the pod lacks for the node at this place."""
    nodes = situation.snapshot.nodes
    taints = _untolerated(situation.pod, nodes.taints_of(int(nodes.taint_set[place])))
    return _tolerating(situation.pod, taints) if taints else None


def _tolerating(pod: Pod, taints: Sequence[Taint]) -> Suggestion:
    faults = [taint for taint in taints if taint.key.startswith(_CONDITIONS)]
    meant = [taint for taint in taints if taint not in faults]
    texts = [f"tolerate the {listed('taint', list(map(_written, meant)))}"] if meant else []
    if faults:
        texts.append(f"rid nodes of the {listed('taint', list(map(_written, faults)))}")
    return Suggestion("node" if faults else "toleration", " and ".join(texts), tolerating(pod, taints))


def _untolerated(pod: Pod, taints: Sequence[Taint]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if find_untolerated_taint([taint], pod.spec.tolerations) is not None)


def _written(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def no_cordons(situation: Situation) -> Iterator[Suggestion]:
    """Nodes are opened again: for the pod as if it did not mind, for the cordon and the taint that goes with it are all there is to it."""
    yield Suggestion("node", "uncordon nodes", tolerating(situation.pod, [UNSCHEDULABLE_TAINT]))


def no_cordon(situation: Situation, place: int) -> Suggestion | None:
    """The same, whichever the node."""
    return next(no_cordons(situation))


def fewer_labels(situation: Situation) -> Iterator[Suggestion]:
    """Without each entry of the node selector and each requirement of the node affinity, then without all of them."""
    pod = situation.pod
    selector, requirements = pod.spec.node_selector or {}, _requirements(pod)
    for key, value in islice(selector.items(), MAX_OF_A_SORT):
        yield Suggestion("affinity", f"drop {key}={value} from the node selector", without_node_selector(pod, key))
    for requirement in requirements[:MAX_OF_A_SORT]:
        text = f"drop {_requirement(requirement)} from the node affinity"
        yield Suggestion("affinity", text, without_node_affinity(pod, requirement))
    if len(selector) + len(requirements) > 1:
        yield _no_labels(pod)


def no_labels(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    pod = situation.pod
    return _no_labels(pod) if pod.spec.node_selector or _requirements(pod) else None


def _no_labels(pod: Pod) -> Suggestion:
    named = ["node selector"] if pod.spec.node_selector else []
    named += ["required node affinity"] if _requirements(pod) else []
    return Suggestion("affinity", f"drop the {' and the '.join(named)}", without_node_affinity(without_node_selector(pod)))


def _requirements(pod: Pod) -> list[NodeSelectorRequirement]:
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    terms = of_nodes.required.node_selector_terms if of_nodes is not None and of_nodes.required is not None else []
    found: list[NodeSelectorRequirement] = []
    for term in terms:
        found += [each for each in (*term.match_expressions, *term.match_fields) if each not in found]
    return found


def _requirement(requirement: NodeSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f'"{requirement.key} {requirement.operator}{values}"'
