"""Scheduling rules, as people write them in YAML: given a cluster, when something happens, then something holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from extender.values.objects.decoding import DecodeError, convert
from extender.values.objects.label_selectors import Selector, SelectorError
from extender.values.objects.label_syntax import parse_selector
from extender.values.objects.meta import Object
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, Taint
from extender.values.objects.pod import Pod

_ATTRIBUTES: Final = ("name", "namespace", "priorityClass")


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


@final
class NodeGroup(_Part, frozen=True, kw_only=True):
    """Equal nodes."""

    count: int = 1
    name: str = "node"
    """The name of a single node; several are called `node-1`, `node-2`, ..."""
    zones: tuple[str, ...] = ()
    """The zones to which the nodes are assigned in turn."""
    cpu: str | int | float = "8"
    memory: str | int = "32Gi"
    pods: int = 110
    resources: dict[str, str | int] = {}
    """Other resources: extended ones, ephemeral-storage."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


@final
class Given(_Part, frozen=True, kw_only=True):
    """The cluster of a rule."""

    nodes: NodeGroup | tuple[NodeGroup, ...] = ()
    existing: str | tuple[str, ...] = ()
    """Files or folders: manifests, or a dump of a cluster. Pods without a node are placed before anything else happens.
    """
    objects: tuple[dict[str, Any], ...] = ()
    """The same, written into the rule."""
    configuration: str | dict[str, Any] | None = None
    """A KubeSchedulerConfiguration: a file, or written into the rule."""


@final
class When(_Part, frozen=True, kw_only=True):
    """What happens in a rule."""

    apply: str | tuple[str, ...] = ()
    """Files or folders with manifests."""
    create: tuple[dict[str, Any], ...] = ()
    """The same, written into the rule."""
    drain: str | tuple[str, ...] = ()
    remove: str | tuple[str, ...] = ()


@final
class Spread(_Part, frozen=True, kw_only=True):
    """How evenly pods are spread over the values of a node label."""

    by: str
    """The label; `zone`, `region` and `hostname` stand for the well-known ones."""
    max_skew: int | None = 1
    """The most pods by which one value may exceed another; null for any number."""
    min_domains: int = 0
    """The least number of values that have pods."""


@final
class Expectation(_Part, frozen=True, kw_only=True):
    """What has to hold in the end: every field that is given."""

    pods: str | None = None
    """The pods that it is about, as `kubectl -l` selects them, or by `name=`, `namespace=` and `priorityClass=`. None:
    the pods that were applied or had to be placed.
    """
    placed: int | None = None
    pending: int | None = None
    nodes: int | None = None
    """The number of nodes that the pods are on."""
    on_nodes: str | None = None
    """Labels of the nodes that all of the pods are on. (Not `on`, which YAML takes for true.)"""
    not_on_nodes: str | None = None
    """Labels of nodes that none of the pods is on."""
    spread: Spread | None = None
    message: str | None = None
    """A text in the message of each pending pod."""
    evicted: int | None = None
    """The number of the pods that are evicted."""
    evicts: str | None = None
    """Pods of which at least one is evicted."""
    no_preemption_of: str | None = None
    """Pods of which none is preempted."""
    no_eviction_of: str | None = None
    """Pods of which none is evicted, for any reason."""


@final
class Rule(_Part, frozen=True, kw_only=True):
    """A rule, as one YAML document."""

    name: str = ""
    given: Given = Given()
    when: When = When()
    then: tuple[Expectation, ...]


def read_rule(document: object) -> Rule:
    """Returns the rule in a YAML document. Raises DecodeError, which says where it is none."""
    rule = convert(Rule, document)
    if not rule.then:
        raise DecodeError("a rule that expects nothing - at `$.then`")
    for place, expectation in enumerate(rule.then):
        if expectation in (Expectation(), Expectation(pods=expectation.pods)):
            raise DecodeError(f"an expectation that expects nothing - at `$.then[{place}]`")
    return rule


def listed(value: "str | tuple[str, ...]") -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def nodes_of(groups: NodeGroup | tuple[NodeGroup, ...]) -> Iterator[Object]:
    for group in (groups,) if isinstance(groups, NodeGroup) else groups:
        for number in range(group.count):
            name = group.name if group.count == 1 else f"{group.name}-{number + 1}"
            zone = {ZONE_LABEL: group.zones[number % len(group.zones)]} if group.zones else {}
            amounts = {"cpu": str(group.cpu), "memory": str(group.memory), "pods": str(group.pods)}
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {HOSTNAME_LABEL: name, **zone, **group.labels}},
                "spec": {
                    "taints": [
                        {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in group.taints
                    ]
                },
                "status": {"capacity": amounts | {key: str(amount) for key, amount in group.resources.items()}},
            }


# Which pods an expectation is about.


@final
@dataclass(frozen=True, slots=True)
class PodSelection:
    """Selects pods by their labels, and by their name, namespace or priority class."""

    labels: Selector
    attributes: Mapping[str, str]
    """name, namespace or priorityClass -> the value that a pod has to have."""

    @staticmethod
    def of(text: str) -> "PodSelection":
        """Returns the selection that a text stands for. Raises SelectorError if it cannot be read."""
        attributes: dict[str, str] = {}
        labels: list[str] = []
        for term in _terms(text):
            key, is_equal, value = term.replace("==", "=").partition("=")
            if key.strip() in _ATTRIBUTES and is_equal:
                attributes[key.strip()] = value.strip()
            else:
                labels.append(term)
        return PodSelection(parse_selector(",".join(labels)), attributes)

    def selects(self, pod: Pod) -> bool:
        has = {"name": pod.name, "namespace": pod.namespace, "priorityClass": pod.spec.priority_class_name}
        return all(has[key] == value for key, value in self.attributes.items()) and self.labels.matches(pod.labels)


def _terms(text: str) -> list[str]:
    terms, depth, begin = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            terms.append(text[begin:index])
            begin = index + 1
    terms.append(text[begin:])
    if not any(term.strip() for term in terms):
        raise SelectorError("it selects nothing: give labels as in app=web")
    return terms
