"""SchedulingExtender: what the scheduling cycle asks of an extender; `extender.client` calls those over HTTP.

Upstream: staging/src/k8s.io/kube-scheduler/framework/extender.go, Extender (v1.36.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

from extender.engine.framework import ExtenderError, PreemptionExtender
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import HostPriority


@final
@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The result of an extender's filter."""

    nodes: Sequence[Node]
    """The nodes that pass, in the extender's order: those that were given if it answers by name, else as it sent them
    back.
    """
    failed: dict[str, str]
    """Node name -> reason; preemption might help."""
    failed_and_unresolvable: dict[str, str]
    """Node name -> reason; preemption cannot help."""


class SchedulingExtender(PreemptionExtender, Protocol):
    """An extender that filters, scores, takes part in preemption or binds."""

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_binder(self) -> bool: ...

    @property
    def supports_preemption(self) -> bool: ...

    @property
    def weight(self) -> int:
        """The factor of the extender's scores."""

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        """Returns the nodes on which the pod can run.

        Raises:
            ExtenderError: it failed.
        """

    def unknown_node(self, name: str) -> ExtenderError:
        """Returns the error for a node that the extender lets pass although it was not given."""

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[HostPriority]:
        """Returns the extender's scores, not weighted.

        Raises:
            ExtenderError: it failed.
        """

    def log_score_failure(self, exc: ExtenderError) -> None:
        """Logs a failure to score, which has no other consequence."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds the pod to the node.

        Raises:
            ExtenderError: it is not bound, or the outcome is unknown.
        """

    async def aclose(self) -> None:
        """Closes its connections."""
