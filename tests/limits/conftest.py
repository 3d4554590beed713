"""The service of the pages."""

from collections.abc import Iterator

import pytest

from tests.kit.service import Service, serving


@pytest.fixture(scope="package")
def example() -> Iterator[Service]:
    """A service for the example cluster."""
    with serving(schedule=False) as service:
        yield service
