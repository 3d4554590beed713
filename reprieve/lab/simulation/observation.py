"""Counts the events of a simulation as they happen."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.reporter import Reporter
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodSpec
from extender.values.objects.resource_amounts import allocatable, requested_amounts
from extender.values.objects.resource_names import CPU, MEMORY, PODS
from reprieve.lab import limits
from reprieve.lab.simulation.report import Sample, Usage

FRAGMENTATION_SAMPLES: Final = 12
"""The number of samples with the fragmentation, for which the Filters run on each shape of pods."""

Amounts = dict[str, int]
Measure = Callable[[], dict[str, float]]
"""Returns, by resource, the free part that an average pod cannot use now."""
Advance = Callable[[int], None]
"""Takes the number of attempts so far."""


@final
@dataclass(slots=True)
class Fate:
    """The course of a pod."""

    pod: str
    """The pod as namespace/name."""
    arrived: float
    is_gated: bool
    bound: float | None = None
    node: str = ""
    is_gone: bool = False
    message: str = ""
    """The scheduler's last refusal."""


@final
@dataclass(frozen=True, slots=True)
class SimulatedDecision:
    """One attempt to schedule a pod."""

    time: float
    pod: str
    """The pod as namespace/name."""
    node: str
    status: str
    """Why there is no node; empty if there is one."""
    message: str
    evaluated: int
    feasible: int
    nominated: str
    """The node that preemption is to make free."""
    victims: int


@final
class Observation(Reporter):
    """Observes decisions and changes. State: the fates of the pods, sums of amounts, and samples."""

    def __init__(self, now: Callable[[], float], advance: Advance) -> None:
        """`now` is the virtual clock; `advance` reports progress, every 64 attempts."""
        self.fates: dict[str, Fate] = {}
        """By UID, in order of arrival."""
        self.shapes: dict[int, tuple[PodSpec, Pod]] = {}
        """By identity of the spec: the first pod of each shape. Pods of one template share their spec."""
        self.arrivals: Counter[int] = Counter()
        """The number of arrived pods by shape."""
        self.attempts = 0
        self.preemptions = 0
        self.evicted = 0
        self.placed = 0
        self.nodes = 0
        self.expected_pods = 0
        """The number of pods of the whole workload; 0 if unknown."""
        self.decisions: list[SimulatedDecision] | None = None
        """Every attempt; None if they are not kept."""
        self.is_aside = False
        """Whether arriving pods prepare the cluster, and do not count."""
        self.fragmentation: Measure = dict
        self.samples: list[Sample] = []
        self._now = now
        self._advance = advance
        self._began: tuple[float, float, float] | None = None
        self.overhead = 0.0
        """Seconds of real time that samples have taken."""
        self._cpu_overhead = 0.0
        self._capacity: Counter[str] = Counter()
        self._requested: Counter[str] = Counter()
        self._integral: Counter[str] = Counter()
        self._peak: dict[str, float] = {}
        self._last_change = 0.0
        self._running = 0
        self._gone_unplaced = 0
        self._every = 1
        self._until_sample = 1
        self._next_fragmentation = 0
        self._is_due = False
        self._amounts: dict[int, tuple[PodSpec, Amounts]] = {}
        self._placed_before: set[str] = set()
        self._preemption: fwk.PreemptionOutcome | None = None

    # Changes.

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        match old if new is None else new:
            case Node():
                self._node_changed(old, new)
            case Pod():
                self._pod_changed(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)

    def _node_changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        self._pass_time()
        for node, sign in ((old, -1), (new, 1)):
            if isinstance(node, Node):
                amounts, _ = allocatable(node)
                self.nodes += sign
                offered = {CPU: amounts.milli_cpu, MEMORY: amounts.memory, **amounts.scalar}
                for resource, amount in offered.items():
                    self._capacity[resource] += sign * amount

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None:
            self._arrive(new)
        had_node, has_node = bool(old and old.spec.node_name), bool(new and new.spec.node_name)
        pod = new or old
        if pod is None:
            return
        fate = self.fates.get(pod.uid)
        if fate is None:
            if new is None and pod.uid in self._placed_before:
                self._placed_before.remove(pod.uid)
                self._move(pod, -1)
            return
        if has_node and not had_node:
            self.placed += fate.bound is None
            fate.bound, fate.node = self._now(), pod.spec.node_name
            self._move(pod, 1)
        elif new is None:
            fate.is_gone = True
            self._gone_unplaced += fate.bound is None
            if had_node:
                self._move(pod, -1)
        # A change comes between two decisions, so that a snapshot may be taken.
        if self._is_due:
            self.sample()

    def _arrive(self, pod: Pod) -> None:
        if self.is_aside:
            return
        if pod.spec.node_name:
            # It takes room, and was not placed here.
            self._placed_before.add(pod.uid)
            self._move(pod, 1)
            return
        if self._began is None:
            self._began = perf_counter(), process_time(), self._now()
            self._last_change = self._now()
        self.fates[pod.uid] = Fate(pod.key, self._now(), bool(pod.spec.scheduling_gates))
        shape = id(pod.spec)
        self.shapes.setdefault(shape, (pod.spec, pod))
        self.arrivals[shape] += 1

    def _move(self, pod: Pod, sign: int) -> None:
        self._pass_time()
        self._running += sign
        for resource, amount in self._amounts_of(pod).items():
            self._requested[resource] += sign * amount
            if sign > 0 and self._capacity[resource]:
                self._peak[resource] = max(
                    self._peak.get(resource, 0.0), self._requested[resource] / self._capacity[resource]
                )

    def _amounts_of(self, pod: Pod) -> Amounts:
        # A bound pod has a spec of its own; its containers are those of the template.
        name = id(pod.spec.containers)
        spec_and_amounts = self._amounts.get(name)
        if spec_and_amounts is None:
            amounts = {resource: amount for resource, amount in requested_amounts(pod).items() if resource != PODS}
            spec_and_amounts = self._amounts[name] = pod.spec, amounts
        return spec_and_amounts[1]

    def _pass_time(self) -> None:
        passed = self._now() - self._last_change
        if passed > 0:
            for resource, amount in self._requested.items():
                if self._capacity[resource]:
                    self._integral[resource] += passed * amount / self._capacity[resource]  # type: ignore[assignment]
            self._last_change = self._now()

    # Decisions.

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self._keep(info, node, fwk.SUCCESS, evaluated, feasible)
        self._attempted()

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        fate = self.fates.get(info.pod.uid)
        if fate is not None:
            fate.message = status.message
        self._keep(info, "", status, self.nodes, 0)
        self._attempted()

    def preemption_tried(self, pod: Pod, outcome: fwk.PreemptionOutcome) -> None:
        if outcome.chosen is not None and outcome.chosen.victims:
            self.preemptions += 1
            self.evicted += len(outcome.chosen.victims)
        self._preemption = outcome

    def _keep(self, info: QueuedPodInfo, node: str, status: fwk.Status, evaluated: int, feasible: int) -> None:
        outcome, self._preemption = self._preemption, None
        if self.decisions is None:
            return
        nominated = (outcome.nominated_node or "") if outcome is not None else ""
        victims = len(outcome.chosen.victims) if outcome is not None and outcome.chosen is not None else 0
        time, code = self.time(), "" if node else str(status.code)
        self.decisions.append(
            SimulatedDecision(time, info.pod.key, node, code, status.message, evaluated, feasible, nominated, victims)
        )

    def _attempted(self) -> None:
        self.attempts += 1
        self._until_sample -= 1
        if self._until_sample <= 0:
            self._until_sample = self._every
            self._is_due = True
        if self.attempts % 64 == 0:
            self._advance(self.attempts)

    # Measures.

    def sample(self, *, is_last: bool = False) -> None:
        """Samples the cluster. Not within a decision, whose snapshot it would replace."""
        began, cpu_began = perf_counter(), process_time()
        self._is_due = False
        fragmentation: dict[str, float] = {}
        done = self.placed + self._gone_unplaced
        if is_last or (self.expected_pods and done >= self._next_fragmentation):
            self._next_fragmentation = done + self.expected_pods // FRAGMENTATION_SAMPLES + 1
            fragmentation = self.fragmentation()
        self.samples.append(
            Sample(
                time=round(self.time(), 6),
                attempts=self.attempts,
                arrived=len(self.fates),
                placed=self.placed,
                waiting=len(self.fates) - self.placed - self._gone_unplaced,
                running=self._running,
                allocated=self.allocated(),
                fragmentation=fragmentation,
            )
        )
        if len(self.samples) >= limits.REPORTED_SAMPLES and not is_last:
            self.samples = [
                sample for place, sample in enumerate(self.samples) if place % 2 == 1 or sample.fragmentation
            ]
            self._every *= 2
        self.overhead += perf_counter() - began
        self._cpu_overhead += process_time() - cpu_began

    def time(self) -> float:
        """Returns the virtual seconds since the first arrival."""
        return 0.0 if self._began is None else self._now() - self._began[2]

    def allocated(self) -> dict[str, float]:
        """Returns the requested part of each resource."""
        return {
            resource: self._requested[resource] / amount
            for resource, amount in sorted(self._capacity.items())
            if amount > 0
        }

    def utilisation(self) -> dict[str, Usage]:
        """Returns the mean and the highest requested part of each resource."""
        self._pass_time()
        passed = self.time()
        return {
            resource: Usage(
                mean=self._integral[resource] / passed if passed > 0 else share,
                peak=max(self._peak.get(resource, 0.0), share),
            )
            for resource, share in self.allocated().items()
        }

    def elapsed(self) -> tuple[float, float, float]:
        """Returns the real, CPU and virtual seconds since the first arrival, without observing."""
        if self._began is None:
            return 0.0, 0.0, 0.0
        wall, cpu, virtual = self._began
        seconds, cpu_seconds = perf_counter() - wall - self.overhead, process_time() - cpu - self._cpu_overhead
        return max(seconds, 1e-9), max(cpu_seconds, 0.0), self._now() - virtual
