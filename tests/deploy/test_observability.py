"""Every expression of the dashboards and alerts has data in a real Prometheus, in a run in which everything happens
that they are about.

Four services: one schedules and answers the verbs, with a plugin that fails or is slow where a pod says so, and an API
server that fails for one pod and cannot be understood about one node; one has lost its API server and cannot write its
log; one waits for a lease that somebody else holds; one does not answer.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.app import create_app
from api.settings.settings import Settings
from api.starting import opens
from tests.api.in_process import ROOT
from tests.deploy import failing_plugin
from tests.deploy.prometheus import Prometheus, program, scraping
from tests.kit import objects
from tests.kit.objects import priority_class
from tests.kit.ports import free_port
from tests.kit.service import JSON, Service, kubeconfig_for, process, serving, serving_app
from tests.kit.waiting import DEADLINE, until
from tools import generate_metrics_page
from tools.generate_dashboards import DASHBOARDS, FOLDER, expressions, page
from tools.render_manifests import CHART

ALERTS: Final = CHART / "files" / "alerts.yaml"
NODES: Final = ["node-a1", "node-a2", "node-b1", "node-c1", "no-such-node"]
MOST_ROUNDS: Final = 1000


def alerts() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def all_expressions() -> dict[str, str]:
    """By the dashboard or alert that it is of; with what Grafana puts in."""
    of_dashboards = {f"{key} {expression}": expression for key in DASHBOARDS for expression in expressions(key)}
    texts = of_dashboards | {key: rule["expr"] for key, rule in alerts().items()}
    return {key: text.replace("$__rate_interval", "1m").replace("$job", ".*reprieve.*") for key, text in texts.items()}


@contextmanager
def service(folder: Path, cluster: int, *flags: str, lease: str = "reprieve", log: str = "log") -> Iterator[str]:
    """`reprieve serve` as a process that follows the cluster at a port of this machine; its address."""
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(failing_plugin.CONFIGURATION.replace("LEASE", lease))
    failing_plugin.install(folder)
    port = free_port()
    where = ("--kubeconfig", kubeconfig_for(cluster, folder))
    path = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    with process("serve", f"--port={port}", f"--config={config}", *flags, *where, log=folder / log, environment=path):
        yield f"127.0.0.1:{port}"


def pod(name: str, cpu: str = "10m", behaviour: str = "", priority_class: str = "") -> dict[str, Any]:
    return objects.pod(name, cpu, priority_class, labels={"behaviour": behaviour} if behaviour else {})


class FailingServer:
    """An API server that does not tell what became of a binding of `stuck`, and says of one node what cannot be
    read.
    """

    LABELS: Final = {"rack": "7777"}
    NO_LABEL: Final = {b'"7777"': b"777777"}

    def __init__(self, served: ASGIApp) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path", "").endswith("/pods/stuck/binding"):
            await Response(status_code=500)(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            for original, changed in self.NO_LABEL.items():
                if original in message.get("body", b""):
                    message["body"] = message["body"].replace(original, changed)
            await send(message)

        await self._served(scope, receive, sent)


class Traffic:
    """Makes everything happen once more with each round."""

    def __init__(self, cluster: Service, answering: httpx.Client, blind: httpx.Client) -> None:
        self._cluster = cluster
        self._answering = answering
        self._blind = blind
        self._numbers = count()
        body = priority_class("urgent", 100000)
        cluster.post("/apis/scheduling.k8s.io/v1/priorityclasses", body).raise_for_status()
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "strange", "labels": FailingServer.LABELS}}
        cluster.post("/api/v1/nodes", node).raise_for_status()
        self._create(pod("stuck"))
        contested = objects.node("contested", "4", taints=[{"key": "contested", "effect": "NoSchedule"}])
        cluster.post("/api/v1/nodes", contested).raise_for_status()
        self._put_back(0)
        robbed = pod("robbed", cpu="4", priority_class="urgent")
        robbed["spec"] |= {
            "nodeSelector": {"kubernetes.io/hostname": "contested"},
            "tolerations": [{"operator": "Exists"}],
        }
        self._create(robbed)

    def round(self) -> None:
        number = next(self._numbers)
        self._rob()
        # Else the attempts for those who wait would outnumber all others.
        for name in ("large", "failing", "urgent"):
            self._cluster.client.delete(f"/api/v1/namespaces/default/pods/{name}-{number - 2}")
        if number % 32 == 8:
            # As many in a row as it takes until the plugin is not called any more.
            for _ in range(10):
                self._ask("filter", {"Pod": _pod(f"asked-failing-{number}", behaviour="fail"), "NodeNames": NODES})
        self._create(pod(f"web-{number}"))
        self._create(pod(f"large-{number}", cpu="900"))
        self._create(pod(f"urgent-{number}", cpu="3500m", priority_class="urgent"))
        self._create(pod(f"failing-{number}", behaviour="fail"))
        if number % 2 == 0:
            self._create(pod(f"slow-{number}", behaviour="slow"))
            self._ask("filter", {"Pod": _pod(f"asked-slow-{number}", behaviour="very-slow"), "NodeNames": NODES})
        self._ask("filter", {"Pod": _pod(f"asked-{number}", cpu="2"), "NodeNames": NODES})
        self._ask("filter", {"Pod": _pod(f"without-nodes-{number}")})
        self._ask("prioritize", {"Pod": _pod(f"asked-{number}"), "NodeNames": NODES[:3]})
        victims = {"node-a1": {"Pods": [], "NumPDBViolations": 0}}
        self._ask("preempt", {"Pod": _pod(f"asked-{number}"), "NodeNameToMetaVictims": victims})
        self._ask("bind", {"PodName": "web", "PodNamespace": "default", "PodUID": "1", "Node": "node-a1"})
        for client in (self._answering, self._blind):
            client.get("/readyz")

    def _put_back(self, number: int) -> None:
        """A pod comes back to the node that `robbed` wants, before the one that was evicted there is gone."""
        body = pod(f"back-{number}", cpu="4")
        body["metadata"]["finalizers"] = ["example.com/stays"]
        body["spec"] |= {"nodeName": "contested", "terminationGracePeriodSeconds": 0}
        self._create(body)

    def _rob(self) -> None:
        path = "/api/v1/namespaces/default/pods"
        for item in self._cluster.client.get(path).json()["items"]:
            name = item["metadata"]["name"]
            if name.startswith("back-") and item["metadata"].keys() >= {"deletionTimestamp", "finalizers"}:
                self._put_back(int(name.removeprefix("back-")) + 1)
                patched = self._cluster.client.patch(
                    f"{path}/{name}",
                    json={"metadata": {"finalizers": None}},
                    headers={"content-type": "application/merge-patch+json"},
                )
                patched.raise_for_status()

    def _create(self, body: dict[str, Any]) -> None:
        self._cluster.post("/api/v1/namespaces/default/pods", body).raise_for_status()

    def _ask(self, verb: str, body: dict[str, Any]) -> None:
        self._answering.post(f"/extender/{verb}", content=json.dumps(body).encode(), headers=JSON)


def _pod(name: str, cpu: str = "10m", behaviour: str = "") -> dict[str, Any]:
    body = pod(name, cpu, behaviour)
    body["metadata"] |= {"uid": name, "namespace": "default"}
    return body


@pytest.fixture(scope="module")
def prometheus_with_everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, Traffic]]:
    folder = tmp_path_factory.mktemp("observed")
    program("prometheus")
    with ExitStack() as stack:
        settings = Settings(port=0, schedule=False)
        cluster = stack.enter_context(serving_app(FailingServer(create_app(settings, opens)), settings))
        spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2099-01-01T00:00:00.000000Z"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "held"}, "spec": spec}
        cluster.post("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease).raise_for_status()
        deciding = stack.enter_context(service(folder / "deciding", cluster.port, "--schedule", "--serve-bind"))
        waiting = stack.enter_context(service(folder / "waiting", cluster.port, "--schedule", lease="held"))
        with ExitStack() as until_lost:
            lost = until_lost.enter_context(serving(schedule=False))
            blind = stack.enter_context(service(folder / "blind", lost.port, "-v=4", log="/dev/full"))
            clients = [
                stack.enter_context(httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=DEADLINE))
                for address in (deciding, blind)
            ]
            for client in clients:
                until(partial(_is_ready, client))
            addresses = [deciding, waiting, blind, f"127.0.0.1:{free_port()}"]
            started = stack.enter_context(scraping({"/metrics": addresses, "/metrics/slis": addresses}, folder))
        yield started, Traffic(cluster, *clients)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_every_expression_has_data(prometheus_with_everything: tuple[Prometheus, Traffic]) -> None:
    """Rounds go on until each has had some."""
    prometheus, traffic = prometheus_with_everything
    unanswered = all_expressions()
    for _ in range(MOST_ROUNDS):
        traffic.round()
        unanswered = {name: expression for name, expression in unanswered.items() if not prometheus.values(expression)}
        if not unanswered:
            break

    assert unanswered == {}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_dashboards_are_what_the_code_generates(name: str) -> None:
    """`make docs` writes them."""
    assert (FOLDER / f"{name}.json").read_text() == page(name)


def test_the_page_of_metrics_is_what_the_code_generates() -> None:
    assert generate_metrics_page.PAGE.read_text() == generate_metrics_page.page()


@pytest.mark.slow
def test_prometheus_finds_nothing_wrong_with_the_rules() -> None:
    check = subprocess.run([program("promtool"), "check", "rules", ALERTS], capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stderr


def test_every_alert_is_explained() -> None:
    text = (ROOT / "docs" / "observability.md").read_text()

    assert re.findall(r"^\| (Reprieve\w+) \|", text, re.MULTILINE) == list(alerts())
