"""The services that all tests share. They are started once; no call changes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.test_questions import cluster
from tests.kit.objects import state_file
from tests.kit.service import TWELVE_NODES, Service, serving


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small cluster about which people ask, as a file."""
    return state_file(tmp_path_factory.mktemp("dump") / "cluster.json", *cluster())


@pytest.fixture(scope="package")
def example() -> Iterator[Service]:
    """A service for the example cluster."""
    with serving(schedule=False, serve_bind=True) as service:
        yield service


@pytest.fixture(scope="package")
def twelve_nodes() -> Iterator[Service]:
    """A service for the cluster in which the recorded calls of kube-scheduler were made."""
    with serving(state=TWELVE_NODES, schedule=False, serve_bind=True) as service:
        yield service


@pytest.fixture(scope="package")
def tight() -> Iterator[Service]:
    """A service with small limits."""
    with serving(
        schedule=False, max_body=10_000, full_nodes=False, max_bodies=15_000, max_head=4096, max_headers=20,
        keep_alive_seconds=1,
    ) as service:  # fmt: skip
        yield service


@pytest.fixture(scope="package")
def hasty() -> Iterator[Service]:
    """A service that gives up requests which do not arrive soon."""
    with serving(schedule=False, head_seconds=0.3, body_seconds=0.3) as service:
        yield service
