"""What each code means at each extension point of a pod that has a node."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.reserve_to_bind import (
    run_bind_plugins,
    run_permit_plugins,
    run_post_bind_plugins,
    run_pre_bind_plugins,
    run_pre_bind_pre_flights,
    run_reserve_plugins,
    run_unreserve_plugins,
)
from extender.testing import make_framework, make_pod, make_snapshot
from extender.values.concurrency.virtual_time import run
from extender.values.objects.pod import Pod
from tests.kit.places import status_without_place

POD = make_pod().node("n").obj()
U, UAU, PENDING = fwk.unschedulable("no"), fwk.unresolvable("never"), fwk.Status(fwk.Code.PENDING, ("later",))
ERROR, WAIT, SKIP, OK = fwk.error("broken"), fwk.Status(fwk.Code.WAIT), fwk.SKIP, fwk.SUCCESS


class Says(fwk.ReservePlugin, fwk.PermitPlugin, fwk.PreBindPlugin, fwk.BindPlugin, fwk.PostBindPlugin):
    """The same at each point; and notes down that it was asked."""

    def __init__(
        self, says: fwk.Status | Exception, calls: list[str] | None = None, *, seconds: float = 0.0, flight: Any = None
    ) -> None:
        super().__init__()
        self.says = says
        self.calls = [] if calls is None else calls
        self.seconds = seconds
        self.flight = flight or fwk.PreFlight(fwk.SUCCESS)
        self.takes = 0.0

    def _answer(self) -> fwk.Status:
        self.calls.append(self.name)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        return self._answer()

    def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        self._answer()

    def permit(self, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, float]:
        return self._answer(), self.seconds

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.PreFlight:
        if isinstance(self.flight, Exception):
            raise self.flight
        assert isinstance(self.flight, fwk.PreFlight)
        return self.flight

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.calls.append(f"{self.name} begins")
        await asyncio.sleep(self.takes)
        return self._answer()

    async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        return self._answer()

    async def post_bind(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        self._answer()


def cycle(*plugins: fwk.Plugin) -> Cycle:
    return Cycle(make_framework(*plugins), make_snapshot(), POD)


class X(Says):
    pass


class Y(Says):
    pass


class Z(Says):
    pass


BROKEN = RuntimeError("broken")


def outcomes(point: str, errors: Sequence[fwk.Status], also: Sequence[fwk.Status] = ()) -> pytest.MarkDecorator:
    """What the plugin X says at this point, and what comes of it: refusals stay what they are, and are signed.

    Arguments:
        errors: what makes no sense there.
        also: what stays what it is besides Success.
    """
    failed = [(status, "") for status in errors] + [(ERROR, "broken"), (BROKEN, "broken")]
    table: list[tuple[Any, fwk.Status]] = [
        *((status, status) for status in (OK, *also)),
        *((status, status.by("X")) for status in (U, UAU, PENDING)),
        *((status, fwk.error(f'running {point} plugin "X": {why}').by("X")) for status, why in failed),
    ]
    return pytest.mark.parametrize(("says", "comes_of_it"), table, ids=str)


@outcomes("Reserve", (SKIP, WAIT))
def test_reserve(says: Any, comes_of_it: fwk.Status) -> None:
    """The first that is no Success ends it."""
    calls: list[str] = []

    status = run_reserve_plugins(cycle(X(says, calls), Y(OK, calls)), POD, "n")

    assert status_without_place(status) == comes_of_it
    assert calls == (["X", "Y"] if says is OK else ["X"])


def test_unreserve_runs_in_reverse_order_even_if_a_plugin_raises() -> None:
    calls: list[str] = []

    run_unreserve_plugins(cycle(X(OK, calls), Y(BROKEN, calls), Z(OK, calls)), POD, "n")

    assert calls == ["Z", "Y", "X"]


@outcomes("Permit", (SKIP,))
def test_permit(says: Any, comes_of_it: fwk.Status) -> None:
    calls: list[str] = []

    status, timeouts = run_permit_plugins(cycle(X(says, calls), Y(OK, calls)), POD, "n")

    assert (status_without_place(status), timeouts) == (comes_of_it, {})
    assert calls == (["X", "Y"] if says is OK else ["X"])


def test_waiting_plugins_hold_the_pod_fifteen_minutes_at_most() -> None:
    holding = cycle(X(WAIT, seconds=10), Y(OK), Z(WAIT, seconds=10_000))

    status, timeouts = run_permit_plugins(holding, POD, "n")

    assert status == fwk.Status(fwk.Code.WAIT, ("one or more plugins asked to wait and no plugin rejected pod",))
    assert timeouts == {"X": 10.0, "Z": 900.0}


@pytest.mark.parametrize("says", [U, ERROR], ids=str)
def test_a_refusal_ends_all_waiting(says: fwk.Status) -> None:
    status, timeouts = run_permit_plugins(cycle(X(WAIT, seconds=10), Y(says)), POD, "n")

    assert status.code is says.code
    assert timeouts == {}


UNSUPPORTED = "which is unsupported. It is supposed to return Success, Skip, or Error status"


@pytest.mark.parametrize(
    ("flight", "comes_of_it"),
    [
        (fwk.PreFlight(OK), OK),
        (fwk.PreFlight(SKIP), SKIP),
        (fwk.PreFlight(ERROR), fwk.error('running PreBindPreFlight "X": broken').by("X")),
        (BROKEN, fwk.error('running PreBindPreFlight "X": broken').by("X")),
        (fwk.PreFlight(U), fwk.error(f'PreBindPreFlight X returned "Unschedulable", {UNSUPPORTED}').by("X")),
        (fwk.PreFlight(WAIT), fwk.error(f'PreBindPreFlight X returned "Wait", {UNSUPPORTED}').by("X")),
        (fwk.PreFlight(PENDING), fwk.error(f'PreBindPreFlight X returned "Pending", {UNSUPPORTED}').by("X")),
    ],
    ids=str,
)
def test_pre_flight(flight: Any, comes_of_it: fwk.Status) -> None:
    plan = run_pre_bind_pre_flights(cycle(X(OK, flight=flight)), POD, "n")

    assert status_without_place(plan.status) == comes_of_it


def test_neighbours_that_may_run_beside_each_other_do() -> None:
    """One that may not is a barrier; one that has nothing to do is none."""
    beside, alone, nothing = fwk.PreFlight(OK, allow_parallel=True), fwk.PreFlight(OK), fwk.PreFlight(SKIP)

    def groups(*flights: fwk.PreFlight) -> list[list[str]]:
        plugins = [kind(OK, flight=flight) for kind, flight in zip((X, Y, Z), flights, strict=True)]
        plan = run_pre_bind_pre_flights(cycle(*plugins), POD, "n")
        return [[plugin.name for plugin in group] for group in plan.groups]

    assert groups(beside, beside, beside) == [["X", "Y", "Z"]]
    assert groups(beside, alone, beside) == [["X"], ["Y"], ["Z"]]
    assert groups(beside, nothing, beside) == [["X", "Z"]]
    assert groups(alone, beside, beside) == [["X"], ["Y", "Z"]]
    assert groups(nothing, nothing, nothing) == []


@outcomes("PreBind", (SKIP, WAIT))
def test_pre_bind(says: Any, comes_of_it: fwk.Status) -> None:
    calls: list[str] = []
    framework = make_framework(X(says, calls), Y(OK, calls))
    plan = run_pre_bind_pre_flights(Cycle(framework, make_snapshot(), POD), POD, "n")

    assert status_without_place(run(run_pre_bind_plugins(plan, cycle(), POD, "n"))) == comes_of_it
    assert ("Y" in calls) is (says is OK)


def test_parallel_pre_bind_plugins_report_the_first_failure_in_order() -> None:
    calls: list[str] = []
    beside = fwk.PreFlight(OK, allow_parallel=True)
    slow, quick = X(ERROR, calls, flight=beside), Y(U, calls, flight=beside)
    slow.takes = 5.0
    plan = run_pre_bind_pre_flights(cycle(slow, quick), POD, "n")

    status = run(run_pre_bind_plugins(plan, cycle(), POD, "n"))

    assert calls == ["X begins", "Y begins", "Y", "X"]
    assert status == fwk.error('running PreBind plugin "X": broken').by("X")


@outcomes("Bind", (WAIT,), (SKIP,))
def test_bind(says: Any, comes_of_it: fwk.Status) -> None:
    assert status_without_place(run(run_bind_plugins(cycle(X(says)), POD, "n"))) == comes_of_it


def test_next_bind_plugin_runs_only_after_a_skip() -> None:
    calls: list[str] = []

    assert run(run_bind_plugins(cycle(X(SKIP, calls), Y(OK, calls), Z(OK, calls)), POD, "n")) == OK
    assert calls == ["X", "Y"]


def test_every_post_bind_plugin_runs_even_if_another_raises() -> None:
    calls: list[str] = []

    run(run_post_bind_plugins(cycle(X(BROKEN, calls), Y(OK, calls)), POD, "n"))

    assert calls == ["X", "Y"]


def test_a_plugin_that_something_else_cancels_has_failed() -> None:
    """Were it taken for our own end, nobody would ever hear of the pod again."""

    class Cancelled(fwk.BindPlugin):
        async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
            raise asyncio.CancelledError

    status = run(run_bind_plugins(cycle(Cancelled()), POD, "n"))

    assert status == fwk.error('running Bind plugin "Cancelled": context canceled').by("Cancelled")
