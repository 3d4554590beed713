"""Selectors, node affinity and tolerations match, print and complain as upstream's packages do."""

from collections.abc import Callable
from typing import Any

import msgspec

from extender.values.objects.decoding import convert
from extender.values.objects.label_selectors import Selector, SelectorError, selector_of
from extender.values.objects.label_syntax import parse_selector
from extender.values.objects.meta import LabelSelector, NodeSelector
from extender.values.objects.node import Node, Taint
from extender.values.objects.node_selectors import (
    node_selector_of,
    preferred_terms,
    required_node_affinity,
    strict_node_selector_of,
)
from extender.values.objects.pod import Pod, Toleration
from extender.values.objects.tolerations import Tolerations, find_untolerated_taint, tolerates
from tests.kit.many_cases import each_case
from tests.parity.cases import component_cases


def of_kind(kind: str) -> Callable[..., Any]:
    return each_case(lambda: [case for case in component_cases("selectors") if case["input"]["kind"] == kind])


def expected_of(case: dict[str, Any]) -> dict[str, Any]:
    """The answer without the list of texts that Go's map order chose from."""
    return {name: value for name, value in case["expect"].items() if name != "errorOneOf"}


def matched(case: dict[str, Any], select: Callable[[], Selector]) -> dict[str, Any]:
    try:
        selector = select()
    except SelectorError as exc:
        is_one_of = str(exc) in case["expect"].get("errorOneOf", [])
        return {"error": case["expect"]["error"] if is_one_of else str(exc)}
    return {
        "match": selector.matches(case["input"]["labels"] or {}),
        "string": str(selector),
        "empty": selector.is_empty,
    }


@of_kind("labelSelector")
def test_label_selectors(case: dict[str, Any]) -> None:
    """A label selector object matches the same labels, prints the same, or is refused with the same words."""
    selector = None if case["input"]["selector"] is None else convert(LabelSelector, case["input"]["selector"])

    answer = matched(case, lambda: selector_of(selector))

    assert expected_of(case) == answer


@of_kind("selectorString")
def test_selector_texts(case: dict[str, Any]) -> None:
    """A selector written as text matches the same labels, prints the same, or is refused with the same words."""
    answer = matched(case, lambda: parse_selector(case["input"]["string"]))
    answer.pop("empty", None)

    assert expected_of(case) == answer


@of_kind("nodeSelector")
def test_node_selectors(case: dict[str, Any]) -> None:
    """A node selector matches the same nodes; read strictly it is refused for any fault, read lazily only when nothing
    else matched.
    """
    selector, node = convert(NodeSelector, case["input"]["nodeSelector"]), convert(Node, case["input"]["node"])
    try:
        answer: dict[str, Any] = {"match": strict_node_selector_of(selector).matches(node)}
    except SelectorError as exc:
        answer = {"parseError": str(exc)}

    lazy = node_selector_of(selector)

    answer["lazyMatch"] = lazy.matches(node)
    if not answer["lazyMatch"] and lazy.error:
        answer["lazyError"] = lazy.error
    assert case["expect"] == answer


@of_kind("podNodeAffinity")
def test_pod_node_affinity(case: dict[str, Any]) -> None:
    """What a pod demands and prefers of a node is met, scored or complained about alike."""
    pod, node = convert(Pod, case["input"]["pod"]), convert(Node, case["input"]["node"])
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity

    required = required_node_affinity(pod)

    answer: dict[str, Any] = {"match": required.matches(node)}
    if required.error(node):
        answer["error"] = required.error(node)
    if affinity and affinity.preferred is not None:
        try:
            answer["preferredScore"] = preferred_terms(affinity.preferred).score(node)
        except SelectorError as exc:
            answer["preferredError"] = str(exc)
    assert case["expect"] == answer


@of_kind("taints")
def test_taints(case: dict[str, Any]) -> None:
    """The same tolerations cover the same taints, and the same taint is the first that none covers."""
    taints = [convert(Taint, taint) for taint in case["input"]["taints"] or []]
    tolerations = [convert(Toleration, toleration) for toleration in case["input"]["tolerations"] or []]

    first = find_untolerated_taint(taints, Tolerations(tolerations))

    answer = {
        "tolerates": [[tolerates(toleration, taint) for toleration in tolerations] for taint in taints],
        "untolerated": first is not None,
        "untoleratedAnyEffect": find_untolerated_taint(taints, Tolerations(tolerations), effects=None) is not None,
    }
    if first is not None:
        answer["taint"] = {field: value for field, value in msgspec.to_builtins(first).items() if value}
    assert case["expect"] | {"tolerates": case["expect"]["tolerates"] or []} == answer
