"""What nodes lack of what a pod demands of them: taints, labels, host ports, and resources."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from extender.answers.explain.advice import Asked, NodeFact
from extender.answers.parts import PodName
from extender.answers.phrases import all_of, plural
from extender.engine.framework.interface import listed
from extender.engine.plugins.inter_pod_affinity.counting import all_match, pods_matching_all
from extender.engine.plugins.inter_pod_affinity.terms import NO_TERMS, SelectedNamespaces, Term, terms_of
from extender.engine.plugins.node_declared_features import required_features
from extender.engine.plugins.node_ports import conflicting_ports, port_in_words
from extender.engine.plugins.taints import UNSCHEDULABLE_TAINT, prospect_of, taint_in_words
from extender.engine.snapshot.matching import node_selector_mask
from extender.engine.snapshot.pod_attributes import affinity_class, host_ports, required_terms
from extender.values import limits
from extender.values.near_names import near_names
from extender.values.objects.extended_resources import backed_resources, extended_resources_of
from extender.values.objects.meta import LabelSelector, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import Taint
from extender.values.objects.node_selectors import node_selector_of
from extender.values.objects.pod import Affinity, Pod, PodAffinityTerm
from extender.values.objects.resource_amounts import filter_requests
from extender.values.objects.resource_names import is_extended_resource_name
from extender.values.objects.tolerations import find_untolerated_taint, tolerations_of

_NEAR: Final = 3
_CORDON: Final = UNSCHEDULABLE_TAINT.key
_PROSPECTS: Final = {
    "": "",
    "soon usable": ", until its agent is ready",
    "going": ", because it is about to be removed",
}


def taint_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields the taints of nodes near by that the pod does not tolerate, and what becomes of such nodes."""
    tolerations = tolerations_of(question.pod)
    for node in question.nearest:
        taints: list[Taint] = [
            taint
            for taint in node.spec.taints
            # A cordon is said by the plugin that is there for it.
            if find_untolerated_taint([taint], tolerations) and not (node.spec.unschedulable and taint.key == _CORDON)
        ]
        if taints:
            prospect = max(map(prospect_of, taints), key=["", "soon usable", "going"].index)
            yield NodeFact(f"tainted {all_of(map(taint_in_words, taints))}{_PROSPECTS[prospect]}", node.name)


def label_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields each demand on labels that no node meets, with the nearest labels that nodes have; of several, on how many
    nodes each is met.
    """
    counts: list[str] = []
    for demand in _label_demands(question.pod):
        alone = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[demand])])
        number = int(np.count_nonzero(node_selector_mask(question.snapshot, node_selector_of(alone))))
        demand_text = _in_words(demand.key, demand.operator, demand.values)
        counts.append(f"{demand_text} on {number}")
        if not number:
            near = _values_of(question, demand.key) or _like(question, demand.key)
            yield NodeFact(f"no node has {demand_text}{f'; {near}' if near else ''}")
    if len(counts) > 1:
        yield NodeFact(f"of {plural(len(question.snapshot.nodes), 'node')}: {', '.join(counts)}")


def _label_demands(pod: Pod) -> list[NodeSelectorRequirement]:
    """Returns the entries of the node selector and the expressions of the required affinity, each once."""
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    terms = of_nodes.required.node_selector_terms if of_nodes is not None and of_nodes.required is not None else ()
    demands = [
        NodeSelectorRequirement(key=key, operator="In", values=[value])
        for key, value in (pod.spec.node_selector or {}).items()
    ]
    demands += [demand for term in terms for demand in term.match_expressions]
    return [*{_in_words(demand.key, demand.operator, demand.values): demand for demand in demands}.values()][
        : limits.FACTS - 1
    ]


def _in_words(key: str, operator: str, values: Sequence[str]) -> str:
    if operator == "In" and len(values) == 1:
        return f"{key}={values[0]}"
    return f"{key} {operator} ({', '.join(values)})" if values else f"{key} {operator}"


def _values_of(question: Asked, key: str) -> str:
    """Returns the commonest values of a label, with the number of nodes that have each."""
    if key not in question.snapshot.nodes.label_keys:
        return ""
    column = question.snapshot.nodes.label(key)
    counts = Counter(column.codes[column.codes >= 0].tolist()).most_common(_NEAR)
    return ", ".join(f"{key}={column.values[code]} on {count}" for code, count in counts)


def _like(question: Asked, key: str) -> str:
    """Returns the label that is written most like this one, with its commonest values; empty if none is like it."""
    labels = near_names(key, sorted(question.snapshot.nodes.label_keys), similarity=0.6)
    return _values_of(question, labels[0]) if labels else ""


def port_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each node near by which pods have the host ports that the pod wants."""
    ports = host_ports(question.pod)
    for place in question.refused[: limits.FACT_NODES].tolist():
        for slot in question.snapshot.pods.on_node[place]:
            pod = question.snapshot.pod_at(slot)
            for port in sorted(conflicting_ports(ports, host_ports(pod))):
                name = question.snapshot.nodes.objects[place].name
                yield NodeFact(f"the host port {port_in_words(port)} is taken by {pod.key}", name, (PodName.of(pod),))


def resource_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields requested resources that no node offers, and pods near by whose resize has not been done."""
    nodes = question.snapshot.nodes.objects
    backed = backed_resources(frozenset(extended_resources_of(question.pod)), question.snapshot.objects.device_classes)
    for name, amount in filter_requests(question.pod).scalar.items():
        if amount and name not in backed and not any(name in node.status.allocatable for node in nodes):
            if is_extended_resource_name(name):
                yield NodeFact(f"no node offers {name}: is its device plugin running?")
            else:
                yield NodeFact(f"no node offers {name}")
    for place in question.refused[: limits.NEAREST_NODES].tolist():
        for slot in question.snapshot.pods.on_node[place]:
            pod = question.snapshot.pod_at(slot)
            for condition in pod.status.conditions:
                if condition.type == "PodResizePending" and condition.status == "True":
                    text = f"the resize of {pod.key} is {condition.reason.lower() or 'pending'}"
                    counts = "" if condition.reason == "Infeasible" else ", and what it asks for counts"
                    yield NodeFact(f"{text}{counts}", nodes[place].name, (PodName.of(pod),))


def feature_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each feature of kubelets that the pod needs how many nodes declare it."""
    nodes = question.snapshot.nodes.objects
    for feature in sorted(required_features(question.pod)):
        number = sum(feature in node.status.declared_features for node in nodes)
        yield NodeFact(f"{number} of {plural(len(nodes), 'node')} with the feature {feature}")


def pod_affinity_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each required term of the pod how many pods it selects, and in how many domains these are; and whose
    anti-affinity keeps the pod from nodes near by.
    """
    snapshot = question.snapshot
    for kind, pod_term, term in islice(_required(question), limits.FACTS):
        pods_per_node = snapshot.tally(*pods_matching_all((term,), all_match((term,)))).per_node
        codes = snapshot.nodes.label(term.topology_key).codes
        domains, all_domains = (
            {code for code in values.tolist() if code >= 0} for values in (codes[pods_per_node > 0], codes)
        )
        where = f"in {len(domains)} of {plural(len(all_domains), 'value')} of {term.topology_key}"
        which = f"{_selected(pod_term.label_selector)}{_of_namespaces(pod_term)}"
        yield NodeFact(f"{kind} {which}: {plural(int(pods_per_node.sum()), 'such pod')}, {where}")
    yield from _kept_away(question)


def _required(question: Asked) -> Iterator[tuple[str, PodAffinityTerm, Term]]:
    """Yields each required term as it is written, and with the namespaces that it selects."""
    stanzas, affinity = affinity_class(question.pod), question.pod.spec.affinity or Affinity()
    terms = NO_TERMS if stanzas is None else terms_of(stanzas)
    terms = SelectedNamespaces().resolved(terms, question.snapshot.objects.namespaces)
    for pod_term, term in zip(required_terms(affinity.pod_affinity), terms.affinity, strict=False):
        yield "affinity to", pod_term, term
    for pod_term, term in zip(required_terms(affinity.pod_anti_affinity), terms.anti_affinity, strict=False):
        yield "anti-affinity to", pod_term, term


def _of_namespaces(term: PodAffinityTerm) -> str:
    """Returns where a term looks for pods, if not in the pod's own namespace."""
    selector = term.namespace_selector
    if selector is not None and not (selector.match_labels or selector.match_expressions):
        return " in every namespace"
    where = [f"the {listed('namespace', term.namespaces)}"] if term.namespaces else []
    where += [f"namespaces with {_selected(selector)}"] if selector is not None else []
    return f" in {all_of(where)}" if where else ""


def _kept_away(question: Asked) -> Iterator[NodeFact]:
    """Yields for each node near by the domains that existing pods forbid to this one, and the first of these pods."""
    pod, nodes = question.pod, question.snapshot.nodes.objects
    namespace = question.snapshot.objects.namespaces.get(pod.namespace)
    labels = namespace.labels if namespace is not None else {}
    forbidden: defaultdict[tuple[str, str | None], dict[PodName, str]] = defaultdict(dict)
    for place, slots in enumerate(question.snapshot.pods.on_node):
        for other in map(question.snapshot.pod_at, slots):
            required = required_terms((other.spec.affinity or Affinity()).pod_anti_affinity)
            terms = terms_of(stanzas) if required and (stanzas := affinity_class(other)) else NO_TERMS
            for pod_term, term in zip(required, terms.anti_affinity, strict=False):
                if term.matches(pod.namespace, pod.labels, labels):
                    # A term of another namespace is not shown: its reader may not be allowed to see it.
                    to = f" to {_selected(pod_term.label_selector)}" if other.namespace == pod.namespace else ""
                    domain = term.topology_key, nodes[place].labels.get(term.topology_key)
                    forbidden[domain].setdefault(PodName.of(other), to)
    for node in question.nearest:
        for key, value in node.labels.items():
            if pods := forbidden.get((key, value)):
                name, to = next(iter(pods.items()))
                more = f", and of {plural(len(pods) - 1, 'other')}," if len(pods) > 1 else ""
                text = f"the anti-affinity of {name.key}{to}{more} keeps it out of {key}={value}"
                yield NodeFact(text, node.name, (name,))


def _selected(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pod"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    parts += [
        _in_words(requirement.key, requirement.operator, requirement.values)
        for requirement in selector.match_expressions
    ]
    return all_of(parts) if parts else "every pod"
