"""Real processes under real faults; `make jepsen` makes more and longer runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.invariants.processes import Nursery
from tests.jepsen.checker import violations
from tests.jepsen.history import Request
from tests.jepsen.machines import the_command
from tests.jepsen.run import run
from tests.jepsen.schedule import schedule

SECONDS = 2.0


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with the_command(tmp_path_factory.mktemp("command")) as nursery:
        yield nursery


@pytest.mark.parametrize("seed", [3, 9])
def test_nothing_is_wrong_with_a_short_run(seed: int, command: Nursery, tmp_path: Path) -> None:
    history = run(seed, command, tmp_path, faulty_seconds=SECONDS)

    assert violations(history) == []
    assert any(isinstance(each, Request) and each.is_binding and each.is_done for each in history)


def test_replicas_that_ask_for_no_lease_are_found_out(command: Nursery, tmp_path: Path) -> None:
    history = run(3, command, tmp_path, faulty_seconds=0, flags=["--no-leader-elect"])

    assert any("rival_writers" in sentence for sentence in violations(history))


def test_a_seed_draws_the_same_faults_each_time() -> None:
    assert schedule(7) == schedule(7) != schedule(8)
