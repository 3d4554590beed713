"""Two servers for the same tests: the embedded API, always, and a real kube-apiserver where there is one."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.manifests import account_of
from tests.envtest.asking import ROLES
from tests.envtest.servers import Embedded, Real, Room, Server, make_room
from tests.kit.control_plane import ControlPlane
from tools.render_manifests import VARIANTS

ASSETS = "KUBEBUILDER_ASSETS"
WITHOUT = f"{ASSETS} is not set: run `setup-envtest use 1.36.x -p env` and source what it prints"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One for all tests: it takes half a minute to come up. Each test has a namespace of its own in it."""
    assets = os.environ.get(ASSETS)
    if not assets:
        pytest.skip(WITHOUT)
    with ControlPlane.start(
        Path(assets),
        tmp_path_factory.mktemp("control-plane"),
        users=dict.fromkeys(("nobody", *ROLES, *map(account_of, VARIANTS)), ()),
    ) as plane:
        yield plane


# Where there is no real one, `test_real_server.py` says so: four times are enough.
@pytest.fixture(params=["embedded", "kube-apiserver"] if os.environ.get(ASSETS) else ["embedded"])
def server(request: pytest.FixtureRequest) -> Server:
    if request.param == "embedded":
        return Embedded()
    return Real(request.getfixturevalue("control_plane"))


@pytest.fixture(autouse=True)
def stage() -> Iterator[asyncio.Runner]:
    """Where the tests of this package run: in real time."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def room(server: Server, stage: asyncio.Runner) -> Iterator[Room]:
    client = server.client()
    yield stage.run(make_room(client))
    stage.run(client.aclose())
