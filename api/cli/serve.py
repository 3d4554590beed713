"""`reprieve serve`: the HTTP service."""

import socket
from pathlib import Path
from typing import Annotated, Final

import typer
import yaml

from api.app import create_app
from api.cli.go_flags import passed_over
from api.cluster_source import Own
from api.fatal_errors import ServiceOverError, StartUpError
from api.overrides import OLDER_SETTINGS, overridden
from api.server import BACKLOG, make_server
from api.settings import Settings, read_settings
from api.starting import prepare, read_configuration
from extender.config import ConfigErrors, Configuration, written
from extender.klog.logger import Logger
from extender.klog.outlet import STDERR
from extender.klog.setup import configure

_AS_UPSTREAM: Final = "As kube-scheduler's"
_LOG: Final = Logger(__name__)


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
    records: Annotated[
        Path | None, typer.Option(help="Keep what was decided in this file, so that it is known after a restart, too (in memory).")
    ] = None,
    access: Annotated[
        str | None,
        typer.Option(help="Who may see names of pods: open, or reviewed by the API server that is followed (reviewed there)."),
    ] = None,
    # As kube-scheduler's, where they mean the same.
    bind_address: Annotated[str | None, typer.Option(help="The same as --host.", rich_help_panel=_AS_UPSTREAM)] = None,
    secure_port: Annotated[
        int | None, typer.Option(help="Port for HTTPS, instead of --port; 0 for none.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    tls_cert_file: Annotated[
        Path | None, typer.Option(help="Speak HTTPS with this certificate (PEM, its chain behind it).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="Key of the certificate.", rich_help_panel=_AS_UPSTREAM)] = None,
    tls_min_version: Annotated[str | None, typer.Option(help="VersionTLS12 or VersionTLS13.", rich_help_panel=_AS_UPSTREAM)] = None,
    master: Annotated[
        str | None, typer.Option(help="URL of the API server, instead of the kubeconfig's.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    leader_elect_lease_duration: Annotated[
        str | None, typer.Option(help="How long others wait for a leader that is silent (15s).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    leader_elect_renew_deadline: Annotated[
        str | None, typer.Option(help="How long a leader tries to renew before it gives up (10s).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    leader_elect_retry_period: Annotated[
        str | None, typer.Option(help="Pause between two tries (2s).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    leader_elect_resource_lock: Annotated[str | None, typer.Option(help="Only leases are known.", rich_help_panel=_AS_UPSTREAM)] = None,
    leader_elect_resource_name: Annotated[
        str | None, typer.Option(help="Name of the lease (kube-scheduler).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the lease (kube-system).", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    kube_api_qps: Annotated[
        float | None, typer.Option(help="Requests a second to the API server (50); unused with --config.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    kube_api_burst: Annotated[
        int | None, typer.Option(help="Requests at once (100); unused with --config.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    pod_max_in_unschedulable_pods_duration: Annotated[
        str | None,
        typer.Option(help="Try refused pods again after this, though nothing changed (5m).", rich_help_panel=_AS_UPSTREAM),
    ] = None,
    feature_gates: Annotated[
        str | None, typer.Option(help="Ask for gates, A=true,B=false; those that cannot be had are refused.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    profiling: Annotated[
        bool | None, typer.Option(help="Let /debug/flags/v change how much is logged; unused with --config.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    v: Annotated[int | None, typer.Option("--v", "-v", help="How much is logged (0).", rich_help_panel=_AS_UPSTREAM)] = None,
    vmodule: Annotated[
        str | None, typer.Option(help="How much single files log: scheduler=5,queue*=3.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    logging_format: Annotated[str | None, typer.Option(help="text or json (text).", rich_help_panel=_AS_UPSTREAM)] = None,
    disabled_metrics: Annotated[
        str | None, typer.Option(help="Metrics that are not shown, with commas between.", rich_help_panel=_AS_UPSTREAM)
    ] = None,
    write_config_to: Annotated[
        Path | None,
        typer.Option(help="Write the configuration in force to this file, and end.", rich_help_panel=_AS_UPSTREAM),
    ] = None,
    foreign_flag: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Answer kube-scheduler's calls over HTTP, for a real cluster or for one in memory.

    Every option can also be given in the environment: REPRIEVE_HOST, REPRIEVE_PORT, REPRIEVE_KUBECONFIG, REPRIEVE_STATE, REPRIEVE_CONFIG
    and so on. Flags of kube-scheduler that have no effect here are ignored or refused; docs/flags.md says which.
    """
    given = {name: value for name, value in locals().items() if name in Settings.model_fields}
    settings = read_settings(**given | {"host": host if host is not None else bind_address})
    without_meaning = dict(passed_over(foreign_flag or (), settings.host))
    if settings.config is not None:
        older = [name for name in OLDER_SETTINGS if getattr(settings, name) is not None]
        without_meaning |= {name.replace("_", "-"): "the configuration file has the last word" for name in older}
    configure(settings.logging_format, settings.v, settings.verbosity_by_file)
    for name, why in without_meaning.items():
        _LOG.info(0, "A flag has no effect", flag=f"--{name}", reason=why)
    if write_config_to is not None:
        _write(overridden(read_configuration(settings.config), settings), write_config_to)
        return
    # Read before anything listens, so that what is wrong with the files is said in one line.
    cluster, opens = prepare(settings)
    server = make_server(create_app(settings, lambda _: opens), settings)
    scheme = "http" if server.certificate is None else "https"
    listening = [_listen(settings.host, settings.listening_port, "--port")]
    address = f"{scheme}://{settings.host}:{listening[0].getsockname()[1]}"
    STDERR.say(f"reprieve answers for {cluster.words} on {address}{settings.prefix}")
    if isinstance(cluster, Own):
        listening.append(_listen(settings.host, settings.kubernetes_port, "--kubernetes-port"))
        STDERR.say(f"kubectl --server {scheme}://{settings.host}:{listening[1].getsockname()[1]} reaches it")
    STDERR.say(f"{address}/ shows it")
    server.run(sockets=listening)
    if server.why_over:
        raise ServiceOverError(server.why_over)


def _write(configuration: Configuration, path: Path) -> None:
    """Upstream: cmd/kube-scheduler/app/options/configfile.go, LogOrWriteConfig."""
    try:
        with path.open("w", encoding="utf-8") as file:
            yaml.safe_dump(written(configuration), file, sort_keys=False, default_flow_style=False, width=140)
    except ConfigErrors as exc:
        raise StartUpError(exc) from exc
    except OSError as exc:
        raise StartUpError(f"--write-config-to {path}: {(exc.strerror or str(exc)).lower()}") from exc
    _LOG.info(0, "Wrote configuration", file=str(path))


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
