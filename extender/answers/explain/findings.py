"""What the functions behind `facts` are asked, and what they answer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

from extender.answers.explain.advice import Refusals
from extender.answers.parts import PodName
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index
from extender.values import limits
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A pod that a plugin refuses."""

    pod: Pod
    snapshot: Snapshot
    framework: Framework
    refused: Index
    """The places of the nodes that the plugin refuses, nearest first; none if PreFilter refused the pod."""
    refusals: Refusals | None

    @property
    def nearest(self) -> Iterator[Node]:
        """The first of these nodes."""
        return (self.snapshot.nodes.objects[place] for place in self.refused[: limits.FACT_NODES].tolist())


@final
@dataclass(frozen=True, slots=True)
class NodeFact:
    """A fact about one node, or about the cluster."""

    text: str
    node: str = ""
    pods: tuple[PodName, ...] = ()

    @property
    def of_all_nodes(self) -> "NodeFact":
        return replace(self, node="")
