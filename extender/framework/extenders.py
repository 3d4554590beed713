"""What preemption asks of HTTP extenders, and what it is told.

Upstream: staging/src/k8s.io/kube-scheduler/framework/extender.go, Extender, the preemption part (v1.36.2).
"""

from collections.abc import Sequence
from typing import Protocol

from extender.framework.preemption import Candidate
from extender.objects.pod import Pod
from extender.snapshot import Snapshot


class PreemptionExtender(Protocol):
    """An HTTP extender that wants a say in who is preempted."""

    @property
    def name(self) -> str:
        """As people know it: its address."""

    @property
    def is_ignorable(self) -> bool:
        """Whether the scheduler goes on without it when it fails."""

    def is_interested(self, pod: Pod) -> bool:
        """Whether the pod asks for a resource that the extender manages."""

    async def process_preemption(self, pod: Pod, candidates: Sequence[Candidate], snapshot: Snapshot) -> Sequence[Candidate]:
        """The candidates the extender agrees to, with the victims it wants: nodes of the snapshot, each with pods that are on it.

        Raises:
            ExtenderError: it failed, or names nodes or pods that the snapshot does not have.
        """
