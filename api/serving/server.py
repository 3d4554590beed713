"""The server: its address, its connections, how it ends, and the watchdog of its event loop."""

import asyncio
import atexit
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from api.service_state import ServiceState
from api.serving.certificate import Certificate, Loop
from api.serving.http_protocol import limited_protocol
from api.settings.configuration_file import WatchedConfiguration
from api.settings.settings import Settings, listed
from extender.values.klog.logger import Lines, Logger
from extender.values.klog.setup import STDERR
from reprieve.errors import ServiceOverError

PATIENCE: Final = 5.0
"""Seconds without a beat after which it logs; twice as long after each time."""
_FRAMES: Final = 20
_LOOKS: Final = 10
"""Looks in the time of its patience."""

_LOG: Final = Logger(__name__)


@final
class Watchdog:
    """Logs the stack of the watched thread when that has not called `beat` for too long: a plugin that hangs blocks the
    event loop, probes included, so that nothing in the loop can say why.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        """Watches nothing before `start`; the patience is seconds."""
        self._patience = patience
        self._tolerated = patience
        self._last = time.monotonic()
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watches the thread that calls this."""
        self._watched = threading.get_ident()
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """Says that the watched thread is not blocked."""
        now = time.monotonic()
        if self._tolerated > self._patience:
            self._tolerated = self._patience
            _LOG.info(0, "The event loop responds again", seconds=round(now - self._last, 1))
        self._last = now

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._patience / _LOOKS):
            silent = time.monotonic() - self._last
            frame = sys._current_frames().get(self._watched)
            if silent < self._tolerated or frame is None:
                continue
            self._tolerated = 2 * silent
            where = "".join(traceback.format_stack(frame, limit=_FRAMES))
            _LOG.error(None, "The event loop is blocked", seconds=round(silent, 1), where=Lines(where))


_SECONDS_TO_FINISH: Final = 5
_SECONDS_OF_PROGRESS: Final = 3
_TICKS_BETWEEN_LOOKS: Final = 100
"""Ticks between two looks at the files of certificate and configuration; ten ticks are a second."""

_FAILED: Final = ("error_occurred", "error_occured")
"""The attribute of uvicorn's lifespan, in newer and in older versions."""

BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""

_OWN_DESCRIPTORS: Final = 96
"""File descriptors that are kept for files, watches and writes."""
_MIN_CONNECTIONS: Final = 16


@final
class Server(uvicorn.Server):
    """Serves until a signal ends it, or until the service has nothing left to do.

    After the first signal it finishes what is under way, and succeeds; a second signal ends it at once.
    """

    why_over = ""
    """Why it has ended without a signal; empty otherwise."""
    certificate: Certificate | None = None
    """The certificate for HTTPS; None for HTTP."""
    configuration: WatchedConfiguration | None = None
    """The configuration file, if changes of it are to be told of."""
    told_once_it_answers: Sequence[str] = ()
    """Lines for standard error."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._watchdog = Watchdog()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to serve; SIGUSR2 then logs cache and queue. Upstream: the scheduler's cache debugger."""
        progress = asyncio.create_task(_tell_of_starting(), name="progress")
        try:
            await super().startup(sockets)
        finally:
            progress.cancel()
        if self.started:
            for line in self.told_once_it_answers:
                STDERR.write_line(line)
        service = _face(self.config.app)
        if service is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, service.backend.debug)

    async def main_loop(self) -> None:
        """Serves until it is time to end. The watchdog logs what blocks the event loop meanwhile."""
        self._watchdog.start()
        try:
            await super().main_loop()
        finally:
            self._watchdog.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals until the process ends, so that its exit code and its last line say how it has ended."""
        # uvicorn would restore the previous handlers first, of which the default one kills.
        if threading.current_thread() is threading.main_thread():
            # Ignored by whoever started the process, it would keep from us how children end.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in HANDLED_SIGNALS:
                signal.signal(number, self.handle_exit)
                # Python restores the default before the process has ended.
                atexit.register(signal.signal, number, signal.SIG_IGN)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Upstream: apiserver/pkg/server/signal.go, SetupSignalHandler."""
        if self.should_exit:
            STDERR.write_line("reprieve: ended by a second signal, with requests unfinished")
            os._exit(ServiceOverError.exit_code)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        self._watchdog.beat()
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            if self.certificate is not None:
                self.certificate.renew()
            if self.configuration is not None:
                self.configuration.look()
        service = _face(self.config.app)
        if service is not None and service.why_over():
            self.why_over = service.why_over()
        elif any(getattr(self.lifespan, name, False) for name in _FAILED):
            self.why_over = "the service has failed; see its log"
        return bool(self.why_over) or await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops deciding at once, ends watches, which never end by themselves, then waits for requests to finish."""
        service = _face(self.config.app)
        if service is None:
            await super().shutdown(sockets)
            return
        if service.kubernetes is not None:
            service.kubernetes.close()
        service.streams.close()
        async with asyncio.TaskGroup() as group:
            group.create_task(_finished(service), name="finishing")
            await super().shutdown(sockets)
        self.why_over = self.why_over or service.why_over()


async def _tell_of_starting() -> None:
    """Says every few seconds that the service is not there yet, until cancelled."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(_SECONDS_OF_PROGRESS)
        STDERR.write_line(f"reprieve is starting: reading the cluster ({time.monotonic() - began:.0f} s so far)")


async def _finished(service: ServiceState) -> None:
    await service.backend.finish()


def _face(app: object) -> ServiceState | None:
    return getattr(app.state, "service", None) if isinstance(app, Starlette) else None


def _most_connections() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - _OWN_DESCRIPTORS, _MIN_CONNECTIONS)


def make_server(app: ASGIApp, settings: Settings) -> Server:
    """Returns a server that is not started; logging stays. Raises StartUpError for an unusable certificate."""
    server = Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.listening_port,
            loop=f"{Loop.__module__}:{Loop.__qualname__}",
            http=limited_protocol(settings, _most_connections()),
            ws="none",
            lifespan="on",
            log_config=None,
            ssl_certfile=settings.tls_cert_file,
            ssl_keyfile=settings.tls_private_key_file,
            ssl_ca_certs=None if settings.client_ca_file is None else str(settings.client_ca_file),
            # Who has no certificate may have a token.
            ssl_cert_reqs=ssl.CERT_NONE if settings.client_ca_file is None else ssl.CERT_OPTIONAL,
            # The access log would hold the raw path of every probe and of every attempt to schedule a pod.
            access_log=False,
            # No proxy stands before the service whose X-Forwarded-For could be trusted.
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.keep_alive_seconds,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
            backlog=BACKLOG,
        )
    )
    if settings.tls_cert_file is not None and settings.tls_private_key_file is not None:
        server.certificate = Certificate(
            server.config,
            settings.tls_cert_file,
            settings.tls_private_key_file,
            settings.client_ca_file,
            settings.tls_min_version,
            listed(settings.tls_cipher_suites),
        )
    return server
