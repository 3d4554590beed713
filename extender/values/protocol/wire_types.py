"""The types of the extender protocol under Go's field names, as they are written and documented.

What comes in is read member by member (`golang.json_bytes`), because others may spell names in another case and send
null for anything. The types with parameters stand once for nodes that are left as they were written (`Raw`), once for
the objects themselves.

Upstream: kube-scheduler/extender/v1, types.go.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta, Struct, field

from extender.values import limits
from extender.values.objects.name_syntax import DNS_LABEL, LABEL_MAX_LENGTH, SUBDOMAIN, SUBDOMAIN_MAX_LENGTH
from extender.values.objects.pod import Pod

MAX_EXTENDER_PRIORITY: Final = 10
"""The highest score that an extender should give. Higher ones count all the same."""

SCORES: Final = {"minimum": 0, "maximum": MAX_EXTENDER_PRIORITY}
"""The scores that we give, for the schema; those of others may be any int64."""

UID: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9._:]*[A-Za-z0-9])?"

NodeT = TypeVar("NodeT")

Name = Annotated[str, Meta(pattern=f"^{SUBDOMAIN}$", max_length=SUBDOMAIN_MAX_LENGTH)]
Label = Annotated[str, Meta(pattern=f"^{DNS_LABEL}$", max_length=LABEL_MAX_LENGTH)]
Uid = Annotated[str, Meta(pattern=f"^{UID}$", max_length=int(limits.UID_CHARACTERS))]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class NodeList(Struct, Generic[NodeT], frozen=True, gc=False):
    """v1.NodeList."""

    metadata: dict[str, str] = {}
    items: list[NodeT] | None = None


class ExtenderArgs(Struct, Generic[NodeT], frozen=True, gc=False):
    """The arguments of filter and prioritize: a pod, and nodes either in full or by name."""

    pod: Pod = field(name="Pod")
    nodes: NodeList[NodeT] | None = field(name="Nodes", default=None)
    node_names: list[Name] | None = field(name="NodeNames", default=None)


class ExtenderFilterResult(Struct, Generic[NodeT], frozen=True, gc=False):
    """The answer of filter, with nodes in the form of the call. A node that does not pass is in one of the two maps,
    with the reason.

    `FailedNodes` are those where preemption might help.
    """

    nodes: NodeList[NodeT] | None = field(name="Nodes", default=None)
    node_names: list[str] | None = field(name="NodeNames", default=None)
    failed_nodes: dict[str, str] = field(name="FailedNodes", default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = field(name="FailedAndUnresolvableNodes", default_factory=dict)
    error: str = field(name="Error", default="")


class HostPriority(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The score of one node. Prioritize answers a bare list of these."""

    # An unknown member may be one of these in another case, which Go accepts. Such entries are then read piece by
    # piece.

    host: str = field(name="Host")
    score: Annotated[int, Meta(extra_json_schema=SCORES)] = field(name="Score")


class MetaPod(Struct, frozen=True, gc=False):
    """A victim by its UID."""

    uid: str = field(name="UID")


class MetaVictims(Struct, frozen=True, gc=False):
    """The victims on one node by UID, the most important first."""

    pods: list[MetaPod] = field(name="Pods", default_factory=list)
    num_pdb_violations: Count = field(name="NumPDBViolations", default=0)

    @classmethod
    def of(cls, uids: Iterable[str], num_pdb_violations: int = 0) -> "MetaVictims":
        return cls(list(map(MetaPod, uids)), num_pdb_violations)

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple([pod.uid for pod in self.pods])


class Victims(Struct, frozen=True, gc=False):
    """The victims on one node in full, the most important first."""

    pods: Sequence[Pod] | None = field(name="Pods", default=None)
    num_pdb_violations: Count = field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(Struct, frozen=True, gc=False):
    """The arguments of preempt: the preemptor, and the victims on each node, in full or by UID; maybe none."""

    pod: Pod = field(name="Pod")
    node_name_to_victims: dict[Name, Victims] | None = field(name="NodeNameToVictims", default=None)
    node_name_to_meta_victims: dict[Name, MetaVictims] | None = field(name="NodeNameToMetaVictims", default=None)


class ExtenderPreemptionResult(Struct, frozen=True, gc=False):
    """The answer of preempt, always by UID: the nodes that remain, each with at least one victim, or with none where
    the call named none and nobody has to go for this extender.
    """

    node_name_to_meta_victims: dict[str, MetaVictims] = field(name="NodeNameToMetaVictims", default_factory=dict)


class ExtenderBindingArgs(Struct, frozen=True, gc=False):
    """The arguments of bind."""

    pod_name: Name = field(name="PodName")
    pod_namespace: Label = field(name="PodNamespace")
    pod_uid: Uid = field(name="PodUID")
    node: Name = field(name="Node")


class ExtenderBindingResult(Struct, frozen=True, gc=False):
    """The answer of bind; an empty error means that the pod is bound."""

    error: str = field(name="Error", default="")
