"""The operations of scheduler_perf workloads that are about devices of dynamic resource allocation.

Upstream: test/integration/scheduler_perf, dra.go.
"""

import asyncio
from fnmatch import fnmatchcase
from typing import Final, final

from extender.values.objects.decoding import replaced
from extender.values.objects.devices import AllocatedDeviceStatus, AllocationResult, ResourceClaim
from extender.values.objects.meta import Condition
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodResourceClaim
from reprieve.lab.simulation.perf_run import Operation, PerfRun
from reprieve.lab.simulation.prototypes import named
from reprieve.lab.simulation.workload import WorkloadError

GLANCE: Final = 1.0
"""Virtual seconds between two looks at claims or pods."""
STABLE: Final = 5.0
"""For how many seconds pods have to be without a node."""
STATUSES: Final = ("True", "False", "Unknown")


@final
class CreateResourceDriver(Operation, frozen=True, kw_only=True, tag="createResourceDriver"):
    """Gives devices to the nodes whose names match."""

    driver_name: str
    nodes: str
    max_claims_per_node: int | None = None
    max_claims_per_node_param: str | None = None

    async def run(self, run: PerfRun) -> None:
        number = run.count(self.max_claims_per_node, self.max_claims_per_node_param)
        for node in run.scene.cluster.all_of(Node):
            if fnmatchcase(node.name, self.nodes):
                run.scene.put(run.templates.device_slice(self.driver_name, node.name, number))


@final
class AllocResourceClaims(Operation, frozen=True, kw_only=True, tag="allocResourceClaims"):
    """Allocates claims without pods: the scheduler places a pod for each, which is gone afterwards."""

    namespace: str = ""

    async def run(self, run: PerfRun) -> None:
        cluster = run.scene.cluster
        claims = [
            claim for claim in cluster.all_of(ResourceClaim, self.namespace or None) if claim.status.allocation is None
        ]
        pods = []
        run.scene.observation.is_aside = True
        for claim in claims:
            pod = run.templates.claiming_pod(claim.namespace)
            reference = PodResourceClaim(name="claim", resource_claim_name=claim.name)
            pods.append(
                named(replaced(pod, spec=replaced(pod.spec, resource_claims=[reference])), run.unique("allocation-"))
            )
        run.scene.create_pods(pods)
        await run.scene.settle()
        run.scene.observation.is_aside = False
        for pod, claim in zip(pods, claims, strict=True):
            allocated = cluster.find(ResourceClaim, claim.name, claim.namespace)
            attempted = cluster.find(Pod, pod.name, pod.namespace)
            cluster.remove(pod)
            if allocated is None or allocated.status.allocation is None:
                conditions = [] if attempted is None else attempted.status.conditions
                message = next((condition.message for condition in conditions if condition.message), "")
                raise WorkloadError(f"allocResourceClaims: no node has devices for the claim {claim.key}: {message}")
            cluster.put(replaced(allocated, status=replaced(allocated.status, reserved_for=[])))


@final
class UpdateDeviceConditions(Operation, frozen=True, kw_only=True, tag="updateDeviceConditions"):
    """Plays the driver of the devices that pods wait for: each device of the allocated claims gets a condition."""

    namespace: str
    condition_type_param: str
    condition_status_param: str
    duration: str | None = None
    duration_param: str | None = None

    async def run(self, run: PerfRun) -> None:
        kind, status = str(run.param(self.condition_type_param)), run.param(self.condition_status_param)
        if status not in STATUSES:
            raise WorkloadError(
                f"{self.condition_status_param} is {status!r:.40}, and has to be one of {', '.join(STATUSES)}"
            )
        end = run.scene.now() + run.seconds(self.duration, self.duration_param)
        condition = Condition(type=kind, status=status, reason="Test", message="Test")
        while not (names := [claim.metadata.name for claim in run.scene.cluster.all_of(ResourceClaim, self.namespace)]):
            await _look_again(run, end, f"there are no claims in the namespace {self.namespace}")
        for name in names:
            while (waiting := self._waiting(run, name)) is None:
                await _look_again(run, end, f"no device of the claim {self.namespace}/{name} has binding conditions")
            claim, allocation = waiting
            reported = [
                AllocatedDeviceStatus(
                    driver=result.driver, pool=result.pool, device=result.device, conditions=[condition]
                )
                for result in allocation.devices.results
                if result.binding_conditions or result.binding_failure_conditions
            ]
            run.scene.put(replaced(claim, status=replaced(claim.status, devices=[*claim.status.devices, *reported])))

    def _waiting(self, run: PerfRun, name: str) -> tuple[ResourceClaim, AllocationResult] | None:
        """The claim and its allocation, once a driver has to prepare a device of it."""
        claim = run.scene.cluster.find(ResourceClaim, name, self.namespace)
        if claim is None or (allocation := claim.status.allocation) is None:
            return None
        waits = any(result.binding_conditions for result in allocation.devices.results)
        return (claim, allocation) if waits else None


@final
class CheckPodScheduled(Operation, frozen=True, kw_only=True, tag="checkPodScheduled"):
    """Waits until all pods of a namespace have nodes, or none had one for a while; notes it if that does not come."""

    namespace: str
    expected_scheduled: bool = False
    scheduled_param: str | None = None
    duration: str | None = None
    duration_param: str | None = None

    async def run(self, run: PerfRun) -> None:
        is_expected = bool(run.param(self.scheduled_param)) if self.scheduled_param else self.expected_scheduled
        end = run.scene.now() + run.seconds(self.duration, self.duration_param)
        since: float | None = None
        while True:
            now = run.scene.now()
            wrong = [
                pod for pod in run.scene.cluster.all_of(Pod, self.namespace) if bool(pod.spec.node_name) != is_expected
            ]
            if wrong:
                since = None
            elif is_expected or (since is not None and now - since >= STABLE):
                return
            elif since is None:
                since = now
            if now >= end:
                break
            await asyncio.sleep(GLANCE)
        if wrong:
            what = "no node" if is_expected else "a node"
            run.scene.notes.append(
                f"operation {run.number}: {len(wrong)} pods have {what}, so that scheduler_perf would fail here"
            )


async def _look_again(run: PerfRun, end: float, problem: str) -> None:
    """Lets time pass, if the operation has not taken all of its own."""
    if run.scene.now() >= end:
        raise WorkloadError(problem)
    await asyncio.sleep(GLANCE)
