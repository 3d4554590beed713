"""Programs that a test of this folder may need."""

from pathlib import Path

import pytest

from tools.kubernetes_programs import NoProgramError, program


@pytest.fixture(scope="session")
def helm() -> Path:
    try:
        return program("helm")
    except NoProgramError as exc:
        pytest.skip(str(exc))
