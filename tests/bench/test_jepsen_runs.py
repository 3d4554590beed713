"""Real processes under real faults; `make jepsen` makes more and longer runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.jepsen.checker import violations
from bench.jepsen.history import Request
from bench.jepsen.machines import the_command
from bench.jepsen.run import run
from bench.jepsen.schedule import schedule
from tests.kit.forked import ForkServer
from tests.kit.stand_ins import stand_ins

SECONDS = 2.0


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with the_command(tmp_path_factory.mktemp("command")) as fork_server:
        yield fork_server


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 31])
def test_short_run_has_no_violations(seed: int, command: ForkServer, tmp_path: Path) -> None:
    history = run(seed, command, tmp_path, faulty_seconds=SECONDS)

    assert violations(history) == []
    assert any(isinstance(record, Request) and record.is_binding and record.is_done for record in history)


@pytest.mark.slow
def test_replicas_that_ask_for_no_lease_are_found_out(command: ForkServer, tmp_path: Path) -> None:
    history = run(3, command, tmp_path, faulty_seconds=0, flags=["--no-leader-elect"])

    assert any("rival_writers" in sentence for sentence in violations(history))


@pytest.mark.slow
def test_short_run_against_a_kube_apiserver_has_no_violations(command: ForkServer, tmp_path: Path) -> None:
    """Where KUBEBUILDER_ASSETS is set it is one; elsewhere a stand-in takes the same flags and serves an embedded
    cluster over TLS.
    """
    assets = Path(os.environ.get("KUBEBUILDER_ASSETS") or stand_ins(tmp_path))
    history = run(24, command, tmp_path, faulty_seconds=SECONDS, assets=assets)

    assert violations(history) == []
    assert any(isinstance(record, Request) and record.is_binding and record.is_done for record in history)


def test_a_seed_draws_the_same_faults_each_time() -> None:
    assert schedule(7) == schedule(7) != schedule(8)
