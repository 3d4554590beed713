"""Scheduling rules, as people write them in YAML: given a cluster, when something happens, then something holds."""

from typing import Any, final

import msgspec

from extender.objects.decoding import DecodeError, convert
from extender.objects.node import Taint


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a rule. What it does not know it refuses."""


@final
class NodeGroup(_Part, frozen=True, kw_only=True):
    """Equal nodes."""

    count: int = 1
    name: str = "node"
    """Theirs are `node-1`, `node-2`, ...; that of a single one is as written."""
    zones: tuple[str, ...] = ()
    """The nodes take turns."""
    cpu: str | int | float = "8"
    memory: str | int = "32Gi"
    pods: int = 110
    resources: dict[str, str | int] = {}
    """Further ones: extended resources, ephemeral-storage."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


@final
class Given(_Part, frozen=True, kw_only=True):
    """The cluster."""

    nodes: NodeGroup | tuple[NodeGroup, ...] = ()
    existing: str | tuple[str, ...] = ()
    """Files or folders: manifests, or a dump of a cluster. Pods without a node are placed before anything else happens."""
    objects: tuple[dict[str, Any], ...] = ()
    """The same, written here."""
    configuration: str | dict[str, Any] | None = None
    """A KubeSchedulerConfiguration: a file, or written here."""


@final
class When(_Part, frozen=True, kw_only=True):
    """What happens."""

    apply: str | tuple[str, ...] = ()
    """Files or folders with manifests."""
    create: tuple[dict[str, Any], ...] = ()
    """The same, written here."""
    drain: str | tuple[str, ...] = ()
    remove: str | tuple[str, ...] = ()


@final
class Spread(_Part, frozen=True, kw_only=True):
    """How evenly pods are spread over the values of a node label."""

    by: str
    """The label; `zone`, `region` and `hostname` stand for the well-known ones."""
    max_skew: int = 1


@final
class Expectation(_Part, frozen=True, kw_only=True):
    """What holds in the end. Everything that is written has to."""

    pods: str | None = None
    """Which pods it is about, as `kubectl -l` has them, with `name=`, `namespace=` and `priorityClass=` besides. None: those that were
    applied, or had to look for a place."""
    placed: int | None = None
    pending: int | None = None
    nodes: int | None = None
    """On how many nodes they are, together."""
    on_nodes: str | None = None
    """Labels of the nodes that all of them are on. (Not `on`, which YAML takes for true.)"""
    not_on_nodes: str | None = None
    """Labels of nodes that none of them is on."""
    spread: Spread | None = None
    message: str | None = None
    """What each that is pending is told contains this."""
    evicted: int | None = None
    """How many of them lose their place."""
    evicts: str | None = None
    """Pods of which at least one loses its place."""
    no_preemption_of: str | None = None
    """Pods of which none is pushed out by another."""
    no_eviction_of: str | None = None
    """Pods of which none loses its place, for whatever reason."""


@final
class Rule(_Part, frozen=True, kw_only=True):
    """One rule."""

    name: str = ""
    given: Given = Given()
    when: When = When()
    then: tuple[Expectation, ...]


def read_rule(document: object) -> Rule:
    """The rule that the values of a YAML document are.

    Raises:
        DecodeError: they are none; the message says where, and what is unknown there.
    """
    rule = convert(Rule, document)
    if not rule.then:
        raise DecodeError("a rule that expects nothing - at `$.then`")
    for place, expectation in enumerate(rule.then):
        if expectation in (Expectation(), Expectation(pods=expectation.pods)):
            raise DecodeError(f"an expectation that expects nothing - at `$.then[{place}]`")
    return rule


def listed(value: "str | tuple[str, ...]") -> tuple[str, ...]:
    """One or many, as many."""
    return (value,) if isinstance(value, str) else value
