"""Where processes of schedulers come and go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.invariants.stage import Stage
from tests.kit.forked import ForkServer, a_fork_server


@pytest.fixture(scope="package")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """With a plugin that says where a pod has come to."""
    with a_fork_server(
        {"ProgressPlugin": "tests.invariants.progress_plugin:ProgressPlugin"}, tmp_path_factory.mktemp("distribution")
    ) as server:
        yield server


@pytest.fixture
def stage(fork_server: ForkServer, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    """With the feature gates that a module names as `GATES`."""
    return Stage(fork_server, tmp_path, getattr(request.module, "GATES", {}))
