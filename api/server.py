"""The HTTP server around the application."""

import socket
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from api.http_protocol import limited_protocol
from api.settings import Settings

_SECONDS_TO_FINISH: Final = 5

BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""


class _Server(uvicorn.Server):
    """Ends watches before it waits for requests to finish: they never do."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        app = self.config.app
        kubernetes = getattr(app.state, "kubernetes", None) if isinstance(app, Starlette) else None
        if kubernetes is not None:
            kubernetes.close()
        await super().shutdown(sockets)


def make_server(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    """A server that is not started yet. Logging is as it was set up before."""
    return _Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http=limited_protocol(settings),
            ws="none",
            lifespan="on",
            log_config=None,
            # The access log would hold the raw path of every probe and of every attempt to schedule a pod.
            access_log=False,
            # Nobody stands between kube-scheduler and us whose X-Forwarded-For could be trusted.
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.keep_alive_seconds,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
            backlog=BACKLOG,
        )
    )
