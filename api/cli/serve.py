"""`reprieve serve`: the HTTP service."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from api.app import create_app
from api.cluster_source import Own
from api.log import configure
from api.server import BACKLOG, ServiceOverError, make_server
from api.settings import StartUpError, read_settings
from api.starting import prepare


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (8888); 0 takes a free one.")] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Follow the cluster of this kubeconfig (the one we run in, if any; else a cluster of our own).")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig (its current one).")] = None,
    state: Annotated[
        Path | None, typer.Option(help="What our own cluster begins with: a List as kubectl prints it, .gz welcome (an example).")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep our own cluster in this file, and begin with it if it is there.")] = None,
    kubernetes_port: Annotated[
        int | None, typer.Option(help="Port for kubectl to reach our own cluster (8080); 0 takes a free one.")
    ] = None,
    schedule: Annotated[
        bool | None, typer.Option(help="Schedule the pods of the cluster (only those of our own cluster, unless told).")
    ] = None,
    leader_elect: Annotated[
        bool | None,
        typer.Option(help="Of several replicas that schedule a cluster that is followed, let one do it (as the configuration says)."),
    ] = None,
    kubelet: Annotated[bool | None, typer.Option(help="In our own cluster, bound pods run and deleted pods end.")] = None,
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration file (the defaults of kube-scheduler).")] = None,
    prefix: Annotated[str | None, typer.Option(help="Path before the verbs, as in urlPrefix (/extender).")] = None,
) -> None:
    """Answer kube-scheduler's calls over HTTP, for a cluster that is followed or for one of our own.

    Every option can be given in the environment too: REPRIEVE_HOST, REPRIEVE_PORT, REPRIEVE_KUBECONFIG, REPRIEVE_STATE,
    REPRIEVE_CONFIG and so on.
    """
    settings = read_settings(
        host=host,
        port=port,
        kubeconfig=kubeconfig,
        context=context,
        state=state,
        save=save,
        kubernetes_port=kubernetes_port,
        schedule=schedule,
        leader_elect=leader_elect,
        kubelet=kubelet,
        config=config,
        prefix=prefix,
    )
    configure()
    # Read before anything listens, so that what is wrong with the files is said in one line.
    cluster, opens = prepare(settings)
    server = make_server(create_app(settings, lambda _: opens), settings)
    listening = [_listen(settings.host, settings.port, "--port")]
    address = f"http://{settings.host}:{listening[0].getsockname()[1]}{settings.prefix}"
    typer.echo(f"reprieve answers for {cluster.words} on {address}", err=True)
    if isinstance(cluster, Own):
        listening.append(_listen(settings.host, settings.kubernetes_port, "--kubernetes-port"))
        typer.echo(f"kubectl --server http://{settings.host}:{listening[1].getsockname()[1]} reaches it", err=True)
    server.run(sockets=listening)
    if server.why_over:
        raise ServiceOverError(server.why_over)


def _listen(host: str, port: int, flag: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        # From here on callers wait instead of being refused, so that what is printed below is true.
        listening.listen(BACKLOG)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise StartUpError(f"cannot listen on {host}:{port}: {reason}; choose another --host or {flag}") from exc
    return listening
