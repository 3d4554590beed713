"""LeaseLock: the Lease object that records the leader.

Upstream: client-go/tools/leaderelection/resourcelock, leaselock.go.
"""

from typing import Any, Final, final

import msgspec

from extender.client.client import Client
from extender.client.paths import path
from extender.values.objects.cluster import Key

GROUP: Final = "coordination.k8s.io"


class LeaseError(Exception):
    """The lease cannot be read."""


@final
class LeaderElectionRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of the lease. Times are texts, because clocks of other replicas are not trusted."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    leader_transitions: int = msgspec.field(default=0, name="leaseTransitions")


@final
class LeaseLock:
    """Reads and writes the lease (namespace, name). State: it as last seen, so that no unseen change is overwritten."""

    def __init__(self, client: Client, key: Key, *, timeout: float) -> None:
        self.key = key
        self._client = client
        self._timeout = timeout
        self._leases = path(GROUP, "v1", "leases", namespace=key[0])
        self._path = path(GROUP, "v1", "leases", namespace=key[0], name=key[1])
        self._lease: dict[str, Any] = {}

    def __str__(self) -> str:
        return "/".join(self.key)

    async def get(self) -> LeaderElectionRecord:
        """Returns the spec. Raises NotFound if there is no lease, LeaseError if it cannot be read."""
        return self._decoded(await self._client.get(self._path, timeout=self._timeout))

    async def create(self, record: LeaderElectionRecord) -> None:
        """Creates the lease. Raises AlreadyExists if another replica was faster, or LeaseError."""
        namespace, name = self.key
        lease = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": record,
        }
        self._decoded(await self._client.create(self._leases, lease, timeout=self._timeout))

    async def update(self, record: LeaderElectionRecord) -> None:
        """Updates the lease. Raises Conflict if it has changed since it was last seen, or LeaseError."""
        if not self._lease:
            raise LeaseError("lease not initialized, call get or create first")
        lease = {**self._lease, "spec": record}
        self._decoded(await self._client.update(self._path, lease, timeout=self._timeout))

    def _decoded(self, body: bytes) -> LeaderElectionRecord:
        try:
            lease = msgspec.json.decode(body, type=dict[str, Any])
            typed = msgspec.convert(lease, _Lease)
            spec = {name: value for name, value in typed.spec.items() if value is not None}
            record = msgspec.convert(spec, LeaderElectionRecord)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise LeaseError(f"lease {self} cannot be read: {exc}") from exc
        if typed.kind != "Lease" or typed.metadata.name != self.key[1]:
            raise LeaseError(f"lease {self} was asked for, and {typed.kind!r:.64} {typed.metadata.name!r:.64} came")
        self._lease = lease
        return record


class _Meta(msgspec.Struct):
    name: str = ""


class _Lease(msgspec.Struct):
    kind: str
    metadata: _Meta
    spec: dict[str, Any] = {}
