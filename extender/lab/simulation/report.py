"""The report of a simulation: what happened, as values that JSON, tables and pages are made of. Shares are parts of 1,
times seconds.
"""

from typing import final

import msgspec


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The base of a report and its parts. Unlike answers, names stay as they are on the wire, since expectations use
    them, too.
    """


@final
class Waiting(Reported, frozen=True, kw_only=True):
    """How long pods waited for a node, in seconds of virtual time. A decision takes none."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


@final
class Usage(Reported, frozen=True, kw_only=True):
    """The part of a resource that was allocated, while pods came and went."""

    mean: float = 0.0
    """Over virtual time; equal to the end where no time passed."""
    peak: float = 0.0


@final
class RefusedPods(Reported, frozen=True, kw_only=True):
    """Pods that have no node in the end, by what the scheduler last said."""

    message: str
    pods: int


@final
class Sample(Reported, frozen=True, kw_only=True):
    """The cluster at one moment."""

    time: float
    attempts: int
    arrived: int
    placed: int
    waiting: int
    running: int
    allocated: dict[str, float]
    fragmentation: dict[str, float]


@final
class Phase(Reported, frozen=True, kw_only=True):
    """A part of the workload that is measured by itself."""

    name: str
    pods: int
    pods_per_second: float
    threshold: float | None = None
    """The pods a second that the workload's authors demand; None if they demand nothing."""


@final
class Assertion(Reported, frozen=True, kw_only=True):
    """One of the workload's expectations, and what was found."""

    text: str
    found: float
    holds: bool


@final
class SimulationReport(Reported, frozen=True, kw_only=True):
    """What happened when a workload was played."""

    workload: str
    seed: int
    nodes: int
    pods: int
    """The pods that arrived: those placed, refused, gated and withdrawn."""
    placed: int
    """Pods that got a node, also if they have left it since."""
    refused: int
    """Pods that have no node in the end."""
    gated: int
    """Pods whose scheduling gates were never opened."""
    withdrawn: int
    """Pods that were deleted before they got a node."""
    preemptions: int
    evicted: int
    attempts: int
    decisions_per_second: float
    """Attempts a second of real time."""
    cpu_ms_per_pod: float
    """CPU time of this process for each pod, from the first arrival to the end, without the time for observing."""
    wall_seconds: float
    simulated_seconds: float
    allocated: dict[str, float]
    """By resource: the part of what the nodes have that is requested in the end."""
    utilisation: dict[str, Usage]
    fragmentation: dict[str, float]
    """By resource: the part of what is free that an average pod of the workload cannot use; see `fragmentation`."""
    waiting: Waiting
    refusals: tuple[RefusedPods, ...]
    samples: tuple[Sample, ...]
    phases: tuple[Phase, ...]
    assertions: tuple[Assertion, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every expectation holds."""
        return all(assertion.holds for assertion in self.assertions)
