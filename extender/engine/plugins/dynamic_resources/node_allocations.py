"""NodeAllocations: the allocator's results on each node for the claims of one pod, and the search in a thread.

Upstream searches all nodes in parallel threads, and stops after filterTimeout:
framework/plugins/dynamicresources/dynamicresources.go, Filter.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, final

import msgspec

from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState, PoolId, PoolState
from extender.engine.plugins.dynamic_resources.allocation import Allocator, NodeAllocation
from extender.engine.plugins.dynamic_resources.pod_claims import each_once
from extender.engine.plugins.dynamic_resources.pools import (
    AllocationError,
    NodeAllocationError,
    NodePools,
    Pool,
    Slices,
)
from extender.engine.plugins.dynamic_resources.selection import Allowance, OutOfStepsError, TimedOutError
from extender.engine.plugins.dynamic_resources.suitable_devices import SuitableDevices
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import (
    DeviceClaim,
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from extender.values.objects.node import Node

R = TypeVar("R", ExactDeviceRequest, DeviceSubRequest)

LOOP_STEPS: Final = 4_000
"""The steps of a cycle in the event loop. They take about 20 ms."""
RESUMED_STEPS: Final = 500
"""The steps of a cycle after a search in the thread, whose results may no longer hold; the next search is shorter."""
FIRST_SLICE: Final = 0.25
"""Seconds of the thread for one pod at a time, doubled until they are enough for a node."""


_CONTENTS: Final = 4
"""Results are kept for this many contents of claims."""
_ENCODER: Final = msgspec.msgpack.Encoder()


_NOTHING: Final = (None, None)


def allocation_on(node: Node, allocator: Allocator, allowance: Allowance) -> NodeAllocation:
    """Returns what the allocator finds on the node. Raises OutOfStepsError, and TimeoutError if the time is up."""
    try:
        return allocator.allocate(node, allowance)
    except NodeAllocationError as exc:
        return NodeAllocation(refusal=str(exc), names_claim=exc.names_claim)
    except AllocationError as exc:
        return NodeAllocation(error=AllocationError(str(exc)))
    except TimedOutError as exc:
        raise TimeoutError(f"node {node.name}: timed out trying to allocate devices") from exc


@final
@dataclass(slots=True, eq=False)
class KnownAllocations:
    """Results on nodes for claims of one content, such as those of one template, until the node or its pools change.

    Between two pods usually the devices of one node change. A result that only depends on pools shared by many nodes
    holds for all of them. State: the results, the keys of those that depend on each pool, and its versions.
    """

    _findings: dict[str | int, tuple[Node | tuple[Pool, ...], NodeAllocation]] = field(default_factory=dict)
    """By the name of the node, or by the id of the first pools of nodes."""
    _results_of: dict[PoolId, set[str | int]] = field(default_factory=dict)
    _versions: dict[PoolId, int] = field(default_factory=dict)
    suitable: SuitableDevices = field(default_factory=dict)

    def follow(self, allocated: AllocatedState) -> None:
        """Drops the results that depend on pools whose devices in use have changed."""
        for pool, _ in allocated.versions.items() - self._versions.items():
            for key in self._results_of.pop(pool, ()):
                self._findings.pop(key, None)
        self._versions = allocated.versions

    def on(self, node: Node, pools: NodePools) -> NodeAllocation | None:
        """Returns the result for the node, or for one with the same first pools, if it still holds."""
        if pools.head:
            for shared in (pools.head, pools):
                origin, allocation = self._findings.get(id(shared), _NOTHING)
                if origin is shared:
                    return allocation
        origin, allocation = self._findings.get(node.metadata.name, _NOTHING)
        return allocation if origin is node else None

    def remember(self, node: Node, pools: NodePools, allocation: NodeAllocation) -> None:
        """Keeps the result for the node, unless it is an error or names the claim."""
        if allocation.error is not None or allocation.names_claim:
            return
        depends_on = pools[: allocation.num_pools]
        key: str | int = node.name
        origin: Node | tuple[Pool, ...] = node
        if pools.head and len(depends_on) <= len(pools.head):
            # A refusal also depends on there being no other pools.
            origin = pools if allocation.refusal else pools.head
            key = id(origin)
        for pool in depends_on:
            self._results_of.setdefault(pool.id, set()).add(key)
        self._findings[key] = (origin, allocation)


@final
@dataclass(slots=True, eq=False)
class KnownContents:
    """State: `KnownAllocations` for the last few contents of claims, for one set of slices."""

    _slices: Slices | None = None
    _by_content: OrderedDict[bytes, KnownAllocations] = field(default_factory=OrderedDict)

    def of(self, allocator: Allocator) -> KnownAllocations:
        """Returns the results for the allocator's claims that hold with the devices now in use."""
        if allocator.slices is not self._slices:
            self._slices = allocator.slices
            self._by_content.clear()
        content = _content_of(allocator.claims, allocator.classes)
        allocations = self._by_content.setdefault(content, KnownAllocations())
        self._by_content.move_to_end(content)
        if len(self._by_content) > _CONTENTS:
            self._by_content.popitem(last=False)
        allocations.follow(allocator.allocated)
        allocator.suitable = allocations.suitable
        return allocations


def _content_of(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> bytes:
    """Returns a key of all that allocations depend on besides slices and devices in use.

    Classes count by what they say, and by which of them are the same: a resource of its own for each pod may mean a
    class of its own for each, and all these classes ask for the same.
    """
    numbers: dict[str, int] = {}

    def numbered(one: R) -> R:
        return replaced(one, device_class_name=str(numbers.setdefault(one.device_class_name, len(numbers))))

    contents: dict[int, DeviceClaim] = {}
    for claim in each_once(claims):
        requests = [
            replaced(
                request,
                exactly=None if request.exactly is None else numbered(request.exactly),
                first_available=[numbered(one) for one in request.first_available],
            )
            for request in claim.spec.devices.requests
        ]
        contents[id(claim)] = replaced(claim.spec.devices, requests=requests)
    specs = [classes[name].spec if name in classes else None for name in numbers]
    selected = [None if spec is None else (spec.selectors, spec.config) for spec in specs]
    return _ENCODER.encode(([contents[id(claim)] for claim in claims], selected))


@final
class _Finding(msgspec.Struct, frozen=True):
    """A result, and its inputs besides the claims."""

    node: Node
    pools: Sequence[Pool]
    in_use: tuple[PoolState, ...]
    allocation: NodeAllocation


@final
@dataclass(slots=True, eq=False, weakref_slot=True)
class LongSearch:
    """The search for the claims of one pod in the thread; it lasts for several cycles of the pod's attempt.

    The cluster changes between these cycles. A result holds as long as the node, its pools and what is in use of them
    are the same.
    """

    inputs: tuple[ResourceClaim | DeviceClass, ...]
    timeout: float
    """Seconds; infinite for no limit."""
    _findings: dict[str, _Finding] = field(default_factory=dict)
    _timed_out: str = ""
    _spent: float = 0.0
    _slice: float = FIRST_SLICE

    def allocation_on(
        self, node: Node, allocator: Allocator, in_use: Mapping[PoolId, PoolState]
    ) -> NodeAllocation | None:
        """Returns the result for the node, if it still holds.

        Raises AllocationError for an invalid node selector of a slice, TimeoutError if the search took too long.
        """
        pools = allocator.slices.pools_for(node)
        finding = self._findings.get(node.name)
        if (
            finding is not None
            and finding.node is node
            and finding.pools is pools
            and finding.in_use == _in_use(pools, in_use)
        ):
            return finding.allocation
        if self._timed_out:
            raise TimeoutError(self._timed_out)
        return None

    def search(self, nodes: Sequence[tuple[Node, Allocator]], is_wanted: Callable[[], bool]) -> None:
        """Searches nodes in a thread for the time of a slice. All allocators have the same devices."""
        began = time.monotonic()
        allowance = Allowance(seconds=self.timeout - self._spent, slice_seconds=self._slice, is_wanted=is_wanted)
        in_use = nodes[0][1].allocated.by_pool()
        known_allocations: dict[Allocator, KnownAllocations] = {}
        num_done = 0
        try:
            for node, allocator in nodes:
                pools = allocator.slices.pools_for(node)
                of_claims = known_allocations.setdefault(allocator, KnownAllocations())
                allocation = of_claims.on(node, pools)
                if allocation is None:
                    allocation = allocation_on(node, allocator, allowance)
                    of_claims.remember(node, pools, allocation)
                self._findings[node.name] = _Finding(node, pools, _in_use(pools, in_use), allocation)
                num_done += 1
        except OutOfStepsError:
            self._slice = FIRST_SLICE if num_done else 2 * self._slice
        except TimeoutError as exc:
            self._timed_out = str(exc)
        except AllocationError:
            # The slices of this node are invalid. The cycle finds the same error when it comes to this node.
            pass
        self._spent += time.monotonic() - began


def _in_use(pools: Sequence[Pool], in_use: Mapping[PoolId, PoolState]) -> tuple[PoolState, ...]:
    return tuple(in_use.get(pool.id, frozenset()) for pool in pools)
