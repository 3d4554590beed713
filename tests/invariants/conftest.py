"""The process that schedulers are forked from."""

from collections.abc import Iterator

import pytest

from tests.kit.forked import ForkServer, a_fork_server


@pytest.fixture(scope="package")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """With a plugin that says where a pod has come to."""
    with a_fork_server(
        {"ProgressPlugin": "tests.invariants.progress_plugin:ProgressPlugin"}, tmp_path_factory.mktemp("distribution")
    ) as found:
        yield found
