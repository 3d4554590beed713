"""What plugins may do to pods that are held at Permit, and how they have pods tried next.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, WaitingPod;
pkg/scheduler/framework/interface.go, PodsToActivate (v1.36.2).
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from extender.framework.cycle_state import StateKey
from extender.objects.pod import Pod

PODS_TO_ACTIVATE: Final = StateKey[dict[str, Pod]]("kubernetes.io/pods-to-activate")
"""namespace/name -> pod. What a plugin puts in there is tried next, whatever it waits for: once the pod of the cycle has a node, and again
once it is bound."""


class WaitingPod(Protocol):
    """A pod that Permit plugins hold."""

    @property
    def pod(self) -> Pod:
        """The pod, with its node."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """Who still holds it."""

    def allow(self, plugin: str) -> None:
        """The plugin holds the pod no more; when none does, the pod goes on."""

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod in the name of the plugin; False if it was decided already."""


class WaitingPods(Protocol):
    """All pods that are held, of all profiles."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those that are held now."""

    def get(self, uid: str) -> WaitingPod | None:
        """The pod, if it is held."""
