"""HTTPS connections, whose handshakes are bounded in number and time: a caller that is still unknown costs 60 KB until
then.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, final

import uvloop

from extender.values import limits

_SECONDS_WITHOUT_DESCRIPTORS: Final = 0.1


@final
class TlsListener:
    """Accepts the connections of a socket. It has what uvicorn uses of an asyncio.Server."""

    def __init__(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], listening: socket.socket, context: ssl.SSLContext
    ) -> None:
        """Begins to accept.

        Arguments:
            listening: a socket that listens.
            context: of the server.
        """
        self.sockets: Final = (listening,)
        self._make_protocol: Final = protocol_factory
        self._context: Final = context
        self._handshakes: Final[dict[asyncio.Task[None], None]] = {}
        listening.setblocking(False)
        self._accepting: Final = asyncio.create_task(self._accept(), name="accept HTTPS connections")

    def close(self) -> None:
        """Accepts no more connections, and breaks handshakes off."""
        self._accepting.cancel()
        for task in [*self._handshakes]:
            task.cancel()

    async def wait_closed(self) -> None:
        """Waits until nothing is accepted any more."""
        await asyncio.wait([self._accepting, *self._handshakes])
        self.sockets[0].close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self.sockets[0])
            except OSError as exc:
                if exc.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    await asyncio.sleep(_SECONDS_WITHOUT_DESCRIPTORS)
                continue  # or the caller is gone already
            if len(self._handshakes) >= limits.HANDSHAKES:
                oldest = next(iter(self._handshakes))
                oldest.cancel()
                del self._handshakes[oldest]
            task = asyncio.create_task(self._shake_hands(connection), name="TLS handshake")
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, connection: socket.socket) -> None:
        # A caller that is no TLS client, or goes: uvloop closes the connection.
        with suppress(OSError, TimeoutError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_protocol, connection, ssl=self._context, ssl_handshake_timeout=limits.HANDSHAKE_SECONDS
            )


class Loop(uvloop.Loop):
    """The event loop of the service."""

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *args: Any, **kwargs: Any
    ) -> Any:
        """Returns as uvloop's; with TLS, a `TlsListener` on the socket `sock`, or else on `host` and `port`."""
        context = kwargs.get("ssl")
        if context is None:
            return await super().create_server(protocol_factory, *args, **kwargs)
        listening: socket.socket | None = kwargs.get("sock")
        if listening is None:
            family = socket.AF_INET6 if ":" in kwargs["host"] else socket.AF_INET
            listening = socket.create_server((kwargs["host"], kwargs["port"]), family=family)
        listening.listen(kwargs["backlog"])
        return TlsListener(protocol_factory, listening, context)
