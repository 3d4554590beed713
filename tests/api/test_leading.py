"""Replicas as processes: who leads, and with which exit code and which words each ends. Signals are real, and so is
time.
"""

import logging
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.api.in_process import configured, reprieve
from tests.api.test_following import state_with
from tests.api.test_questions import node_of
from tests.kit.objects import pod
from tests.kit.ports import free_port
from tests.kit.service import Service, kubeconfig_for, process, serving
from tests.kit.waiting import DEADLINE, until

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}
"""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@dataclass(frozen=True)
class Replica:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def ends(self) -> int:
        return self.process.wait(DEADLINE)

    def log_text(self) -> str:
        return self.log.read_text()


@contextmanager
def two_replicas(cluster: Service, folder: Path) -> Iterator[tuple[Replica, Replica]]:
    """The first leads."""
    (folder / "scheduler.yaml").write_text(CONFIGURATION)
    kubeconfig = kubeconfig_for(cluster.port, folder)
    files: list[str | Path] = ["--kubeconfig", kubeconfig, "--config", folder / "scheduler.yaml"]
    replicas: list[Replica] = []
    with ExitStack() as stack:
        for number in range(2):
            port, log = free_port(), folder / f"{number}.log"
            started = stack.enter_context(process("serve", "--schedule", "--port", str(port), *files, log=log))
            replicas.append(Replica(started, port, log))
            until(lambda: holder(cluster) != "" and "attempting to acquire leader lease" in replicas[-1].log_text())
        yield replicas[0], replicas[1]


def holder(cluster: Service) -> str:
    answer = cluster.client.get(LEASE)
    return str(answer.json()["spec"]["holderIdentity"]) if answer.status_code == 200 else ""


def create(cluster: Service, name: str) -> None:
    cluster.post("/api/v1/namespaces/default/pods", pod(name, "10m")).raise_for_status()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(state=state_with("a", tmp_path_factory.mktemp("cluster")), schedule=False) as service:
        yield service


@pytest.mark.parametrize("decides", [True, False], ids=["a scheduler", "not who only answers"])
def test_it_is_said_how_many_requests_go_to_the_api_server(
    cluster: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, decides: bool
) -> None:
    """So many pods of a backlog are bound in a second."""
    kubeconfig = kubeconfig_for(cluster.port, tmp_path)
    with caplog.at_level(logging.INFO), serving(kubeconfig=kubeconfig, schedule=decides, leader_elect=False):
        is_logged = "at most 50 requests a second go to the API server, bindings included (100 at once)" in caplog.text

    assert is_logged is decides


@pytest.mark.slow
def test_replicas_take_turns(cluster: Service, tmp_path: Path) -> None:
    """The leader is frozen, the other takes over, and the first ends when it thaws. The other is told to end,
    and does in order.
    """
    with two_replicas(cluster, tmp_path) as (first, second):
        leader = holder(cluster)
        alive = httpx.get(f"http://127.0.0.1:{first.port}/livez?verbose", trust_env=False)
        in_force = httpx.get(f"http://127.0.0.1:{first.port}/configz", trust_env=False).json()["componentconfig"][
            "leaderElection"
        ]
        assert (in_force["leaderElect"], in_force["leaseDuration"]) == (True, "3s")
        assert alive.text == "[+]ping ok\n[+]leaderElection ok\nlivez check passed\n"
        create(cluster, "one")
        until(lambda: node_of(cluster, "one") == "a")

        first.process.send_signal(signal.SIGSTOP)
        create(cluster, "two")
        until(lambda: node_of(cluster, "two") == "a")
        assert holder(cluster) not in ("", leader)
        first.process.send_signal(signal.SIGCONT)

        assert first.ends() == 4
        assert (
            first.log_text()
            .splitlines()[-1]
            .startswith("reprieve: leader election lost: failed to renew lease kube-system/kube-scheduler")
        )
        assert "Traceback" not in first.log_text()

        second.process.send_signal(signal.SIGTERM)
        assert second.ends() == 0
        assert holder(cluster) == ""
        assert "Traceback" not in second.log_text()


@pytest.mark.slow
def test_second_sigterm_ends_the_process_at_once(tmp_path: Path) -> None:
    """A request whose body does not come is what it waits for."""
    port, log = free_port(), tmp_path / "log"
    with process("serve", "--port", str(port), "--kubernetes-port", "0", log=log) as started:
        until(lambda: "startup complete" in log.read_text())
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = (
                b"POST /extender/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/json\r\nContent-Length: 9\r\n"
            )
            connection.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 100 "), "the body is waited for"
            started.send_signal(signal.SIGTERM)
            until(lambda: "Waiting for connections to close" in log.read_text())
            started.send_signal(signal.SIGTERM)
            assert started.wait(DEADLINE) == 4

    assert log.read_text().splitlines()[-1] == "reprieve: ended by a second signal, with requests unfinished"


def test_an_election_that_the_flag_asks_for_is_checked(tmp_path: Path) -> None:
    config = configured(tmp_path, "leaderElection: {leaderElect: false, leaseDuration: 1s, renewDeadline: 2s}\n")

    done = reprieve("serve", "--config", config, "--leader-elect", "--port", "0")

    assert done.returncode == 2
    assert "leaderElection.leaseDuration: Invalid value" in done.stderr.decode()
