"""`reprieve serve`: the HTTP service."""

import logging.config
import socket
from pathlib import Path
from typing import Annotated

import typer

from api.app import create_app
from api.log import LOGGING
from api.server import BACKLOG, make_server
from api.settings import EXAMPLE_CLUSTER, Settings, StartUpError, read_settings
from api.starting import open_engine


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (8888); 0 takes a free one.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="The cluster: a List as `kubectl get -o json|yaml` prints it, .gz welcome (an example cluster).")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration file (the defaults of kube-scheduler).")] = None,
    prefix: Annotated[str | None, typer.Option(help="Path before the verbs, as in urlPrefix (/extender).")] = None,
) -> None:
    """Answer kube-scheduler's calls over HTTP.

    Every option can be given in the environment too: REPRIEVE_HOST, REPRIEVE_PORT, REPRIEVE_STATE, REPRIEVE_CONFIG,
    REPRIEVE_PREFIX.
    """
    settings = read_settings(host=host, port=port, state=state, config=config, prefix=prefix)
    logging.config.dictConfig(LOGGING)
    # Opened before anything listens, so that what is wrong with the files is said in one line.
    engine = open_engine(settings)
    server = make_server(create_app(settings, lambda _: engine), settings)
    listening = _listen(settings)
    address = f"http://{settings.host}:{listening.getsockname()[1]}{settings.prefix}"
    of_what = "the example cluster" if settings.state == EXAMPLE_CLUSTER else str(settings.state)
    typer.echo(f"reprieve answers for {of_what} on {address}", err=True)
    server.run(sockets=[listening])


def _listen(settings: Settings) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        # From here on callers wait instead of being refused, so that the line below is true when it is printed.
        listening.listen(BACKLOG)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise StartUpError(f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another --host or --port") from exc
    return listening
