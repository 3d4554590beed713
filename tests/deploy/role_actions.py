"""What a service does with an API server, as small stories about a service with a role: each returns what became of
it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from extender.assembly.backend import Backend
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.access_review import AccessReview
from extender.client.client import Client
from extender.client.errors import Forbidden
from extender.client.leader_election import LeaderElector
from extender.rules.api_resources import LEASES, NEW_EVENTS, PODS, Object
from extender.testing import make_pod
from extender.values.config.configuration import Configuration
from extender.values.objects.kinds import PRIORITY_CLASSES
from extender.values.protocol.wire_types import MetaVictims
from extender.values.targets.target import Target
from extender.verbs import VerbError
from reprieve.cluster import own_cluster
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices, wanting
from tests.kit.faults import Fault, FaultyTransport
from tests.kit.faults.answers import commit_then_drop, status
from tests.kit.objects import node, pod, priority_class
from tests.kit.rbac import Rbac
from tests.kit.storage_objects import DATA, NOT_PROVISIONED, PROVISIONED, WITH_DATA, local_volume

HIGH: Final = priority_class("high", 1000)
LOCAL: Final = (node("a"), NOT_PROVISIONED, DATA, local_volume("v", on="a"))
MADE: Final = (node("a"), PROVISIONED, DATA)


@dataclass(frozen=True)
class World:
    """A cluster, and a service that follows it with a role."""

    cluster: ObjectRegistry
    """The objects themselves; a story changes them without any role."""
    backend: Backend
    client: Client

    async def create(self, *pods: Object, seconds: float = 15.0) -> None:
        for obj in pods:
            self.cluster.create(PODS, "default", obj)
            await asyncio.sleep(seconds)

    def pod(self, name: str = "web") -> Object:
        return self.cluster.get(PODS, "default", name)

    def node_of(self, name: str = "web") -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def events(self, name: str = "web") -> list[Object]:
        """In the form of events.k8s.io."""
        return [event for event in self.cluster.list(NEW_EVENTS, "default") if event["regarding"]["name"] == name]

    def reasons(self, name: str = "web") -> list[str]:
        return [event["reason"] for event in self.events(name)]


@asynccontextmanager
async def a_world(
    role: Rbac, *objects: Object, decides: bool = True, faults: Iterable[Fault] = ()
) -> AsyncIterator[World]:
    """A service whose requests are refused as the role says; it has had the time to become ready.

    Arguments:
        decides: True for `--schedule --leader-elect`, with the lease of the manifest.
        faults: what else goes wrong between the service and the API server.
    """
    configuration = Configuration()
    async with own_cluster(objects, rng=random.Random(1)) as cluster:
        await asyncio.sleep(1)
        transport = FaultyTransport(EmbeddedTransport(cluster.api), *role.faults(), *faults)
        client, elector = Client(Target("http://embedded"), transport=transport), None
        if decides:
            (lease,) = {grant.name for grant in role.grants if grant.right.plural == "leases" and grant.name}
            election = replace(configuration.leader_election, resource_name=lease)
            elector = LeaderElector(
                client, election, "this replica", rng=random.Random(1), boot_time=asyncio.get_running_loop().time
            )
        writing = (
            client if elector is None else Client(Target("http://embedded"), transport=transport, fence=elector.fence)
        )
        async with live_backend(
            configuration, writing, LiveOptions(decides=decides), elector=elector, rng=random.Random(1)
        ) as backend:
            await asyncio.sleep(5)
            yield World(cluster.api.registry, backend, client)


def no_streamed_lists() -> Fault:
    return Fault(status(422), where=lambda call: "sendInitialEvents" in call.params, times=None)


# In every mode


async def follows_the_cluster(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("a"), decides=False, faults=faults) as world:
        await asyncio.sleep(120)
        return world.backend.is_ready()


async def follows_a_server_that_streams_no_lists(role: Rbac) -> bool:
    return await follows_the_cluster(role, no_streamed_lists())


async def knows_the_priority_classes(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("a"), HIGH, decides=False, faults=faults) as world:
        await asyncio.sleep(120)
        informers = world.backend.informers
        assert informers is not None and informers.has_synced, "no decision depends on them"
        (classes,) = [reflector.objects for reflector in informers.reflectors if reflector.kind is PRIORITY_CLASSES]
        return ("", "high") in classes


async def knows_the_classes_of_a_server_that_streams_no_lists(role: Rbac) -> bool:
    return await knows_the_priority_classes(role, no_streamed_lists())


async def knows_who_a_caller_is(role: Rbac) -> bool:
    async with a_world(role, decides=False) as world:
        review = AccessReview(world.client, asyncio.get_running_loop().time)
        try:
            user = await review.user("a token")
            return user is not None and await review.may_list(user, "pods", "default")
        except Forbidden:
            return False


async def shows_the_events_about_a_pod(role: Rbac) -> bool:
    async with a_world(role, node("a"), pod("web"), decides=False) as world:
        questions = world.backend.questions
        explanation = None if questions is None else await questions.explain("default", "web", events=True)
        return explanation is not None and explanation.events is not None and not explanation.events.why_none


async def tells_that_a_victim_was_spared(role: Rbac, times: int = 1) -> bool:
    async with a_world(role, node("a"), decides=False) as world:
        await world.create(pod("low", nodeName="a"), pod("lower", nodeName="a"), pod("web"))
        victims = MetaVictims.of([world.pod(name)["metadata"]["uid"] for name in ("low", "lower")], 0)
        for _ in range(times):
            asks = make_pod("web").uid(world.pod("web")["metadata"]["uid"]).req(cpu="1").priority(10).obj()
            await world.backend.verbs.preempt(asks, {"a": victims})
            await asyncio.sleep(5)
        return any(event["reason"] == "PreemptionNarrowed" and _count(event) == times for event in world.events())


async def counts_the_victims_spared(role: Rbac) -> bool:
    return await tells_that_a_victim_was_spared(role, times=2)


# With the bind verb


async def binds_for_kube_scheduler(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("a"), decides=False, faults=faults) as world:
        await world.create(pod("web"))
        try:
            await world.backend.verbs.bind("web", "default", world.pod()["metadata"]["uid"], "a")
        except VerbError:
            return False
        return world.node_of() == "a"


async def learns_what_became_of_a_binding(role: Rbac) -> bool:
    return await binds_for_kube_scheduler(role, Fault(commit_then_drop(), verb="create", subresource="binding"))


# As a scheduler


async def schedules_a_pod(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("a"), faults=faults) as world:
        await world.create(pod("web"))
        return world.node_of() == "a"


async def tells_that_a_pod_was_scheduled(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("a"), faults=faults) as world:
        await world.create(pod("web"))
        return world.reasons() == ["Scheduled"]


async def learns_what_became_of_a_pod(role: Rbac) -> bool:
    return await tells_that_a_pod_was_scheduled(role, Fault(commit_then_drop(), verb="create", subresource="binding"))


async def says_why_a_pod_waits(role: Rbac) -> bool:
    async with a_world(role, node("a")) as world:
        await world.create(pod("web", cpu="9"))
        return any(condition["reason"] == "Unschedulable" for condition in world.pod()["status"].get("conditions", ()))


async def counts_how_often_it_said_so(role: Rbac) -> bool:
    async with a_world(role, node("a")) as world:
        await world.create(pod("web", cpu="9"), seconds=700)
        return any(_count(event) > 1 for event in world.events())


async def preempts(role: Rbac) -> bool:
    async with a_world(role, node("a"), HIGH) as world:
        await world.create(pod("low", cpu="2"), pod("web", cpu="2", priorityClassName="high"))
        return world.node_of() == "a"


async def gives_a_volume_to_a_claim(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, *LOCAL, faults=faults) as world:
        await world.create(pod("web", **WITH_DATA))
        return world.reasons() == ["Scheduled"]


async def learns_whose_a_volume_is(role: Rbac) -> bool:
    return await gives_a_volume_to_a_claim(role, Fault(commit_then_drop(), verb="patch", resource="persistentvolumes"))


async def has_a_volume_made(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, *MADE, faults=faults) as world:
        await world.create(pod("web", **WITH_DATA))
        return world.reasons() == ["Scheduled"]


async def learns_whether_a_volume_is_made(role: Rbac) -> bool:
    return await has_a_volume_made(role, Fault(commit_then_drop(), verb="patch", resource="persistentvolumeclaims"))


async def allocates_devices(role: Rbac, *faults: Fault) -> bool:
    async with a_world(
        role, node("b"), device_class(None), devices("b", "gpu-1"), device_claim(), faults=faults
    ) as world:
        await world.create(pod("web", **WITH_DEVICE))
        return world.reasons() == ["Scheduled"]


async def learns_what_became_of_a_claim(role: Rbac) -> bool:
    return await allocates_devices(
        role, Fault(commit_then_drop(), verb="patch", resource="resourceclaims", subresource="status")
    )


async def makes_a_claim_for_an_extended_resource(role: Rbac, *faults: Fault) -> bool:
    async with a_world(role, node("n"), device_class(), devices("n", "gpu-1"), faults=faults) as world:
        await world.create(wanting("web"))
        return world.node_of() == "n"


async def takes_a_claim_back_that_it_made(role: Rbac) -> bool:
    """The first attempt to bind the pod fails."""
    return await makes_a_claim_for_an_extended_resource(role, Fault(status(403), verb="create", subresource="binding"))


async def leads(role: Rbac) -> bool:
    async with a_world(role, node("a")) as world:
        await asyncio.sleep(60)
        await world.create(pod("web"))
        return world.node_of() == "a"


async def holds_the_lease(role: Rbac) -> bool:
    """A kube-scheduler in the pod does so with the same service account."""
    (name,) = {grant.name for grant in role.grants if grant.right.plural == "leases" and grant.name}
    async with a_world(role) as world:
        await asyncio.sleep(60)
        leases = {lease["metadata"]["name"]: lease["spec"] for lease in world.cluster.list(LEASES, "kube-system")}
        return name in leases and leases[name]["renewTime"] > leases[name]["acquireTime"]


def _count(event: dict[str, Any]) -> int:
    return int(event.get("series", {}).get("count", 1))
