"""A service of the tests' own: a real uvicorn on a real port, in a thread."""

import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from api.app import create_app
from api.service_state import ServiceState
from api.serving.server import make_server
from api.settings.settings import Settings
from api.starting import Opens, opens
from api.worker import QuestionWorker
from extender.assembly.backend import Backend
from extender.client.access_review import User
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config import Configuration
from extender.verbs import AnswersVerbs
from tests.kit.waiting import DEADLINE

DATA = Path(__file__).parent / "data"
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
def serving(
    engine: Callable[[Settings], AnswersVerbs] | None = None, *, loop: str = "", **settings: Any
) -> Iterator[Service]:
    """A service that runs until the end of the block.

    Arguments:
        loop: the kind of event loop, as uvicorn names it; that of the service by default.
        engine: makes the one that answers, in place of what the settings say.
    """
    chosen = Settings.model_validate({"port": 0, **settings})
    with serving_app(create_app(chosen, opens if engine is None else _prepared_with(engine)), chosen, loop) as service:
        yield service


@contextmanager
def serving_app(app: ASGIApp, settings: Settings, loop: str = "") -> Iterator[Service]:
    """The application, on a port of its own, until the end of the block."""
    server = make_server(app, settings)
    server.config.loop = loop or server.config.loop
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False) as client:
            yield Service(port, client, server)
    finally:
        server.should_exit = True
        thread.join()


def _prepared_with(engine: Callable[[Settings], AnswersVerbs]) -> Callable[[Settings], Opens]:
    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[ServiceState]:
        verbs = engine(settings)
        configuration = Configuration()
        evaluate = getattr(verbs, "evaluate", None) or partial(evaluate_scenario, configuration=configuration)
        yield ServiceState(
            Backend(verbs, evaluate), worker=QuestionWorker(settings.question_seconds, settings.question_memory)
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
