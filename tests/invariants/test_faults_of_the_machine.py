"""What is short where a scheduler runs: disk, descriptors, memory, somebody who reads its log. Real processes, real
limits.

Serving certificates are in `tests/api/test_rotated_certificate.py`.
"""

import fcntl
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.kit.ports import free_port
from tests.kit.service import kubeconfig_for
from tests.kit.waiting import DEADLINE, until

ROOT = Path(__file__).parents[2]
STATE = ROOT / "examples/clusters/three-nodes.yaml"
PODS = "/api/v1/namespaces/default/pods"
MIB = 2**20
F_SETPIPE_SZ = 1031


@dataclass(frozen=True)
class Running:
    """A scheduler for a small cluster of its own."""

    process: "subprocess.Popen[bytes]"
    port: int
    api: httpx.Client
    """Its Kubernetes API."""
    client: httpx.Client

    def pods_get_bound(self, number: int) -> None:
        """So many pods are created, and have a node soon."""
        for place in range(number):
            container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1m"}}}
            pod = {"metadata": {"name": f"p{place}"}, "spec": {"containers": [container]}}
            assert self.api.post(PODS, json=pod).status_code == 201
        until(lambda: sum("nodeName" in pod["spec"] for pod in self.api.get(PODS).json()["items"]) == number)

    def metric(self, name: str) -> float:
        match = re.search(rf"^{name} (\S+)$", self.client.get("/metrics").text, re.MULTILINE)
        assert match, name
        return float(match[1])

    def ends(self) -> int:
        """Its exit code, once it was told to end."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@contextmanager
def a_scheduler(
    *arguments: str | Path,
    limits: Sequence[tuple[int, int]] = (),
    log: int | IO[Any] = subprocess.DEVNULL,
    closed: bool = False,
) -> Iterator[Running]:
    """Runs until the end of the block.

    Arguments:
        limits: (resource, most of it).
        closed: nobody has opened 0, 1 and 2 for it.
    """

    def in_the_child() -> None:
        for kind, limit in limits:
            resource.setrlimit(kind, (limit, limit))
        if closed:
            os.closerange(0, 3)

    port, api = free_port(), free_port()
    flags = ["--state", STATE, "--port", str(port), "--kubernetes-port", str(api), *arguments]
    with subprocess.Popen(
        [sys.executable, "-m", "api.cli", "serve", *flags],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=in_the_child,  # noqa: PLW1509 - nothing else runs here
    ) as process, httpx.Client(base_url=f"http://127.0.0.1:{api}", trust_env=False) as kubernetes, httpx.Client(
        base_url=f"http://127.0.0.1:{port}", trust_env=False
    ) as client:  # fmt: skip
        try:
            running = Running(process, port, kubernetes, client)
            until(lambda: is_ready(running))
            yield running
        finally:
            if process.poll() is None:
                process.kill()


def is_ready(running: Running) -> bool:
    assert running.process.poll() is None, "it has ended"
    try:
        return running.client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_pods_are_bound_while_the_log_is_unread_and_the_disk_full(tmp_path: Path) -> None:
    """A pipe of a page, and files of two pages at most. What was lost of the log is counted, and told to whoever
    reads on.
    """
    records, saved = tmp_path / "records.jsonl", tmp_path / "cluster.json"
    reads, writes = os.pipe()
    fcntl.fcntl(writes, F_SETPIPE_SZ, 4096)
    with a_scheduler(
        "--records", records, "--save", saved, "-v", "5", limits=[(resource.RLIMIT_FSIZE, 8192)], log=writes
    ) as running:
        os.close(writes)
        running.pods_get_bound(40)
        until(lambda: records.stat().st_size == 8192)
        dropped = running.metric("reprieve_log_lines_dropped_total")
        os.read(reads, 2**20)
        code = running.ends()
        log = os.read(reads, 2**20).decode()
        os.close(reads)

    assert dropped > 100
    assert '"Lines of the log were dropped, as they could not be written" lines=' in log
    assert code == 4
    assert log.endswith(
        f"reprieve: the cluster could not be saved to {saved}, which is as it was before: file too large\n"
    )
    assert not saved.exists()


@pytest.mark.slow
def test_pods_are_bound_while_writes_are_answered_with_500_because_the_disk_is_full(tmp_path: Path) -> None:
    saved = tmp_path / "cluster.json"
    with a_scheduler("--save", saved, "--save-each-change", limits=[(resource.RLIMIT_FSIZE, 8192)]) as running:
        containers = [{"name": "main", "image": "web:1"}]
        answer = running.api.post(PODS, json={"metadata": {"name": "web"}, "spec": {"containers": containers}})
        until(lambda: "nodeName" in running.api.get(f"{PODS}/web").json()["spec"])

        assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
        assert answer.json()["message"].endswith("in memory, but not in the file of the cluster: File too large")
        assert running.ends() == 4


@pytest.mark.slow
def test_an_exit_code_does_not_depend_on_whether_the_last_line_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster cannot be saved, for the disk is full, and the log is on the same disk."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    full = [(resource.RLIMIT_FSIZE, 1)]

    with (
        (tmp_path / "log").open("wb") as log,
        a_scheduler("--save", tmp_path / "cluster.json", limits=full, log=log) as running,
    ):
        assert running.ends() == 4


@pytest.mark.slow
def test_closed_stderr_is_replaced_by_dev_null() -> None:
    """Whatever is opened first would be stderr."""
    with a_scheduler("-v", "5", closed=True) as running:
        standard = [Path(f"/proc/{running.process.pid}/fd/{number}").readlink() for number in range(3)]
        running.pods_get_bound(3)

        assert running.ends() == 0
    assert standard == [Path("/dev/null")] * 3


@pytest.mark.slow
def test_more_connections_and_larger_bodies_than_there_is_room_for_are_sent_away_in_words() -> None:
    """64 descriptors, 512 MiB, one processor."""
    with (
        a_scheduler(limits=[(resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_AS, 512 * MIB)]) as running,
        ExitStack() as open_ones,
    ):
        os.sched_setaffinity(running.process.pid, {min(os.sched_getaffinity(0))})
        running.api.get(PODS)  # who is connected already is not sent away
        for _ in range(100):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", running.port)))
        crowded = [
            httpx.get(f"http://127.0.0.1:{running.port}{path}", trust_env=False) for path in ("/v1/decisions", "/livez")
        ]
        running.pods_get_bound(5)
        open_ones.close()
        until(lambda: running.client.get("/v1/decisions").status_code == 200)
        too_large = send_slowly(running.port, 100 * MIB)

        assert [answer.status_code for answer in crowded] == [503, 200]
        assert crowded[0].headers["retry-after"] == "1"
        assert too_large.startswith(b"HTTP/1.1 503 ")
        assert running.client.get("/v1/decisions").status_code == 200
        assert running.ends() == 0


def send_slowly(port: int, size: int) -> bytes:
    """What is answered to a body of so many blanks before it has come to its end."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(
            "POST /extender/filter HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: "
            f"{size}\r\n\r\n".encode()
        )
        connection.setblocking(False)
        for _ in range(size // MIB):
            piece = memoryview(b" " * MIB)
            while piece:
                readable, writable, _ = select.select([connection], [connection], [], 10)
                if readable:
                    return connection.recv(4096)
                assert writable, "it is neither read nor answered"
                try:
                    piece = piece[connection.send(piece) :]
                except ConnectionError:  # closed between two looks; what was answered is there to be read
                    return connection.recv(4096)
        connection.settimeout(10)
        return connection.recv(4096)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(
            "leaderElection: {leaseDuration: 1s, renewDeadline: 2s}",
            'leaderElection.leaseDuration: Invalid value: "2s": must be greater than `RenewDeadline`',
            id="a value",
        ),
        pytest.param(
            "profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]",
            'FilterPlugin "Nope" does not exist',
            id="a plugin",
        ),
    ],
)
def test_invalid_configuration_ends_the_start_in_one_line_without_asking_the_server(
    tmp_path: Path, text: str, cause: str
) -> None:
    """Exit code 2, before anything is known of the lease."""
    configuration = tmp_path / "config.yaml"
    configuration.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}\n")
    with socket.create_server(("127.0.0.1", 0)) as api_server:
        kubeconfig = kubeconfig_for(api_server.getsockname()[1], tmp_path)
        program = [sys.executable, "-m", "api.cli", "serve", "--schedule"]
        command = [*program, "--kubeconfig", str(kubeconfig), "--config", str(configuration)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False)
        api_server.setblocking(False)

        with pytest.raises(BlockingIOError):
            api_server.accept()
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        rf"reprieve: configuration {re.escape(str(configuration))}: [^\n]*{re.escape(cause)}[^\n]*\n", done.stderr
    )
