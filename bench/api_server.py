"""An API server in a process of its own."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.ports import free_port


@contextmanager
def api_server(module: str, **environment: object) -> Iterator[int]:
    """Runs what `make` of this module of ours returns, and yields the port.

    Arguments:
        environment: variables, from which it learns what is to be there.
    """
    port = free_port()
    options = ["--http", "httptools", "--loop", "uvloop", "--no-access-log", "--log-level", "warning"]
    command = ["uvicorn", f"bench.{module}:make", "--factory", "--port", str(port), *options]
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    with subprocess.Popen([sys.executable, "-m", *command], env=variables) as process:
        try:
            _wait_until_ready(port)
            yield port
        finally:
            process.terminate()


def _wait_until_ready(port: int) -> None:
    """Returns when the API on this port answers."""
    for _ in range(1200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/api/v1/nodes?limit=1")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise SystemExit("the server did not become ready within two minutes")
