"""What a pod was told holds for all that are equal to it, until something happens."""

from dataclasses import dataclass
from typing import final

from extender.answers.types import PreemptionAnswer
from extender.objects.pod import Pod
from extender.runtime.memory import signature_of


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """What was said to a pod."""

    message: str
    preemption: PreemptionAnswer | None


@final
class RefusedAlike:
    """State: by the signature of pods, what they were told, and how much had happened then."""

    def __init__(self) -> None:
        self._told: dict[bytes, tuple[int, Refusal]] = {}

    def told(self, pod: Pod, happened: int) -> Refusal | None:
        """What a pod like this one was told, if nothing has happened since."""
        happened_then, refusal = self._told.get(_signature(pod), (-1, None))
        return refusal if happened_then == happened else None

    def tell(self, pod: Pod, happened: int, refusal: Refusal) -> None:
        """This pod was told so."""
        signature = _signature(pod)
        if signature:
            self._told[signature] = happened, refusal


def _signature(pod: Pod) -> bytes:
    """Equal for pods that are told the same; empty for those that have something of their own."""
    if pod.spec.resource_claims or pod.status.nominated_node_name or any(volume.ephemeral is not None for volume in pod.spec.volumes):
        return b""
    return signature_of(pod)
