"""An operator of a small cluster without a scheduler of its own (k3s with --disable-scheduler) lets Reprieve schedule
it, alone.

The API server is an embedded one in another process, which schedules nothing. Every step is typed in an empty
environment, outside the repository.
"""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.installed.environment import Environment
from tests.installed.journey import DEADLINE, Journey
from tests.kit.objects import node, pod
from tests.kit.ports import free_port
from tests.kit.service import kubeconfig_for
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

NODES, RUNNING, PENDING = 50, 480, 20


def cluster() -> dict[str, Any]:
    """Fifty nodes, nearly five hundred pods on them, and twenty that nobody has scheduled."""

    names = [f"edge-{number}" for number in range(NODES)]
    running = [pod(f"p-{number}", "100m", nodeName=names[number % NODES]) for number in range(RUNNING)]
    waiting = [pod(f"p-{number}", "100m") for number in range(RUNNING, RUNNING + PENDING)]
    items = [*(node(name, "4") for name in names), *running, *waiting]
    for obj in items[NODES:]:
        obj["metadata"]["namespace"] = "default"
    return {"apiVersion": "v1", "kind": "List", "items": items}


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def unscheduled(kube: int) -> int:
    pods = json.loads(read(f"http://127.0.0.1:{kube}/api/v1/pods"))["items"]
    return sum("nodeName" not in pod["spec"] for pod in pods)


def test_the_journey(environment: Environment, tmp_path: Path) -> None:
    journey = Journey(environment, tmp_path)
    kube, port, other = free_port(), free_port(), free_port()
    state, saved = tmp_path / "k3s.json", tmp_path / "saved.yaml"
    state.write_text(json.dumps(cluster()))
    kubeconfig = kubeconfig_for(kube, tmp_path)
    api = f"reprieve serve --no-schedule --port 0 --kubernetes-port {kube} --save {saved}"
    scheduler = f"reprieve serve --kubeconfig {kubeconfig} --schedule"

    # 1 the cluster has no scheduler: its pods wait, and anyone can be asked what would become of them
    with journey.beside(f"{api} --state {state}") as server:
        server.until_ready(f"http://127.0.0.1:{kube}/version")
        assert unscheduled(kube) == PENDING
        output = journey.type(f"reprieve whatif --pending --kubeconfig {kubeconfig} -o json")
        assert all(placement["node"] for placement in json.loads(output)["placements"])

        # 2 Reprieve schedules it
        with journey.beside(f"{scheduler} --leader-elect=false --port {port} --records {tmp_path}/records") as deciding:
            deciding.until_ready(f"http://127.0.0.1:{port}/readyz")
            until(lambda: unscheduled(kube) == 0)
            metrics = read(f"http://127.0.0.1:{port}/metrics")
            assert (
                f'scheduler_schedule_attempts_total{{profile="default-scheduler",result="scheduled"}} {PENDING}.0'
                in metrics
            )
            assert "scheduler_pending_pods" in metrics
            assert journey.type(f"reprieve why p-{RUNNING} --kubeconfig {kubeconfig}").startswith(
                f"default/p-{RUNNING}  Scheduled on "
            )

            # 3 the API server goes away for a while, with a new pod when it comes back
            server.process.terminate()
            server.process.wait(DEADLINE)
            until(lambda: not is_ready(port))
            assert read(f"http://127.0.0.1:{port}/livez") == "ok"
            with journey.beside(api) as restarted:
                restarted.until_ready(f"http://127.0.0.1:{kube}/version")
                until(lambda: is_ready(port))
                create(kube, "late")
                until(lambda: unscheduled(kube) == 0)

                # 4 the way back: it ends, and another scheduler goes on, here one that takes the lease of
                # kube-scheduler
                deciding.process.terminate()
                assert deciding.process.wait(DEADLINE) == 0
                create(kube, "later")
                with journey.beside(f"{scheduler} --leader-elect --port {other}"):
                    until(lambda: unscheduled(kube) == 0)
    print(journey.report())


def is_ready(port: int) -> bool:
    try:
        return read(f"http://127.0.0.1:{port}/readyz") == "ok"
    except OSError:
        return False


def create(kube: int, name: str) -> None:
    """A pod that nobody has scheduled."""
    url = f"http://127.0.0.1:{kube}/api/v1/namespaces/default/pods"
    urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(pod(name, "100m")).encode(), {"Content-Type": "application/json"}),
        timeout=30,
    ).close()
