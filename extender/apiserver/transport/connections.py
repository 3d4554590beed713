"""The connections behind a `Client`: opened with the certificates in force, kept alive, replaced when certificates rotate."""

import asyncio
import logging
from dataclasses import dataclass
from typing import final

from extender.apiserver.credentials.target import REREAD_SECONDS, CredentialsError, Identity, Target
from extender.apiserver.credentials.tls import TlsError, TlsMaterial, context
from extender.apiserver.errors import Unreachable
from extender.apiserver.transport.carrier import Carrier
from extender.apiserver.transport.dialing import Route
from extender.apiserver.transport.http1_carrier import Http1Carrier

log = logging.getLogger(__name__)


@final
@dataclass(slots=True, eq=False)
class ConnectionPool:
    """One carrier, and how many are using it."""

    carrier: Carrier
    material: TlsMaterial | None
    """None: not ours to replace."""
    users: int = 0


@final
class Connections:
    """Lends a carrier and an identity for each request.

    When certificates change on disk, new connections use the new ones; the old connections end with their last request. A change that can
    not be used (half written, or a key that does not belong to the certificate) is logged, and what was in force stays.
    """

    def __init__(self, target: Target, carrier: Carrier | None = None) -> None:
        """Nothing is opened yet. `carrier`: instead of sockets."""
        self._target = target
        self._pool = ConnectionPool(carrier, None) if carrier is not None else None
        self._retired: list[ConnectionPool] = []
        self._key_pair = Identity().key_pair
        self._read_at = 0.0
        self._closed = False

    async def borrow(self) -> tuple[ConnectionPool, Identity]:
        """What carries the next request, to be given back, and who we are.

        Raises:
            Unreachable: when credentials or certificates can not be had, and none are in force.
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
        """The request is over. A carrier that was replaced ends with its last request."""
        pool.users -= 1
        if self._retired:
            await self._close_unused()

    def doubt(self, refused: Identity) -> None:
        """The server refused this identity: credentials and certificates are read again before the next request."""
        self._target.credentials.doubt(refused)
        self._read_at = float("-inf")

    async def aclose(self) -> None:
        """Ends all connections, those in use too."""
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
                replacement = ConnectionPool(_open(self._target, material), material) if material != pool.material else pool
            except TlsError as error:
                log.warning("New certificates for %s can not be used, and the old ones stay: %s", self._target.server, error)
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
