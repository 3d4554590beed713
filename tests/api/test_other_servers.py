"""`uvicorn api.main:app`: another server before the service says which cluster answers and where, and ends in words."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from tests.kit.ports import free_port
from tests.kit.service import process, running
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

pytestmark = pytest.mark.slow

UVICORN = (sys.executable, "-m", "uvicorn", "api.main:app")


@contextmanager
def served(log: Path, *flags: str, **environment: str) -> Iterator["tuple[int, Popen[bytes]]"]:
    """The port, and uvicorn with the service."""
    port = free_port()
    variables = {f"REPRIEVE_{name}": value for name, value in environment.items()}
    with process("--port", str(port), *flags, log=log, program=UVICORN, environment=variables) as started:
        yield port, started


def answers(log: Path) -> bool:
    return "shows it" in log.read_text()


def ours(log: Path) -> list[str]:
    """What the service says itself, without the log and what the server says."""
    return [line for line in log.read_text().splitlines() if not re.match(r"INFO: |ERROR: |[IWE]\d{4} ", line)]


def got(port: int, path: str, host: str = "127.0.0.1") -> httpx.Response:
    return httpx.get(f"http://{host}:{port}{path}", timeout=DEADLINE, trust_env=False)


def test_the_service_says_which_cluster_answers_and_every_address_it_names_is_served(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "empty.json"
    state.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    with served(log, STATE=str(state)) as (port, _):
        until(lambda: answers(log))
        cluster = got(port, "/v1/about").json()["cluster"]
        nodes = httpx.get(f"{cluster}/api/v1/nodes", timeout=DEADLINE, trust_env=False).json()
        by_name = got(port, "/v1/about", "localhost").json()["cluster"]
        page = got(port, "/").text

    assert ours(log)[:3] == [
        f"reprieve answers for {state} on 127.0.0.1:{port}/extender",
        f"kubectl --server 127.0.0.1:{port} reaches it",
        f"127.0.0.1:{port}/ shows it",
    ]
    assert cluster == f"http://127.0.0.1:{port}" and nodes["kind"] == "NodeList"
    assert by_name == f"http://localhost:{port}"
    assert f"kubectl --server http://127.0.0.1:{port} apply -f FILE" in page


@cases(
    "environment, words",
    ("in memory", {}, "a second worker would be a second cluster in memory"),
    ("not deciding", {"SCHEDULE": "false"}, "a second worker would be a second cluster in memory"),
    (
        "deciding for a cluster",
        {"MASTER": "http://127.0.0.1:1", "SCHEDULE": "true"},
        "a second worker would schedule the same pods",
    ),
)
@pytest.mark.parametrize("workers", ["2", "3"])
def test_a_second_worker_ends_the_whole_server(
    tmp_path: Path, environment: dict[str, str], words: str, workers: str
) -> None:
    log = tmp_path / "log"
    with served(log, "--workers", workers, **environment) as (port, parent):
        parent.wait(DEADLINE)
        with pytest.raises(httpx.ConnectError):
            got(port, "/livez")

    refusals = [line for line in ours(log) if line.startswith("reprieve: ")]
    assert all(line.startswith(f"reprieve: {words}") for line in refusals) and 1 <= len(refusals) < int(workers)
    assert "Traceback" not in log.read_text()


def test_workers_that_only_answer_for_a_cluster_are_as_many_as_wanted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        running("--no-schedule") as cluster,
        served(log, "--workers", "2", MASTER=cluster.kubernetes, ACCESS="open") as (port, parent),
    ):
        until(lambda: log.read_text().count("shows it") == 2)
        until(lambda: [got(port, "/readyz").status_code for _ in range(8)] == [200] * 8)
        about = [got(port, "/v1/about").json()["cluster"] for _ in range(4)]
        assert parent.poll() is None

    assert about == [cluster.kubernetes] * 4
    assert (
        ours(log).count(f"reprieve answers for the cluster at {cluster.kubernetes} on 127.0.0.1:{port}/extender") == 2
    )


@cases(
    "environment, line",
    (
        "a file",
        {"STATE": "/nowhere.yaml"},
        "reprieve: state file /nowhere.yaml: no such file or directory; give a cluster with --state",
    ),
    ("a path", {"PREFIX": "a b"}, "reprieve: REPRIEVE_PREFIX: must be a plain path such as /extender"),
    (
        "a number",
        {"KUBERNETES_PORT": "x"},
        "reprieve: REPRIEVE_KUBERNETES_PORT: must be a whole number, at least 0, at most 65535",
    ),
)
def test_what_is_wrong_at_the_start_is_one_line(tmp_path: Path, environment: dict[str, str], line: str) -> None:
    log = tmp_path / "log"
    with served(log, **environment) as (_, started):
        code = started.wait(DEADLINE)

    assert (code, ours(log)) == (3, [line])


def test_a_lost_lease_ends_the_server(tmp_path: Path) -> None:
    """Its lease is seconds old when the API server goes away."""
    log, cluster_log, kube = tmp_path / "log", tmp_path / "cluster", free_port()
    lease = {
        "LEADER_ELECT": "true",
        "LEADER_ELECT_LEASE_DURATION": "3s",
        "LEADER_ELECT_RENEW_DEADLINE": "2s",
        "LEADER_ELECT_RETRY_PERIOD": "1s",
    }
    serve = ("serve", "--no-schedule", "--port", "0", "--kubernetes-port", str(kube))
    with process(*serve, log=cluster_log) as cluster:
        until(lambda: answers(cluster_log))
        with served(log, MASTER=f"http://127.0.0.1:{kube}", SCHEDULE="true", **lease) as (_, started):
            until(lambda: answers(log))
            until(lambda: "became leader" in str(got(kube, "/api/v1/namespaces/kube-system/events").json()))
            os.kill(cluster.pid, signal.SIGKILL)
            started.wait(DEADLINE)

    assert ours(log)[-1].startswith("reprieve: leader election lost: failed to renew lease")
