"""`reprieve dev --kube-scheduler PATH`: the plugins of a project as the extender of a real kube-scheduler."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import yaml
from rich.text import Text

from api.app import create_app
from api.cli.serve import listen
from api.cli.showing import console, printable
from api.service_state import ServiceState
from api.serving.server import make_server
from api.settings.settings import EXAMPLE_CLUSTER, read_settings
from api.starting import Opens, prepare
from extender.answers.phrases import plural
from reprieve.errors import ServiceOverError
from reprieve.lab.kube_scheduler import Conversation, ExtendedAttempt, KubeScheduler, RunningScheduler, written_for
from reprieve.sources.plugin_project import PluginProject

EXTENDER_CONFIGURATION: Final = "extender-config.yaml"
"""The project's configuration with the plugins alone, as `reprieve init` makes it."""
_NAMED: Final = 4
"""Nodes that a line names."""


def run_beside(program: Path, project: PluginProject, config: Path | None, dump: Path | None, port: int | None) -> None:
    """Runs both until Ctrl-C, or until one of them ends, which ends the other. Raises StartUpError."""
    scheduler = KubeScheduler.at(program)
    project.open()
    names = ", ".join(sorted(project.plugin_names))
    with tempfile.TemporaryDirectory(prefix="reprieve-dev-") as name:
        folder = Path(name)
        settings = read_settings(
            {name: text for name, text in os.environ.items() if name == "REPRIEVE_PORT"},
            port=port,
            kubernetes_port=0,
            state=dump or EXAMPLE_CLUSTER,
            schedule=False,
            config=config or _alone(project, folder),
        )
        conversation = Conversation(partial(_tell, names))
        _, opens = prepare(settings, [conversation.tap()])
        with listen(settings.host, settings.port, "--port") as listening:
            address = f"http://{settings.host}:{listening.getsockname()[1]}"
            configuration, text = written_for(address, folder)
            opened = _beside(opens, partial(scheduler.started, configuration, folder / "kube-scheduler.log"))
            server = make_server(create_app(settings, lambda _: opened), settings)
            console().print(
                f"{names} beside kube-scheduler {scheduler.version}, which is started with", highlight=False
            )
            console().print(Text(text, style="dim"))
            server.told_once_it_answers = [
                *filter(None, [scheduler.remark]),
                f"kubectl --server {address} reaches the cluster, {address}/ shows it; Ctrl-C ends both",
            ]
            server.run(sockets=[listening])
    if server.why_over:
        raise ServiceOverError(server.why_over)


def _alone(project: PluginProject, folder: Path) -> Path:
    """Returns a configuration of the plugins without those of kube-scheduler, which have run before it asks."""
    own = project.folder / EXTENDER_CONFIGURATION
    if own.exists() and project.only is None:
        return own
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *sorted(project.plugin_names))]
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file = folder / EXTENDER_CONFIGURATION
    file.write_text(yaml.safe_dump({**kind, "profiles": [{"schedulerName": "default-scheduler", **profile}]}))
    return file


def _beside(opens: Opens, start: partial[RunningScheduler]) -> Opens:
    """Returns what opens the service with kube-scheduler, which ends first, and whose end is the service's."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        async with opens() as service:
            running = start()
            try:
                yield replace(service, backend=replace(service.backend, finish=running.stop, why_over=running.why_over))
            finally:
                running.kill()

    return opened


def _tell(plugins: str, attempt: ExtendedAttempt) -> None:
    attempt = printable(attempt)
    console().print(Text(attempt.pod, style="bold"))
    rows = list(_rows(plugins, attempt))
    width = max(len(what) for what, _ in rows)
    for what, words in rows:
        console().print(Text(f"  {what:{width}}  {words}"), soft_wrap=True)


def _rows(plugins: str, attempt: ExtendedAttempt) -> Iterator[tuple[str, str]]:
    if attempt.num_offered is None:
        yield "kube-scheduler offered", "no node: its own plugins left none over"
    else:
        yield "kube-scheduler offered", f"{plural(attempt.num_offered, 'node')}: {_some(attempt.offered)}"
        if not attempt.refused:
            yield f"{plugins} refused", "none"
        for reason, nodes in attempt.refused:
            yield f"{plugins} refused", f"{_some(nodes) or 'all'}: {reason}"
    if attempt.scores:
        yield f"{plugins} scored", _some([f"{node} {score}" for node, score in attempt.scores])
    if attempt.evictions is not None:
        evictions = [f"{node} ({plural(count, 'pod')})" for node, count in attempt.evictions]
        yield f"{plugins} lets evict on", _some(evictions) or "no node"
    if attempt.error:
        yield f"{plugins} failed", attempt.error
    decided = attempt.decided
    if decided.node:
        yield "kube-scheduler bound it", f"to {decided.node}"
    else:
        waits = f"{decided.message}; it waits for {decided.nominated}" if decided.nominated else decided.message
        yield "kube-scheduler left it", f"pending: {waits}"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
