"""Clients that use the cluster, and clients that watch it. They speak with the API server directly: no fault lies
between.
"""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, final

import httpx

from bench.jepsen.history import CLIENT, LEASE, Event, Listed, Record, Request, Seen
from bench.jepsen.network import Address
from extender.client.paths import path

PODS: Final = path("", "v1", "pods", namespace="default")
NODES: Final = path("", "v1", "nodes")
PRIORITIES: Final = {"low": 10, "high": 1000}
LISTS: Final = {
    "pods": PODS,
    "nodes": NODES,
    "leases": path("coordination.k8s.io", "v1", "leases", namespace="kube-system"),
}
TIMEOUT: Final = 2.0
_watches: Final = itertools.count(1)


class Http:
    """Requests to the API server, wherever it is at the moment."""

    def __init__(self, server: Address, record: Callable[[Record], None], clock: Callable[[], float]) -> None:
        self._server, self._record, self._clock = server, record, clock
        self._client = httpx.AsyncClient(trust_env=False, timeout=TIMEOUT)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with self._client:
            yield

    def url(self, where: str) -> str:
        return f"http://127.0.0.1:{self._server.port}{where}"


@final
class Workload(Http):
    """Creates and deletes pods and nodes, cordons and uncordons nodes. State: what it believes to be there."""

    def __init__(
        self, server: Address, record: Callable[[Record], None], clock: Callable[[], float], rng: random.Random
    ) -> None:
        super().__init__(server, record, clock)
        self._rng = rng
        self._pods: dict[str, str] = {}
        self._nodes: dict[str, bool] = {}
        self._num_pods = self._num_nodes = 0
        self._is_over = False

    async def prepare(self) -> None:
        """Creates what pods and the workload need: priorities and some nodes."""
        for name, value in PRIORITIES.items():
            where = path("scheduling.k8s.io", "v1", "priorityclasses")
            await self._ask("POST", where, {"metadata": {"name": name}, "value": value})
        for _ in range(4):
            await self._create_node()

    async def run(self) -> None:
        """Goes on until `stop`. Nothing cancels it, so that each of its requests is written down."""
        while not self._is_over:
            await self._step()
            await asyncio.sleep(self._rng.expovariate(8))

    def stop(self) -> None:
        self._is_over = True

    async def uncordon_all(self) -> None:
        for name in [*self._nodes]:
            await self._patch_node(name, closed=False)

    async def _step(self) -> None:
        match self._rng.choices(("create", "delete", "again", "cordon", "node", "no node"), (70, 12, 8, 6, 3, 1))[0]:
            case "create":
                self._num_pods += 1
                await self._create_pod(f"p{self._num_pods}")
            case "delete" if self._pods:
                await self._delete_pod(self._rng.choice([*self._pods]))
            case "again" if self._pods:
                name = self._rng.choice([*self._pods])
                await self._delete_pod(name)
                await self._create_pod(name)
            case "cordon":
                name = self._rng.choice([*self._nodes])
                await self._patch_node(name, closed=not self._nodes[name])
            case "node":
                await self._create_node()
            case "no node" if len(self._nodes) > 3:
                name = self._rng.choice([*self._nodes])
                del self._nodes[name]
                await self._ask("DELETE", f"{NODES}/{name}")

    async def _create_pod(self, name: str) -> None:
        resources = {"requests": {"cpu": self._rng.choice(("100m", "250m", "500m", "1"))}}
        spec: dict[str, Any] = {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "priorityClassName": self._rng.choices(("low", "high"), (4, 1))[0],
            "terminationGracePeriodSeconds": self._rng.choice((0, 0, 1)),
        }
        chance = self._rng.random()
        if chance < 0.1:
            spec["nodeSelector"] = {"name": "nowhere" if chance < 0.05 else self._rng.choice([*self._nodes])}
        created = await self._ask("POST", PODS, {"metadata": {"name": name}, "spec": spec})
        if created is not None and created.status_code == 201:
            self._pods[name] = created.json()["metadata"]["uid"]

    async def _delete_pod(self, name: str) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._pods.pop(name)}}
        await self._ask("DELETE", f"{PODS}/{name}", body)

    async def _create_node(self) -> None:
        self._num_nodes += 1
        name = f"n{self._num_nodes}"
        self._nodes[name] = False
        status = {"allocatable": {"cpu": self._rng.choice(("2", "4")), "memory": "8Gi", "pods": "110"}}
        node = {"metadata": {"name": name, "labels": {"name": name}}, "status": status}
        while (answer := await self._ask("POST", NODES, node)) is None or answer.status_code not in (201, 409):  # noqa: ASYNC110 - a retry
            await asyncio.sleep(0.1)

    async def _patch_node(self, name: str, *, closed: bool) -> None:
        self._nodes[name] = closed
        await self._ask("PATCH", f"{NODES}/{name}", {"spec": {"unschedulable": closed}})

    async def _ask(self, method: str, where: str, body: Any = None) -> httpx.Response | None:
        """Returns the answer; None if there is none."""
        life, began, answer = self._server.life, self._clock(), None
        content = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        try:
            answer = await self._client.request(method, self.url(where), json=body, headers=content)
        except httpx.ConnectError:
            return None  # it was never asked
        except httpx.TransportError:
            pass
        metadata = answer.json().get("metadata", {}) if answer is not None and answer.is_success else {}
        resource, _, name = (
            where.removeprefix(path("", "v1", "namespaces", name="default"))
            .removeprefix("/api/v1/")
            .strip("/")
            .partition("/")
        )
        self._record(
            Request(
                at=began,
                until=self._clock(),
                life=life,
                by=CLIENT,
                verb={"POST": "create", "PATCH": "patch", "DELETE": "delete"}[method],
                resource=resource,
                name=name or (body or {}).get("metadata", {}).get("name", ""),
                uid=(body or {}).get("preconditions", {}).get("uid", "") or metadata.get("uid", ""),
                status=answer.status_code if answer is not None else 0,
                version=int(metadata.get("resourceVersion") or 0),
            )
        )
        return answer

    async def now(self) -> tuple[list[Seen], list[Seen]]:
        """Returns pods and nodes as they are.

        Raises:
            httpx.TransportError: the API server does not answer.
        """
        lists = [(await self._client.get(self.url(where))).json()["items"] for where in (PODS, NODES)]
        pods, nodes = ([Seen.of(obj) for obj in objects] for objects in lists)
        return pods, nodes


@final
class Observer(Http):
    """Lists a kind of objects and watches it from there, and writes down what it sees. State: who holds the lease, if
    it watches that.
    """

    def __init__(
        self,
        name: str,
        resource: str,
        server: Address,
        record: Callable[[Record], None],
        clock: Callable[[], float],
        glance: random.Random | None,
    ) -> None:
        """Nothing is asked yet.

        Arguments:
            glance: for an observer that looks again and again, each time for a moment; another one watches for as long
                as it can.
        """
        super().__init__(server, record, clock)
        self._name, self._resource, self._glance = name, resource, glance
        self.holder = ""

    async def run(self) -> None:
        """Goes on until cancelled."""
        version = -1
        life = -1
        while True:
            if life != self._server.life or self._glance is not None:
                version = -1
            life = self._server.life
            try:
                if version < 0:
                    version = await self._list(life)
                seconds = None if self._glance is None else self._glance.uniform(0.1, 1.0)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        async for shown_version in self._watch(life, version):
                            version = shown_version
            except (httpx.TransportError, json.JSONDecodeError, KeyError):
                await asyncio.sleep(0.05)  # it is down, or was in the middle of a word

    async def _list(self, life: int) -> int:
        answer = (await self._client.get(self.url(LISTS[self._resource]))).json()
        objects, version = [self._observe(obj) for obj in answer["items"]], int(answer["metadata"]["resourceVersion"])
        self._record(Listed(self._clock(), life, self._name, self._resource, version, objects))
        return version

    async def _watch(self, life: int, since: int) -> AsyncIterator[int]:
        number = next(_watches)
        query = {"watch": "1", "resourceVersion": str(since)}
        async with self._client.stream(
            "GET", self.url(LISTS[self._resource]), params=query, timeout=httpx.Timeout(TIMEOUT, read=None)
        ) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    yield -1  # the server knows nothing of that version any more
                    return
                obj = self._observe(event["object"])
                self._record(Event(self._clock(), life, self._name, self._resource, number, since, event["type"], obj))
                yield obj.version

    def _observe(self, obj: dict[str, Any]) -> Seen:
        subject = Seen.of(obj)
        if self._resource == "leases" and subject.name == LEASE:
            self.holder = subject.holder
        return subject
