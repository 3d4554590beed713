"""Waiting before the next try."""

from random import Random

from extender.client.informers.reflector_state import Backoff


class NoChance(Random):
    def random(self) -> float:
        return 0.0


def test_each_wait_is_twice_as_long_as_the_last_up_to_half_a_minute() -> None:
    backoff = Backoff(NoChance())
    now, waits = 0.0, []
    for _ in range(9):
        waits.append(backoff.next(now))
        now += waits[-1]

    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]


def test_chance_adds_up_to_as_much_again() -> None:
    """So that a thousand clients that lost the same server do not come back at one moment."""
    firsts = [Backoff(Random(seed)).next(0.0) for seed in range(100)]

    assert 0.8 <= min(firsts) < 0.9
    assert 1.5 < max(firsts) < 1.6


def test_after_two_quiet_minutes_it_begins_anew() -> None:
    backoff = Backoff(NoChance())
    waits = [backoff.next(now) for now in (0.0, 1.0, 3.0, 123.0, 243.1)]

    assert waits == [0.8, 1.6, 3.2, 6.4, 0.8]
