"""The extender protocol's types under Go's field names, as they are answered and documented.

Requests are read member by member (`reading`), because callers may spell names in another case and send null for anything. The types with
parameters stand once for bodies that are left as they were written (`Raw`), once for the objects themselves.

Upstream: kube-scheduler/extender/v1, types.go.
"""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct, field

from api.wire.names import LABEL_PATTERN, MAX_LABEL, MAX_NAME, MAX_UID, NAME_PATTERN, UID_PATTERN
from extender.objects.pod import Pod

MAX_SCORE = 10
"""Upstream: MaxExtenderPriority."""

PodT = TypeVar("PodT")
NodeT = TypeVar("NodeT")

Name = Annotated[str, Meta(pattern=f"^{NAME_PATTERN}$", max_length=MAX_NAME)]
Label = Annotated[str, Meta(pattern=f"^{LABEL_PATTERN}$", max_length=MAX_LABEL)]
Uid = Annotated[str, Meta(pattern=f"^{UID_PATTERN}$", max_length=MAX_UID)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class NodeList(Struct, Generic[NodeT], frozen=True, gc=False):
    """v1.NodeList."""

    metadata: dict[str, str] = {}
    items: list[NodeT] | None = None


class ExtenderArgs(Struct, Generic[NodeT], frozen=True, gc=False):
    """What filter and prioritize are asked: a pod, and nodes either in full or by name."""

    pod: Pod = field(name="Pod")
    nodes: NodeList[NodeT] | None = field(name="Nodes", default=None)
    node_names: list[Name] | None = field(name="NodeNames", default=None)


class ExtenderFilterResult(Struct, Generic[NodeT], frozen=True, gc=False):
    """What filter answers, in the form that was asked. A node that does not pass is in exactly one of the two maps, with the reason.

    `FailedNodes` are those where preemption might help.
    """

    nodes: NodeList[NodeT] | None = field(name="Nodes", default=None)
    node_names: list[str] | None = field(name="NodeNames", default=None)
    failed_nodes: dict[str, str] = field(name="FailedNodes", default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = field(name="FailedAndUnresolvableNodes", default_factory=dict)
    error: str = field(name="Error", default="")


class HostPriority(Struct, frozen=True, gc=False):
    """The score of one node. Prioritize answers a bare list of these."""

    host: str = field(name="Host")
    score: Annotated[int, Meta(ge=0, le=MAX_SCORE)] = field(name="Score")


class MetaPod(Struct, frozen=True, gc=False):
    """A victim by its UID."""

    uid: str = field(name="UID")


class MetaVictims(Struct, frozen=True, gc=False):
    """The victims on one node, the most important first."""

    pods: list[MetaPod] = field(name="Pods")
    num_pdb_violations: Count = field(name="NumPDBViolations", default=0)


class Victims(Struct, frozen=True, gc=False):
    """The victims on one node in full, the most important first."""

    pods: list[Pod] = field(name="Pods")
    num_pdb_violations: Count = field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(Struct, frozen=True, gc=False):
    """What preempt is asked: the preemptor, and the victims on each node either in full or by UID."""

    pod: Pod = field(name="Pod")
    node_name_to_victims: dict[Name, Victims] | None = field(name="NodeNameToVictims", default=None)
    node_name_to_meta_victims: dict[Name, MetaVictims] | None = field(name="NodeNameToMetaVictims", default=None)


class ExtenderPreemptionResult(Struct, frozen=True, gc=False):
    """What preempt answers, always by UID: the nodes that remain, each with at least one victim."""

    node_name_to_meta_victims: dict[str, MetaVictims] = field(name="NodeNameToMetaVictims", default_factory=dict)


class ExtenderBindingArgs(Struct, frozen=True, gc=False):
    """What bind is asked."""

    pod_name: Name = field(name="PodName")
    pod_namespace: Label = field(name="PodNamespace")
    pod_uid: Uid = field(name="PodUID")
    node: Name = field(name="Node")


class ExtenderBindingResult(Struct, frozen=True, gc=False):
    """What bind answers; an empty error means that the pod is bound."""

    error: str = field(name="Error", default="")
