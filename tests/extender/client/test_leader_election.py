"""Who leads: one at a time, soon another when the first is gone, and nobody writes who cannot be sure of it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from extender.values.config.configuration import LeaderElection
from extender.values.golang.times import Duration
from tests.extender.client.elected_replica import LEASE, RENEW, RETRY, Replica, Server, never_two, now, story
from tests.kit.faults import Fault
from tests.kit.faults.answers import answer, black_hole, commit_then, commit_then_drop, edited_json, status


@pytest.fixture
def server() -> Server:
    return Server()


async def test_the_first_one_writes_down_that_it_leads(server: Server) -> None:
    first = Replica("first_1", server).start()
    await asyncio.sleep(5)

    assert first.leads
    assert first.began_to_lead == 0
    spec = server.spec()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("first_1", 15, 0)
    assert (spec["acquireTime"], spec["renewTime"]) == ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:04.000000Z")


async def test_the_second_one_waits_for_as_long_as_the_first_renews(server: Server) -> None:
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await never_two(first, second, seconds=300)

    assert first.leads
    assert second.elector.leader == "first"
    assert second.writes() == 0


async def test_killed_leader_is_replaced_after_lease_duration_and_retry_period(server: Server) -> None:
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await asyncio.sleep(60.5)
    await first.kill()
    killed = now()
    await never_two(first, second, seconds=LEASE + RETRY)

    assert second.leads
    assert second.began_to_lead is not None
    assert LEASE - RETRY <= second.began_to_lead - killed <= LEASE + RETRY
    assert (server.spec()["holderIdentity"], server.spec()["leaseTransitions"]) == ("second", 1)


async def test_leader_that_releases_the_lease_is_replaced_at_once(server: Server) -> None:
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await asyncio.sleep(60.5)
    await first.stop()
    assert (server.spec()["holderIdentity"], server.spec()["leaseDurationSeconds"]) == ("", 1)
    assert not first.leads
    await never_two(first, second, seconds=RETRY)

    assert second.leads


async def test_lease_with_an_unanswered_renewal_is_released(server: Server) -> None:
    first = Replica("first", server, Fault(commit_then(black_hole()), verb="update", skip=3)).start()
    await asyncio.sleep(9)
    await first.stop()

    assert server.spec()["holderIdentity"] == ""


async def test_follower_has_no_lease_to_release(server: Server) -> None:
    Replica("first", server).start()
    second = Replica("second", server).start()
    await asyncio.sleep(5)

    assert not await second.elector.release()
    assert second.writes() == 0


async def test_leader_without_an_api_server_gives_up_before_another_leads(server: Server) -> None:
    """It has written nothing after the renew deadline, and says why it ends."""
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await asyncio.sleep(60.5)
    first.transport.go_down()
    await never_two(first, second, seconds=30)

    assert first.ended is not None
    assert first.ended[0] == pytest.approx(60 + RENEW, abs=0.01)
    assert first.ended[1].startswith(
        "failed to renew lease kube-system/kube-scheduler within 10 s: GET /apis/coordination.k8s.io/v1/"
    )
    assert first.ended[1].endswith("connection refused")
    assert second.leads


async def test_one_whose_requests_are_swallowed_gives_up_in_time_too(server: Server) -> None:
    first = Replica("first", server, Fault(black_hole(), skip=5, times=None)).start()
    await asyncio.sleep(60)

    assert first.ended is not None
    assert first.ended[0] == pytest.approx(
        6 + RENEW
    )  # create, get (there was none before) and three renewals went well


@pytest.mark.parametrize("seconds", [10.5, 30, 86400])
async def test_suspended_leader_writes_nothing_when_it_wakes(server: Server, seconds: float) -> None:
    """The event loop has not seen the time pass: no timer of its own is late."""
    first = Replica("first", server).start()
    await asyncio.sleep(60.5)
    first.slept = seconds
    assert not first.leads
    before = first.writes()
    await asyncio.sleep(30)

    assert first.writes() == before
    assert first.ended is not None
    assert first.ended[1].startswith("failed to renew lease kube-system/kube-scheduler within 10 s")
    assert not await first.elector.release()


async def test_briefly_suspended_leader_goes_on(server: Server) -> None:
    first = Replica("first", server).start()
    await asyncio.sleep(60.5)
    first.slept = RENEW - 3
    await asyncio.sleep(30)

    assert first.leads


async def test_an_answer_that_comes_late_does_not_prolong_the_lease(server: Server) -> None:
    """Others count from when the renewal was written, and so does the leader: from when it was sent."""

    async def slow(call: Any, forward: Any) -> Any:
        response = await forward()
        await asyncio.sleep(4)
        return response

    first = Replica("first", server, Fault(slow, verb="update", times=1)).start()
    await asyncio.sleep(7)  # the first renewal was sent at 2 and answered at 6
    first.transport.go_down()
    await asyncio.sleep(30)

    assert first.ended is not None
    assert first.ended[0] == pytest.approx(2 + RENEW, abs=0.01)


async def test_leader_that_finds_another_holder_stops_at_once_and_leaves_the_lease(server: Server) -> None:
    first = Replica("first", server).start()
    await asyncio.sleep(60.5)
    server.write(holderIdentity="forged")
    await asyncio.sleep(RETRY)

    ended = (62, "lease kube-system/kube-scheduler is held by forged")
    assert (first.ended, server.spec()["holderIdentity"]) == (ended, "forged")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(status(409), verb="update", skip=3), id="conflict"),
        pytest.param(Fault(commit_then_drop(), verb="update", skip=3), id="lost answer"),
        pytest.param(Fault(status(500), verb="update", skip=3, times=3), id="server error"),
        pytest.param(Fault(answer("[1]"), verb="update", skip=3), id="garbage"),
        pytest.param(Fault(black_hole(), verb="update", skip=3), id="no answer"),
        pytest.param(Fault(status(429, retry_after=2), verb="update", skip=3), id="too many requests"),
    ],
)
async def test_a_renewal_that_fails_is_tried_again(server: Server, fault: Fault) -> None:
    first, second = Replica("first", server, fault).start(), Replica("second", server).start()
    await never_two(first, second, seconds=60)

    assert fault.struck
    assert first.leads
    assert first.ended is None


async def test_a_lease_that_was_deleted_is_written_again(server: Server) -> None:
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await asyncio.sleep(60.1)
    server.delete()
    await never_two(first, second, seconds=30)

    assert first.leads
    assert server.spec()["holderIdentity"] == "first"


@pytest.mark.parametrize("seconds", [0, -1, 10**9, 2**31 - 1, None])
async def test_lease_with_an_invalid_duration_is_waited_for_as_long_as_an_own_one(
    server: Server, seconds: int | None
) -> None:
    def says(lease: dict[str, Any]) -> None:
        lease["spec"]["leaseDurationSeconds"] = seconds

    first = Replica("first", server).start()
    await asyncio.sleep(1)
    await first.kill()
    second = Replica("second", server, Fault(edited_json(says), verb="get", times=None)).start()
    await asyncio.sleep(60)

    assert second.began_to_lead == 1 + LEASE


async def test_a_lease_that_lasts_longer_than_ours_is_respected(server: Server) -> None:
    """While replicas are being given another configuration, both hold."""
    long = LeaderElection(lease_duration=Duration.of(60), renew_deadline=Duration.of(40), retry_period=Duration.of(2))
    first = Replica("first", server, election=long).start()
    await asyncio.sleep(1)
    await first.kill()
    second = Replica("second", server).start()
    await asyncio.sleep(100)

    assert second.began_to_lead == 61


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        '{"kind":"Lease"',
        '{"kind":"Lease","metadata":{"name":"kube-scheduler"},"spec":{"holderIdentity":7}}',
        '{"kind":"Pod"}',
        "\xff",
    ],
)
async def test_unreadable_lease_is_not_acquired(server: Server, body: str) -> None:
    fault = Fault(answer(body.encode("latin-1")), verb="get", times=5)
    first = Replica("first", server, fault).start()
    await asyncio.sleep(1)
    assert not first.leads
    assert first.writes() == 0
    await asyncio.sleep(30)

    assert first.leads


@pytest.mark.parametrize(
    "off", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1), timedelta(days=-20000)]
)
def test_the_clock_on_the_wall_decides_nothing(off: timedelta) -> None:
    """Neither a replica whose clock is wrong nor one whose clock is set while it leads."""

    async def tell(server: Server) -> list[float | None]:
        first, second = Replica("first", server).start(), Replica("second", server).start()
        second.wall_is_off_by = off
        await never_two(first, second, seconds=60)
        first.wall_is_off_by = -off if off > timedelta(0) else off
        await never_two(first, second, seconds=60.5)
        assert first.leads
        await first.kill()
        await never_two(first, second, seconds=60)
        return [first.began_to_lead, second.began_to_lead]

    async def on_time(server: Server) -> list[float | None]:
        first, second = Replica("first", server).start(), Replica("second", server).start()
        await never_two(first, second, seconds=120.5)
        await first.kill()
        await never_two(first, second, seconds=60)
        return [first.began_to_lead, second.began_to_lead]

    assert story(tell) == pytest.approx(story(on_time), abs=0.1)


@pytest.mark.parametrize("seed", range(8))
async def test_never_do_two_lead_whatever_fails(server: Server, seed: int) -> None:
    """
    Three replicas, each with a network that swallows, refuses, loses answers; now and then the one that leads sleeps.
    """

    def faults() -> list[Fault]:
        return [
            Fault(black_hole(), probability=0.05, times=None),
            Fault(commit_then_drop(), probability=0.1, times=None),
            Fault(status(500), probability=0.1, times=None),
        ]

    replicas = [Replica(f"{seed}-{number}", server, *faults()).start() for number in range(3)]
    led = 0
    for turn in range(20):
        await never_two(*replicas, seconds=17)
        led += any(replica.leads for replica in replicas)
        for sleeper in replicas:
            sleeper.slept += 12 * (turn % 3 == 0 and sleeper.leads)
        for number, replica in enumerate(replicas):
            if replica.ended:
                replicas[number] = Replica(f"{seed}-{number}-{turn}", server, *faults()).start()
    assert led > 10


async def test_a_leader_that_goes_on_long_after_its_lease_is_reported_ill(server: Server) -> None:
    first, second = Replica("first", server).start(), Replica("second", server).start()
    await asyncio.sleep(10.5)  # between two renewals
    first.slept = second.slept = LEASE + 19
    assert (first.elector.check(), second.elector.check()) == ("", "")
    first.slept = second.slept = LEASE + 25

    assert first.elector.check() == "failed election to renew leadership on lease kube-scheduler"
    assert second.elector.check() == ""
