"""The service as a process, with an embedded cluster of some nodes."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.soak.probe import LEAKS, REPORT
from tests.kit.forked import a_fork_server
from tests.kit.objects import priority_class

NUM_NODES: Final = 60
URGENT: Final = "urgent"
"""A priority class of 100."""
SECONDS: Final = 60.0
RECORD_MEMORY: Final = 4 * 2**20
"""Bytes of recent decisions, few enough that they are full before anything is measured."""
CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Probe}]}}
"""
_ADDRESSES: Final = re.compile(r"on (http://[^/]+)/extender.*--server (\S+) reaches it", re.DOTALL)


@dataclass(frozen=True)
class Service:
    """A process.

    Attributes:
        url: the address of the service; `kubernetes` is that of its cluster.
        report: the file in which it says how many tasks there are, and how many objects in cycles were found.
    """

    pid: int
    url: str
    kubernetes: str
    report: Path


@contextmanager
def a_service(folder: Path, leaks: str = "") -> Iterator[Service]:
    """Runs until the end of the block, at which it ends when told.

    Arguments:
        leaks: what the probe leaks: some of the words memory, descriptors and tasks.
    """
    objects = [_node(number) for number in range(NUM_NODES)]
    objects.append(priority_class(URGENT, 100))
    state, configuration, log, report = (folder / name for name in ("state.json", "configuration.yaml", "log", "tasks"))
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    configuration.write_text(CONFIGURATION)
    log.touch()
    report.write_text("0 0")
    flags = [
        "--state",
        state,
        "--config",
        configuration,
        "--records",
        folder / "records.jsonl",
        "--port",
        "0",
        "--kubernetes-port",
        "0",
    ]
    with a_fork_server({"Probe": "bench.soak.probe:Probe"}, folder) as fork_server:
        pid = fork_server.fork(
            ["serve", *map(str, flags)],
            {REPORT: str(report), LEAKS: leaks, "REPRIEVE_RECORD_MEMORY": str(RECORD_MEMORY)},
            log,
        )
        try:
            end = time.monotonic() + SECONDS
            while not (match := _ADDRESSES.search(log.read_text())):
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.05)
            yield Service(pid, match[1], match[2], report)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            code = fork_server.wait_for(pid)
        assert code == 0, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    metadata = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
