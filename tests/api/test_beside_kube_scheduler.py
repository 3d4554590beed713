"""`reprieve dev --kube-scheduler`: a rule is the extender of kube-scheduler on a cluster in memory.

kube-scheduler is a program of the tests' own that stands in for it, started as a real one is. With the path of a real
one in REPRIEVE_KUBE_SCHEDULER, that decides, too.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.api.in_process import ROOT, reprieve
from tests.kit.stand_in_kube_scheduler import stand_in
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

RULE = """
from reprieve import plugin as fwk


@fwk.node_filter
def on_ssd(pod, node):
    if pod.labels.get("tier") == "front" and node.labels.get("disk") != "ssd":
        return "node(s) had no SSD for the front tier"
"""
REAL = os.environ.get("REPRIEVE_KUBE_SCHEDULER", "")


@dataclass(frozen=True)
class Dev:
    """The command, and what it has printed so far."""

    process: "subprocess.Popen[bytes]"
    folder: Path

    def output(self) -> str:
        return (self.folder / "said").read_text()

    def address(self) -> str:
        return str(until(lambda: re.findall(r"kubectl --server (\S+) reaches the cluster", self.output()))[0])

    def create(self, name: str, tier: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
        pod = {"metadata": {"name": name, "labels": {"tier": tier}}, "spec": {"containers": [container]}}
        httpx.post(f"{self.address()}/api/v1/namespaces/default/pods", json=pod, trust_env=False).raise_for_status()

    def story(self, pod: str) -> str:
        """The lines about a pod."""
        lines = rf"^{pod}\n((?:  .*\n)*  kube-scheduler (?:bound|left) .*\n)"
        return str(until(lambda: re.findall(lines, self.output(), re.MULTILINE))[0])

    def scheduler(self) -> int:
        return int(until(lambda: (self.folder / "pid").exists() and (self.folder / "pid").read_text()))


@contextmanager
def dev(folder: Path, *flags: str, program: str = "", **environment: str) -> Iterator[Dev]:
    """The command with the rule, until the end of the block."""
    (folder / "on_ssd.py").write_text(RULE)
    command = [sys.executable, "-m", "api.cli", "dev", str(folder / "on_ssd.py"), "--port", "0", *flags]
    command += ["--kube-scheduler", program or str(stand_in(folder))]
    base = {name: value for name, value in os.environ.items() if not name.startswith(("REPRIEVE_", "KUBERNETES_"))}
    with (folder / "said").open("wb") as log:
        started = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=ROOT, env=base | {"STAND_IN_PID": f"{folder}/pid"} | environment
        )
    try:
        yield Dev(started, folder)
    finally:
        started.kill()
        started.wait(DEADLINE)


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    ["", pytest.param(REAL, marks=pytest.mark.skipif(not REAL, reason="REPRIEVE_KUBE_SCHEDULER names no binary"))],
    ids=["stand-in", "real"],
)
def test_every_pod_is_shown_with_what_was_offered_and_what_the_rule_changed(tmp_path: Path, program: str) -> None:
    with dev(tmp_path, program=program) as running:
        running.create("front", "front")
        running.create("back", "back")
        front, back = running.story("default/front"), running.story("default/back")
        running.process.send_signal(signal.SIGINT)
        code = running.process.wait(DEADLINE)

    assert re.search(r"kube-scheduler offered +\d+ nodes: node-", front)
    assert re.search(r"OnSsd refused +node-[abc]1, .*: node\(s\) had no SSD for the front tier\n", front)
    assert re.search(r"kube-scheduler bound it +to node-[abc][23]\n", front), "nodes with an SSD and without a taint"
    assert re.search(r"OnSsd refused +none\n", back) and "kube-scheduler bound it" in back
    assert "urlPrefix: http://127.0.0.1:" in running.output() and "Traceback" not in running.output()
    assert code == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_kube_scheduler_ends_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    with dev(tmp_path) as running:
        scheduler = running.scheduler()
        running.address()
        running.process.send_signal(number)
        code = running.process.wait(DEADLINE)
        until(lambda: not is_running(scheduler))

    assert code == (-9 if number is signal.SIGKILL else 0)


@pytest.mark.slow
def test_the_command_ends_with_kube_scheduler_and_says_how_that_ended(tmp_path: Path) -> None:
    with dev(tmp_path, STAND_IN_ENDS_AFTER="1") as running:
        code = running.process.wait(DEADLINE)

    assert code == 4
    assert running.output().splitlines()[-1] == (
        "reprieve: kube-scheduler has ended with exit code 1: "
        'E1128 20:00:00.000000 1 run.go:72] "command failed" err="as told"'
    )


@pytest.mark.slow
def test_the_command_ends_when_kube_scheduler_is_killed(tmp_path: Path) -> None:
    with dev(tmp_path) as running:
        running.address()
        os.kill(running.scheduler(), signal.SIGKILL)
        code = running.process.wait(DEADLINE)

    assert (code, running.output().splitlines()[-1]) == (4, "reprieve: kube-scheduler was killed by SIGKILL")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1.33.1", "v1.38.0-alpha.2"])
def test_another_version_is_told_and_goes_on(tmp_path: Path, version: str) -> None:
    with dev(tmp_path, STAND_IN_VERSION=version) as running:
        running.create("front", "front")
        running.story("default/front")

    assert f"kube-scheduler is {version}, and Reprieve knows 1.36; the verbs are the same" in running.output()


@pytest.mark.slow
def test_a_project_has_the_configuration_that_it_was_made_with(tmp_path: Path) -> None:
    """Here one in which nothing is enabled but what every configuration needs."""
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins:\n"
        '    multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}\n'
    )
    with dev(tmp_path, "--config", str(tmp_path / "config.yaml")) as running:
        running.create("front", "front")

        assert re.search(r"OnSsd refused +none\n", running.story("default/front"))


# What cannot be used is one line, and nothing is started.


def program(folder: Path, script: str, mode: int = 0o755) -> str:
    path = folder / "program"
    path.write_text(script)
    path.chmod(mode)
    return str(path)


def refused(folder: Path, binary: str, *flags: str) -> str:
    (folder / "on_ssd.py").write_text(RULE)
    done = reprieve("dev", str(folder / "on_ssd.py"), "--kube-scheduler", binary, *flags)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) in ((2, b""), (4, b""))
    return line.removeprefix(f"reprieve: --kube-scheduler {binary}: ")


WHERE = "; https://dl.k8s.io/v1.36.2/bin/linux/amd64/kube-scheduler is one"


@cases(
    "script, words",
    ("another", "#!/bin/sh\necho Hello", f"not kube-scheduler; it says that it is 'Hello'{WHERE}"),
    ("silent", "#!/bin/sh\nexit 1", f"not kube-scheduler; it says that it is 'nothing'{WHERE}"),
    (
        "another of Kubernetes",
        "#!/bin/sh\nif [ $1 = --version ]; then echo Kubernetes v1.36.2; else echo 'Usage:\n  kube-proxy [flags]'; fi",
        f"not kube-scheduler; it says that it is 'kube-proxy v1.36.2'{WHERE}",
    ),
    ("control", "#!/bin/sh\nprintf '\\033[31mred'", f"not kube-scheduler; it says that it is '\\\\x1b[31mred'{WHERE}"),
    ("no program", "no program", f"cannot be run: exec format error{WHERE}"),
    ("no interpreter", "#!/nowhere/sh\n", f"cannot be run: no such file or directory{WHERE}"),
    (
        "old",
        "#!/bin/sh\nif [ $1 = --version ]; then echo Kubernetes v1.24.17; else echo 'Usage:\n  kube-scheduler'; fi",
        "v1.24.17 does not read kubescheduler.config.k8s.io/v1; take 1.25 or newer",
    ),
)
def test_what_is_no_kube_scheduler_is_refused_with_what_it_is(tmp_path: Path, script: str, words: str) -> None:
    assert refused(tmp_path, program(tmp_path, script)) == words


def test_a_binary_that_is_missing_or_may_not_be_run_is_refused(tmp_path: Path) -> None:
    closed = program(tmp_path, "#!/bin/sh\n", 0o644)

    assert refused(tmp_path, "/nowhere/kube-scheduler") == f"no such file{WHERE}"
    assert refused(tmp_path, str(tmp_path)) == f"a folder{WHERE}"
    assert refused(tmp_path, closed) == f"not executable; chmod +x {closed}"


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        line = refused(tmp_path, str(stand_in(tmp_path)), "--port", str(port))

    assert line == f"reprieve: cannot listen on 127.0.0.1:{port}: address already in use; choose another --port"


@pytest.mark.parametrize("flags", [("--kubeconfig", "x"), ("--reload",), ("--output", "json")])
def test_what_needs_another_cluster_is_refused(tmp_path: Path, flags: tuple[str, ...]) -> None:
    line = refused(tmp_path, str(stand_in(tmp_path)), *flags)

    assert line == "reprieve: --kube-scheduler: its cluster is in memory; leave out --kubeconfig, --reload and --output"


def test_a_port_without_kube_scheduler_is_refused() -> None:
    done = reprieve("dev", "x.py", "--port", "1")

    assert done.stderr == b"reprieve: --port: it needs --kube-scheduler\n"
