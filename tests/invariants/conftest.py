"""The process that schedulers are forked from."""

from collections.abc import Iterator

import pytest

from tests.invariants.processes import Nursery, a_nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """With a plugin that says where a pod has come to."""
    with a_nursery({"Moments": "tests.invariants.moments:Moments"}, tmp_path_factory.mktemp("distribution")) as found:
        yield found
