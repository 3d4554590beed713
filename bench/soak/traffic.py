"""Requests of all kinds, as kube-scheduler, people, their browsers and other clients of the cluster make them."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, final

import httpx

from api.documents.documentation import SCENARIO
from bench.soak.service import NUM_NODES, URGENT, Service

PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/api/v1/namespaces/default/events"
REPLICA_SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
CROWD: Final = 500
MOST_PODS: Final = 80
_AT_ONCE: Final = 20
SECONDS: Final = 60.0
_EXPECTED: Final = (200, 201, 404, 409, 503)
"""What may be answered: a pod can be gone by now, and places can be taken."""


@final
class Traffic:
    """State: the pods that are there, and how often which status was answered."""

    def __init__(self, service: httpx.AsyncClient, kubernetes: httpx.AsyncClient, rng: random.Random) -> None:
        self.statuses: Counter[str] = Counter()
        self._service, self._kubernetes, self._rng = service, kubernetes, rng
        self._pods: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

    async def fill(self, cycles: int) -> None:
        """Lets so many crowds of pods come and go, changes nodes as often and writes twice as many events.

        Then histories and records, which are bounded, are full, and as many events expire as come.
        """
        crowd: dict[str, Any] = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "crowd", "namespace": "default"},
        }
        labels = {"app": "crowd"}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        }
        crowd["spec"] = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        await self._asked(self._kubernetes, "POST", REPLICA_SETS, crowd)
        for _ in range(cycles):
            for number in (CROWD, 0):
                patch = {"spec": {"replicas": number}}
                await self._asked(self._kubernetes, "PATCH", f"{REPLICA_SETS}/crowd", patch, MERGE)
                while await self._num_bound() != number:  # noqa: ASYNC110 - another process lets them come and go
                    await asyncio.sleep(0.2)

        for _ in range(cycles * CROWD // _AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(self._node_changes())
                    group.create_task(self._event())
                    group.create_task(self._event())

    async def _num_bound(self) -> int:
        listed = (await self._asked(self._kubernetes, "GET", f"{PODS}?labelSelector=app%3Dcrowd")).json()["items"]
        # All of them, or none.
        return len(listed) if all("nodeName" in pod["spec"] for pod in listed) else -1

    async def round(self) -> None:
        """Asks everything once, in any order and at the same time, and returns when all is answered."""
        kinds = [
            self._pods_come_and_go, self._node_changes, self._watch, self._verbs, self._evaluate, self._what_if, self._capacity,
            self._follow, *(self._page for _ in range(3)), *(self._question for _ in range(3)),
        ]  # fmt: skip
        self._rng.shuffle(kinds)
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(kind())

    async def _pods_come_and_go(self) -> None:
        for _ in range(3):
            created = await self._asked(self._kubernetes, "POST", PODS, self._new_pod())
            if created.status_code == 201:
                self._pods.append(created.json())
        while len(self._pods) > MOST_PODS:
            pod = self._pods.pop(0)
            await self._asked(
                self._kubernetes, "DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0}
            )

    async def _node_changes(self) -> None:
        patch = {"metadata": {"labels": {"colour": self._rng.choice(("red", "green", "blue"))}}}
        await self._asked(self._kubernetes, "PATCH", f"/api/v1/nodes/{self._a_node()}", patch, MERGE)

    async def _event(self) -> None:
        """As long as that of a pod that fits nowhere."""
        pod = {
            "kind": "Pod",
            "namespace": "default",
            "name": f"none-{next(self._numbers)}",
            "uid": str(next(self._numbers)),
            "apiVersion": "v1",
        }
        note = (
            f"0/{NUM_NODES} nodes are available: {NUM_NODES} Insufficient cpu. "
            + "preemption: no nodes are helpful for this pod. " * 3
        )
        time = "2026-01-01T00:00:00.000000Z"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "written.", "namespace": "default"},
            "involvedObject": pod,
        }
        event |= {"eventTime": time, "reportingComponent": "soak", "reportingInstance": "soak", "action": "Scheduling"}
        event |= {"type": "Warning", "reason": "FailedScheduling", "message": note}
        await self._asked(self._kubernetes, "POST", EVENTS, event)

    async def _watch(self) -> None:
        await self._streamed(self._kubernetes, self._rng.choice((PODS, "/api/v1/nodes")) + "?watch=1")

    async def _follow(self) -> None:
        await self._streamed(self._service, "/v1/stream")

    async def _verbs(self) -> None:
        pod = {
            **self._new_pod(),
            "metadata": {"name": "asked", "namespace": "default", "uid": f"u{next(self._numbers)}"},
        }
        names = [f"node-{number}" for number in range(NUM_NODES)]
        for verb in ("filter", "prioritize"):
            await self._asked(self._service, "POST", f"/extender/{verb}", {"Pod": pod, "NodeNames": names})
        victims = {
            self._a_node(): {"NumPDBViolations": 0, "Pods": [{"UID": self._a_pod()["metadata"].get("uid", "gone")}]}
        }
        await self._asked(self._service, "POST", "/extender/preempt", {"Pod": pod, "NodeNameToMetaVictims": victims})

    async def _evaluate(self) -> None:
        await self._asked(self._service, "POST", "/v1/evaluate", SCENARIO)

    async def _what_if(self) -> None:
        await self._asked(
            self._service, "POST", "/v1/whatif", {"drainNodes": [self._a_node()], "create": [self._new_pod()]}
        )

    async def _capacity(self) -> None:
        await self._asked(self._service, "POST", "/v1/capacity", self._new_pod())

    async def _page(self) -> None:
        pages = (
            "/",
            "/ui/nodes",
            f"/ui/nodes/{self._a_node()}",
            f"/ui/pods/{self._place()}",
            "/ui/history",
            "/ui/what-if",
        )
        await self._asked(self._service, "GET", self._rng.choice(pages))

    async def _question(self) -> None:
        questions = (
            f"/v1/explain/{self._place()}",
            "/v1/queue",
            "/v1/decisions",
            "/v1/preemptions",
            "/v1/cluster",
            "/metrics",
            "/readyz",
        )
        await self._asked(self._service, "GET", self._rng.choice(questions))

    async def _asked(
        self, client: httpx.AsyncClient, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        answer = await client.request(method, path, json=body, headers=headers)
        self._count(answer, method, path)
        return answer

    async def _streamed(self, client: httpx.AsyncClient, path: str) -> None:
        """Hangs up after the first words, or soon without any."""
        async with client.stream("GET", path) as answer:
            self._count(answer, "GET", path)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rng.uniform(0, 0.3)):
                    await anext(answer.aiter_bytes())

    def _count(self, answer: httpx.Response, method: str, path: str) -> None:
        self.statuses[str(answer.status_code)] += 1
        assert answer.status_code in _EXPECTED, (method, path, answer.status_code)

    def _a_node(self) -> str:
        return f"node-{self._rng.randrange(NUM_NODES)}"

    def _a_pod(self) -> dict[str, Any]:
        return self._rng.choice(self._pods) if self._pods else {"metadata": {"name": "none"}}

    def _place(self) -> str:
        return f"default/{self._a_pod()['metadata']['name']}"

    def _new_pod(self) -> dict[str, Any]:
        """Some fit nowhere, and some can make room."""
        requests = {"cpu": self._rng.choice(("500m", "1", "3", "9")), "memory": "64Mi"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p{next(self._numbers)}",
                "namespace": "default",
                "labels": {"app": self._rng.choice("abc")},
            },
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
                "terminationGracePeriodSeconds": 0,
                **self._rng.choice(({}, {}, {}, {"priorityClassName": URGENT, "priority": 100})),
            },
        }


@asynccontextmanager
async def traffic_for(service: Service, rng: random.Random) -> AsyncIterator[Traffic]:
    """Opens connections until the end of the block."""
    async with (
        httpx.AsyncClient(base_url=service.url, trust_env=False, timeout=SECONDS) as ours,
        httpx.AsyncClient(base_url=service.kubernetes, trust_env=False, timeout=SECONDS) as kubernetes,
    ):
        yield Traffic(ours, kubernetes, rng)
