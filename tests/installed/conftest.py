"""Fixtures of all that is tried from an installed wheel."""

import pytest

from tests.installed.environment import Environment, installed_into


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Environment:
    base = tmp_path_factory.getbasetemp()
    return installed_into((base if worker_id == "master" else base.parent) / "installed")
