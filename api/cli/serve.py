"""`reprieve serve`: the HTTP service."""

import socket
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from api.app import create_app
from api.cli import print_version
from api.cli.flags import FLAG_OPTIONS, FLAGS, GoCommand, without_effect
from api.cluster_source import EmbeddedCluster
from api.serving.announcement import announcement
from api.serving.certificate import with_certificate
from api.serving.server import BACKLOG, make_server
from api.settings.configuration_file import WatchedConfiguration, overridden
from api.settings.declarations import Group
from api.settings.settings import read_settings
from api.starting import decides, prepare
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import parse_feature_gates, remarks
from extender.values.klog.logger import Logger
from extender.values.klog.setup import configure
from extender.values.reasons import in_one_line
from reprieve.errors import ServiceOverError, StartUpError
from reprieve.sources.configurations import read_configuration

COMMAND_CLASS: Final = GoCommand
_LOG: Final = Logger(__name__)


def serve(
    flags: Annotated[dict[str, Any], FLAG_OPTIONS],
    write_config_to: Annotated[
        Path | None,
        typer.Option(
            help="Write the configuration in force to this file and exit.", rich_help_panel=Group.KUBE_SCHEDULER.value
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version/--no-version",
            help="Print the version and exit.",
            rich_help_panel=Group.KUBE_SCHEDULER.value,
            callback=print_version,
        ),
    ] = False,
    foreign_flag: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run the service: the page, the questions and the extender, for a real cluster or an embedded one.

    Every option can also be given in the environment: REPRIEVE_HOST, REPRIEVE_PORT, REPRIEVE_KUBECONFIG,
    REPRIEVE_STATE, REPRIEVE_CONFIG and so on. Flags of kube-scheduler that have no effect here are ignored or refused;
    docs/flags.md says which.
    """
    settings = read_settings(**flags)
    if settings.client_allowed_names and settings.client_ca_file is None:
        raise StartUpError("--client-allowed-names: no client certificate is verified without --client-ca-file")
    ignored = dict(without_effect(foreign_flag or ()))
    if settings.config is not None:
        deprecated = (
            name for name, flag in FLAGS.items() if flag.option.yields_to_file and getattr(settings, name) is not None
        )
        ignored |= {FLAGS[name].flag[2:]: "the configuration file takes precedence" for name in deprecated}
    gates = parse_feature_gates(settings.feature_gates)
    ignored |= {f"feature-gates={name}": why for name, why in remarks(gates, settings.emulated_version)}
    configure(settings.logging_format, settings.v, settings.verbosity_by_file)
    for name, why in ignored.items():
        _LOG.info(0, "A flag has no effect", flag=f"--{name}", reason=why)
    if write_config_to is not None:
        _write(overridden(read_configuration(settings.config, settings.features), settings), write_config_to)
        return
    with ExitStack() as sockets:
        settings = sockets.enter_context(with_certificate(settings))
        # Read before anything listens, so that an error in a file is the only line that is printed.
        with nullcontext() if settings.state is None else _reading(settings.state):
            cluster, opens = prepare(settings)
        server = make_server(create_app(settings, lambda _: opens), settings)
        if settings.config is not None:
            server.configuration = WatchedConfiguration(settings, calls_extenders=decides(settings, cluster))
        scheme = "http" if server.certificate is None else "https"
        listening = [sockets.enter_context(listen(settings.host, settings.listening_port, "--host or --port"))]
        if isinstance(cluster, EmbeddedCluster):
            listening.append(
                sockets.enter_context(listen(settings.host, settings.kubernetes_port, "--host or --kubernetes-port"))
            )
        address, *kubernetes = (f"{scheme}://{settings.host}:{listener.getsockname()[1]}" for listener in listening)
        server.told_once_it_answers = announcement(cluster, settings, address, kubernetes)
        server.run(sockets=listening)
    if server.why_over:
        raise ServiceOverError(server.why_over)


def _reading(state: Path) -> AbstractContextManager[object]:
    from api.cli.showing import WaitingLine, sized  # noqa: PLC0415 - a cluster that is followed needs none of it

    return WaitingLine(f"reading {sized(state)}")


def _write(configuration: Configuration, path: Path) -> None:
    """Upstream: cmd/kube-scheduler/app/options/configfile.go, LogOrWriteConfig."""
    try:
        with path.open("w", encoding="utf-8") as file:
            yaml.safe_dump(written(configuration), file, sort_keys=False, default_flow_style=False, width=140)
    except OSError as exc:
        raise StartUpError(f"--write-config-to {path}: {in_one_line(exc)}") from exc
    _LOG.info(0, "Wrote configuration", file=str(path))


def listen(host: str, port: int, flags: str) -> socket.socket:
    """Returns a socket that listens. Raises ServiceOverError, which names the flags that choose another address."""
    with ExitStack() as unless_it_listens:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listening = unless_it_listens.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            # From here on callers wait instead of being refused, so that the address that is printed can be called.
            listening.listen(BACKLOG)
        except OSError as exc:
            reason = in_one_line(exc)
            raise ServiceOverError(f"cannot listen on {host}:{port}: {reason}; choose another {flags}") from exc
        unless_it_listens.pop_all()
        return listening
