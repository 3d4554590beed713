"""`reprieve dev --kube-scheduler PATH`: the plugins of a project as the extender of a real kube-scheduler."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.text import Text

from api.app import create_app
from api.cli.serve import listen
from api.cli.showing import console, printable
from api.service_state import ServiceState
from api.serving.server import make_server
from api.settings.settings import EXAMPLE_CLUSTER, read_settings
from api.starting import Opens, prepare
from reprieve.errors import ServiceOverError
from reprieve.lab.kube_scheduler import Conversation, KubeScheduler, RunningScheduler, alone, written_for
from reprieve.sources.plugin_project import PluginProject

EXTENDER_CONFIGURATION: Final = "extender-config.yaml"
"""The project's configuration with the plugins alone, as `reprieve init` makes it."""


def run_beside(program: Path, project: PluginProject, config: Path | None, dump: Path | None, port: int | None) -> None:
    """Runs both until Ctrl-C, or until one of them ends, which ends the other. Raises StartUpError."""
    scheduler = KubeScheduler.at(program)
    project.open()
    names, file = ", ".join(sorted(project.plugin_names)), project.folder / EXTENDER_CONFIGURATION
    with tempfile.TemporaryDirectory(prefix="reprieve-dev-") as name:
        folder = Path(name)
        settings = read_settings(
            {name: text for name, text in os.environ.items() if name == "REPRIEVE_PORT"},
            port=port,
            kubernetes_port=0,
            state=dump or EXAMPLE_CLUSTER,
            schedule=False,
            config=config or (file if file.exists() and project.only is None else alone(project.plugin_names, folder)),
        )
        _, opens = prepare(settings, [Conversation(names, _tell).tap()])
        with listen(settings.host, settings.port, "--port") as listening:
            address = f"http://{settings.host}:{listening.getsockname()[1]}"
            configuration, text = written_for(address, folder)
            opened = _beside(opens, partial(scheduler.started, configuration, folder / "kube-scheduler.log"))
            server = make_server(create_app(settings, lambda _: opened), settings)
            print(f"{names} beside kube-scheduler {scheduler.version}, which is started with\n{text}", flush=True)
            server.told_once_it_answers = [
                *filter(None, [scheduler.remark]),
                f"kubectl --server {address} reaches the cluster, {address}/ shows it; Ctrl-C ends both",
            ]
            server.run(sockets=[listening])
    if server.why_over:
        raise ServiceOverError(server.why_over)


def _beside(opens: Opens, start: partial[RunningScheduler]) -> Opens:
    """Returns what opens the service with kube-scheduler, which ends first, and whose end is the service's."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        async with opens() as service:
            running = start()
            try:
                backend = msgspec.structs.replace(service.backend, finish=running.stop, why_over=running.why_over)
                yield replace(service, backend=backend)
            finally:
                running.kill()

    return opened


def _tell(pod: str, rows: list[tuple[str, str]]) -> None:
    width = max(len(what) for what, _ in rows)
    lines = [f"  {what:{width}}  {words}" for what, words in printable(rows)]
    console().print(Text("\n".join([printable(pod), *lines])), soft_wrap=True)
