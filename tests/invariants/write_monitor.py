"""A monitor in front of the API server: it writes down what the scheduler had done there, and says what must not have
been.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final, final

import httpx

from extender.rules.api_resources import NODES, PODS, Object
from extender.values.objects.quantity import Quantity
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.faults import Call

FINISHED: Final = ("Succeeded", "Failed")
LONGEST_LAG: Final = 100.0
"""Seconds after which informers have heard of everything, even if a watch was silent: then it is ended after eighty."""


@final
@dataclass(frozen=True, slots=True)
class Write:
    """One write, as it reached the server."""

    at: float
    verb: str
    resource: str
    subresource: str
    name: str
    status: int
    body: Any

    @property
    def is_binding(self) -> bool:
        """A pod is given a node."""
        return self.subresource == "binding"

    @property
    def is_deletion(self) -> bool:
        """A pod is told to go."""
        return (self.verb, self.resource) == ("delete", "pods")


@final
class WriteMonitor(httpx.AsyncBaseTransport):
    """Between the faults and the server. What it complains about was done by a scheduler: others do not come by
    here.
    """

    def __init__(self, registry: ObjectRegistry, inner: httpx.AsyncBaseTransport) -> None:
        self.writes: list[Write] = []
        self.complaints: list[str] = []
        self._registry = registry
        self._inner = inner
        self._pods = registry.store.follow([PODS], registry.store.resource_version)
        self._nominations: dict[tuple[str, str], int] = {}
        """(UID, node) -> priority: whoever was ever promised room."""
        self._gone: dict[str, float] = {}
        """UID -> since when a pod that was promised room is no more, or has a node."""

    def done(self, subresource: str = "", verb: str | None = None) -> list[Write]:
        """Writes to pods that the server accepted."""
        accepted = [
            write
            for write in self.writes
            if write.resource == "pods" and write.subresource == subresource and write.status < 300
        ]
        return [write for write in accepted if verb in (None, write.verb)]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The server's answer. Nothing else happens between looking and asking."""
        call = Call.of(request, asyncio.get_running_loop().time())
        if request.method == "GET":
            return await self._inner.handle_async_request(request)
        body = json.loads(request.content or b"null")
        self.learn_nominations()
        if (call.verb, call.resource, call.subresource) == ("delete", "pods", ""):
            self._look_at_deletion(call, body)
        response = await self._inner.handle_async_request(request)
        self.writes.append(
            Write(call.at, call.verb, call.resource, call.subresource, call.name, response.status_code, body)
        )
        if call.subresource == "binding":
            self._look_at_binding(call, body, accepted=response.status_code < 300)
        return response

    async def aclose(self) -> None:
        """The server stays: another scheduler may come."""

    def _look_at_binding(self, call: Call, body: Object, *, accepted: bool) -> None:
        """Every Binding has the UID, and each UID one that is accepted; the node has room for it."""
        uid, node = body["metadata"].get("uid"), body["target"]["name"]
        if not uid:
            self._complain("bound once", f"the binding of {call.name} does not say which pod it means")
        if not accepted:
            return
        bound = [
            write
            for write in self.writes
            if write.is_binding and write.status < 300 and write.body["metadata"].get("uid") == uid
        ]
        if len(bound) > 1:
            self._complain("bound once", f"{call.name} was bound {len(bound)} times")
        for what in over_committed(self._registry, node):
            self._complain("room", f"{call.name} was bound to {node}, which has too little {what}")

    def _look_at_deletion(self, call: Call, body: Object) -> None:
        """The victim is meant by its UID, and somebody more important has been promised its room.

        A victim without a node at the server was assumed when it was chosen, and its binding failed on the way to the
        server. Such a pod is deleted by kube-scheduler, too: only pods that wait in Permit or are in PreBind are
        rejected instead (preemption/executor.go, preemptPod).
        """
        victim = self._registry.store.get(PODS, call.namespace, call.name)
        if not (body or {}).get("preconditions", {}).get("uid"):
            self._complain("promised victims", f"the deletion of {call.name} does not say which pod it means")
            return
        if victim is None or victim.decoded()["metadata"]["uid"] != body["preconditions"].get("uid"):
            return
        spec = victim.decoded()["spec"]
        node, priority = spec.get("nodeName", ""), spec.get("priority", 0)
        preemptors = [
            uid
            for (uid, promised), higher in self._nominations.items()
            if (not node or promised == node) and higher > priority
        ]
        if not preemptors:
            self._complain(
                "promised victims",
                f"{call.name} was told to leave {node}, where nobody more important was promised room",
            )
        elif all(call.at - self._gone.get(uid, call.at) > LONGEST_LAG for uid in preemptors):
            self._complain(
                "needed victims", f"{call.name} was told to leave {node} for pods that have long been gone, or bound"
            )

    def learn_nominations(self) -> None:
        """Before history is forgotten."""
        for change in self._pods.take():
            pod = change.new.decoded()
            node = pod.get("status", {}).get("nominatedNodeName")
            if change.type == "DELETED" or pod["spec"].get("nodeName"):
                self._gone.setdefault(pod["metadata"]["uid"], asyncio.get_running_loop().time())
            if node:
                self._nominations[pod["metadata"]["uid"], node] = pod["spec"].get("priority", 0)

    def _complain(self, invariant: str, what: str) -> None:
        self.complaints.append(f"{invariant}: {what}")


def over_committed(registry: ObjectRegistry, node: str) -> list[str]:
    """What the pods on the node want more of than it has. A node that is not there has no limits."""
    stored = registry.store.get(NODES, "", node)
    if stored is None:
        return []
    allocatable = stored.decoded()["status"]["allocatable"]
    pods = pods_on(registry, node)
    requested = {"cpu": sum(milli_cpu(pod) for pod in pods), "pods": len(pods) * 1000}
    too_little = [name for name, amount in requested.items() if amount > milli(allocatable[name])]
    ports = [port for pod in pods for port in host_ports(pod)]
    return too_little + (["host ports"] if len(set(ports)) < len(ports) else [])


def pods_on(registry: ObjectRegistry, node: str) -> list[Object]:
    """Those that are not finished."""
    pods = [pod for pod in registry.list(PODS) if pod["spec"].get("nodeName") == node]
    return [pod for pod in pods if pod.get("status", {}).get("phase") not in FINISHED]


def milli_cpu(pod: Object) -> int:
    """What its containers ask for."""
    return sum(
        milli(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        for container in pod["spec"]["containers"]
    )


def host_ports(pod: Object) -> list[int]:
    """Of all its containers."""
    return [
        port["hostPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("hostPort")
    ]


def milli(quantity: str) -> int:
    """In thousandths."""
    return Quantity.parse(quantity).milli_value()
