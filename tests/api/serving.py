"""A service of the tests' own: a real uvicorn on a real port, in a thread."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from api.app import create_app
from api.face import AnswersVerbs
from api.server import make_server
from api.settings import Settings
from api.starting import open_engine

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


@contextmanager
def serving(open_with: Callable[[Settings], AnswersVerbs] = open_engine, **settings: Any) -> Iterator[Service]:
    """A service that runs until the end of the block."""
    chosen = Settings.model_validate({"port": 0, **settings})
    server = make_server(create_app(chosen, open_with), chosen)
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield Service(port, client, server)
    finally:
        server.should_exit = True
        thread.join()


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
