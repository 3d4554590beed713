"""The service behind a server that is not ours, such as `uvicorn api.main:app`: what it says at its start, and how it
ends. Bounds on connections and heads of requests are that server's.
"""

import asyncio
import errno
import fcntl
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from msgspec.structs import replace

from api.cluster_source import EmbeddedCluster, FollowedCluster
from api.service_state import ServiceState
from api.serving.announcement import announcement
from api.settings.settings import Settings, read_settings
from api.starting import Opens, decides, prepare
from extender.values.klog.setup import STDERR, escaped
from extender.values.reasons import InputError
from reprieve.errors import StartUpError
from reprieve.sources.configurations import with_fix

NEVER_STARTED: Final = 3
"""The exit code after which gunicorn, and uvicorn from 0.50 on, start no other worker, and end."""


def settings_of_environment() -> Settings:
    """Returns the settings of the environment. The server has one port, which is kubectl's, too."""
    with _errors_in_one_line(sys.exit):
        return replace(read_settings(), kubernetes_port=0)


def opens(settings: Settings) -> Opens:
    """Returns what opens the service that the settings describe, and says which it is, once the server listens."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        # Raised through the server, an error would be a traceback.
        with _errors_in_one_line(os._exit):
            cluster, open_service = prepare(settings)
            if isinstance(cluster, EmbeddedCluster) or decides(settings, cluster):
                _refuse_a_second_worker(cluster)
            async with open_service() as service:
                telling = asyncio.create_task(_tell(service, cluster, settings), name="telling")
                try:
                    yield service
                finally:
                    telling.cancel()

    return opened


async def _tell(service: ServiceState, cluster: FollowedCluster | EmbeddedCluster, settings: Settings) -> None:
    """Says which cluster it is and where, once that is known; ends the server if the service is over."""
    is_told = False
    while not (why := service.why_over()):
        if not is_told and (addresses := [address for address, listens in _bound_sockets().values() if listens]):
            is_told = True
            kubernetes = addresses[:1] if isinstance(cluster, EmbeddedCluster) else []
            for line in announcement(cluster, settings, addresses[0], kubernetes):
                STDERR.write_line(line)
        await asyncio.sleep(1 if is_told else 0.1)
    STDERR.write_line(f"reprieve: {escaped(why)}")
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _errors_in_one_line(end: Callable[[int], object]) -> Iterator[None]:
    try:
        yield
    except InputError as exc:
        words = str(exc) if isinstance(exc, StartUpError) else " ".join(with_fix(exc).split())
        STDERR.write_line(f"reprieve: {escaped(words, len(words))}")
        end(NEVER_STARTED)
        raise


def _refuse_a_second_worker(cluster: FollowedCluster | EmbeddedCluster) -> None:
    """Raises StartUpError in all but one of the processes that a server listens with, and tells their parent to end.

    A lock of this process on their common socket says which one it is. Where there are none, no worker is refused.
    """
    try:
        for descriptor in _bound_sockets():
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except OSError as exc:
        if exc.errno not in (errno.EAGAIN, errno.EACCES):
            return
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        os.kill(parent.pid, signal.SIGTERM)  # older versions of uvicorn would start a worker again and again
    if isinstance(cluster, EmbeddedCluster):
        raise StartUpError(
            "a second worker would be a second cluster in memory, and a request would reach one or the other: start "
            "one worker (--workers 1), or follow a cluster with REPRIEVE_KUBECONFIG"
        )
    raise StartUpError(
        "a second worker would schedule the same pods: start one worker (--workers 1), or leave out REPRIEVE_SCHEDULE"
    )


def _bound_sockets() -> dict[int, tuple[str, bool]]:
    """Returns the process's sockets that have an address and no peer, by descriptor, and whether they listen."""
    sockets = {}
    for descriptor in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # no socket; the folder itself is closed by now
            bound = socket.socket(fileno=descriptor)
            try:
                if address := _address_of(bound):
                    sockets[descriptor] = address, bool(bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            finally:
                bound.detach()  # it is the server's, and closed it would lose its lock
    return sockets


def _address_of(bound: socket.socket) -> str:
    """Returns a socket's own address as people write it; empty if it has a peer, or no address."""
    with suppress(OSError):
        if bound.getpeername() is not None:
            return ""
    name = bound.getsockname()
    if not isinstance(name, tuple):
        return f"unix:{name}" if name else ""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if port else ""
