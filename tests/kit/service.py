"""Services of the tests' own: a real uvicorn on a real port, in a thread of this process or as the command that people run."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import uvicorn
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from api.app import create_app
from api.service_state import QuestionWorker, ServiceState
from api.serving.server import make_server
from api.settings.settings import Settings
from api.starting import Opens, opens
from extender.assembly.backend import Backend
from extender.client.access_review import User
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import Configuration
from tests.kit.kubeconfigs import write_kubeconfig
from tests.kit.waiting import DEADLINE, until, until_at_rest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "api" / "data"
TWELVE_NODES = DATA / "cluster-twelve-nodes.json.gz"
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Service:
    port: int
    client: httpx.Client
    server: uvicorn.Server

    def call(self, verb: str, body: object) -> httpx.Response:
        """POST to one of the four verbs; what is no bytes is sent as JSON."""
        return self.post(f"/extender/{verb}", body)

    def connections(self) -> int:
        """How many are open."""
        return len(self.server.server_state.connections)

    def post(self, path: str, body: object) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(path, content=content, headers=JSON)


class LetsIn:
    """The part of an `Access` that lets everyone call what is not about names, where tokens tell who callers are."""

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        return None

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        return True


@contextmanager
def serving(engine: Callable[[Settings], Any] | None = None, *, loop: str = "", **settings: Any) -> Iterator[Service]:
    """A service that runs until the end of the block.

    Arguments:
        loop: the kind of event loop, as uvicorn names it; that of the service by default.
        engine: makes the one that answers, in place of what the settings say.
    """
    chosen = Settings(**{"port": 0, **settings})
    with serving_app(create_app(chosen, opens if engine is None else _prepared_with(engine)), chosen, loop) as service:
        yield service


@contextmanager
def serving_app(app: ASGIApp, settings: Settings, loop: str = "") -> Iterator[Service]:
    """The application, on a port of its own, until the end of the block."""
    server = make_server(app, settings)
    server.config.loop = loop or server.config.loop
    with (
        in_a_thread(server) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False) as client,
    ):
        yield Service(port, client, server)


@contextmanager
def in_a_thread(server: uvicorn.Server) -> Iterator[int]:
    """It serves until the end of the block, at the port that is yielded."""
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        port: int = server.servers[0].sockets[0].getsockname()[1]
        yield port
    finally:
        server.should_exit = True
        thread.join()


PROGRAM = (sys.executable, "-m", "api.cli")


@contextmanager
def process(
    *arguments: str | Path,
    log: Path,
    program: Sequence[str | Path] = PROGRAM,
    environment: Mapping[str, str] | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command as a process, until the end of the block, which tells it to end.

    Arguments:
        log: the file for what it writes to standard error.
        program: the command, if it is not that of this checkout.
        environment: what differs from that of this process, settings of a service aside.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("REPRIEVE_", "KUBERNETES_"))}
    with log.open("wb") as output:
        started = subprocess.Popen(
            [*program, *map(str, arguments)], stderr=output, cwd=ROOT, env={**inherited, **(environment or {})}
        )
    try:
        yield started
    finally:
        started.send_signal(signal.SIGCONT)  # a test may have stopped it
        started.terminate()
        try:
            started.wait(DEADLINE)
        finally:
            started.kill()


@dataclass(frozen=True)
class Running:
    """A process that has a cluster of its own: where its page is, and where kubectl would go."""

    url: str
    kubernetes: str

    def create(self, path: str, obj: dict[str, Any]) -> None:
        """POST an object to the cluster's own API."""
        httpx.post(f"{self.kubernetes}{path}", json=obj, timeout=DEADLINE, trust_env=False).raise_for_status()

    def pods(self) -> Any:
        """All pods, as the cluster's own API has them."""
        return httpx.get(f"{self.kubernetes}/api/v1/pods", timeout=DEADLINE, trust_env=False).json()["items"]


@contextmanager
def running(*arguments: str | Path) -> Iterator[Running]:
    """`reprieve serve` on free ports, as a process that is at rest."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with process("serve", "--port", "0", "--kubernetes-port", "0", *arguments, log=log) as started:
            until(lambda: "reaches it" in log.read_text() or started.poll() is not None)
            assert started.poll() is None, f"the service did not start:\n{log.read_text()}"
            page, kubernetes = re.findall(r"http://[\w.]+:\d+", log.read_text())[:2]
            until_at_rest(page)  # what is drawn again under a test's hands is another test's matter
            yield Running(page, kubernetes)


def kubeconfig_for(port: int, folder: Path, *, secure: bool = False) -> Path:
    """A kubeconfig for the API server at a port of this machine, in this folder; over TLS with any certificate."""
    cluster = {"server": f"http{'s' if secure else ''}://127.0.0.1:{port}", "insecure-skip-tls-verify": secure}
    return write_kubeconfig(folder / "kubeconfig", cluster)


def _prepared_with(engine: Callable[[Settings], Any]) -> Callable[[Settings], Opens]:
    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[ServiceState]:
        verbs = engine(settings)
        configuration = Configuration()
        evaluate = getattr(verbs, "evaluate", None) or partial(evaluate_scenario, configuration=configuration)
        yield ServiceState(
            Backend(verbs, evaluate, is_ready=lambda: getattr(verbs, "is_ready", True)),
            worker=QuestionWorker(settings.question_seconds, settings.question_memory),
        )

    return lambda settings: lambda: opened(settings)


def items_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a dump."""
    items: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["items"]
    return items


def assert_is_refusal(answer: httpx.Response, code: int) -> None:
    """The answer has this code and a complete metav1.Status."""
    assert answer.status_code == code
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    status = answer.json()
    assert (status["kind"], status["apiVersion"], status["status"], status["code"]) == ("Status", "v1", "Failure", code)
    assert status["reason"]
    assert status["message"]
