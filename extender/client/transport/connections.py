"""The connections of a `Client`: kept alive, and replaced when certificates rotate."""

import asyncio
import logging
from dataclasses import dataclass
from typing import final

from extender.client.errors import Unreachable
from extender.client.transport.carrier import Carrier
from extender.client.transport.dialing import Route
from extender.client.transport.http1_carrier import Http1Carrier
from extender.values.targets.target import REREAD_SECONDS, CredentialsError, Identity, Target
from extender.values.targets.tls import TlsError, TlsMaterial, context

log = logging.getLogger(__name__)


@final
@dataclass(slots=True, eq=False)
class ConnectionPool:
    """A carrier, and the number of requests that use it."""

    carrier: Carrier
    material: TlsMaterial | None
    """None if the carrier is never replaced."""
    users: int = 0


@final
class Connections:
    """Lends a carrier and an identity for each request.

    When certificates change on disk, new connections use the new ones; the old connections are closed after their last
    request. New certificates that cannot be used (half written, or with a key that does not belong to them) are logged,
    and the old ones stay in use.
    """

    def __init__(self, target: Target, carrier: Carrier | None = None) -> None:
        """Opens nothing yet; uses the carrier, if any, instead of sockets."""
        self._target = target
        self._pool = ConnectionPool(carrier, None) if carrier is not None else None
        self._retired: list[ConnectionPool] = []
        self._key_pair = Identity().key_pair
        self._read_at = 0.0
        self._closed = False

    async def borrow(self) -> tuple[ConnectionPool, Identity]:
        """Returns the pool for the next request, which must be given back, and the identity.

        Raises Unreachable if credentials or certificates cannot be read, and no earlier ones can be used.
        """
        if self._closed:
            raise RuntimeError("the client is closed")
        now = asyncio.get_running_loop().time()
        try:
            identity = await self._target.credentials.identity(now)
            pool = self._pool_for(identity, now)
        except (CredentialsError, TlsError) as error:
            raise Unreachable(str(error)) from error
        pool.users += 1
        return pool, identity

    async def give_back(self, pool: ConnectionPool) -> None:
        """Ends the use of a pool. A pool that was replaced is closed after its last request."""
        pool.users -= 1
        if self._retired:
            await self._close_unused()

    def invalidate(self, refused: Identity) -> None:
        """Reads credentials and certificates again, because the server refused this identity."""
        self._target.credentials.invalidate(refused)
        self._read_at = float("-inf")

    async def aclose(self) -> None:
        """Closes all connections, including those in use."""
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired.clear()
        self._pool = None
        for pool in pools:
            await pool.carrier.aclose()

    async def _close_unused(self) -> None:
        for pool in [retired for retired in self._retired if not retired.users]:
            self._retired.remove(pool)
            await pool.carrier.aclose()

    def _pool_for(self, identity: Identity, now: float) -> ConnectionPool:
        pool = self._pool
        if pool is not None:
            if pool.material is None or (now - self._read_at < REREAD_SECONDS and identity.key_pair == self._key_pair):
                return pool
            self._read_at = now
            self._key_pair = identity.key_pair
            try:
                material = self._target.tls.read(identity.key_pair)
                replacement = (
                    ConnectionPool(_open(self._target, material), material) if material != pool.material else pool
                )
            except TlsError as error:
                log.warning(
                    "New certificates for %s cannot be used, and the old ones stay: %s", self._target.server, error
                )
                return pool
            if replacement is not pool:
                log.info("Certificates for %s have changed", self._target.server)
                self._retired.append(pool)
                self._pool = replacement
            return replacement
        material = self._target.tls.read(identity.key_pair)
        self._read_at = now
        self._key_pair = identity.key_pair
        self._pool = ConnectionPool(_open(self._target, material), material)
        return self._pool


def _open(target: Target, material: TlsMaterial) -> Carrier:
    route = Route(target.server, context(material), server_name=target.tls.server_name, proxy=target.proxy)
    return Http1Carrier(route)
