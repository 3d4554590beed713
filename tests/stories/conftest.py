"""The stages of each story: in memory; for some beside an extender that wants full nodes; over a socket, to a server of
ours; and, where there is one, to a kube-apiserver.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from extender.values.config.configuration import Extender, ExtenderManagedResource
from extender.values.targets.target import Target
from tests.kit.control_plane import ControlPlane
from tests.kit.objects import GROUP_GATES
from tests.kit.scene.stages import STAGE, InMemory, OverSockets, Stage
from tests.kit.service import running

ASSETS: Final = "KUBEBUILDER_ASSETS"
"""Names the folder of a kube-apiserver."""
ALL: Final = "STORIES_OVER_SOCKETS"
"""If it is set, all stories that can be are told over a socket too, and not only a few."""

IN_MEMORY, WHOLE, OURS, THEIRS = "in memory", "with whole objects", "over a socket", "kube-apiserver"

NEVER_CALLED: Final = Extender(
    url_prefix="http://127.0.0.1:9",
    filter_verb="filter",
    preempt_verb="preempt",
    managed_resources=(ExtenderManagedResource("example.com/nobody-asks-for-it"),),
)
"""For it, pods and nodes remember all that the API server says of them."""

GATES: Final = ",".join(f"{gate}=true" for gate in GROUP_GATES)
"""The gates of servers, so that stories about what is behind them can be told there."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "anywhere: a story that is told to a kube-apiserver too, where there is one")
    config.addinivalue_line("markers", "over_a_socket: a story that is told anywhere, and always over a socket too")
    config.addinivalue_line("markers", "with_whole_objects: a story that is told beside such an extender, too")
    config.addinivalue_line(
        "markers", "without_controllers: of those told anywhere, one for a server that has no controllers"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    is_told_anywhere = not marks.isdisjoint({"anywhere", "over_a_socket"})
    stages: list[Any] = [IN_MEMORY, WHOLE] if "with_whole_objects" in marks else [IN_MEMORY]
    if "over_a_socket" in marks or (is_told_anywhere and os.environ.get(ALL) and "without_controllers" not in marks):
        is_first = metafunc.module.__name__.endswith(".test_basics")  # the others are told there at night
        stages.append(OURS if is_first else pytest.param(OURS, marks=pytest.mark.slow))
    if is_told_anywhere and os.environ.get(ASSETS):
        stages.append(THEIRS)
    if len(stages) > 1:
        metafunc.parametrize("stage", stages, indirect=True)


@pytest.fixture(autouse=True)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Where the story is told."""
    which = getattr(request, "param", IN_MEMORY)
    chosen: Stage
    if which in (IN_MEMORY, WHOLE):
        chosen = InMemory([NEVER_CALLED] if which == WHOLE else ())
    else:
        chosen = OverSockets(request.getfixturevalue("our_server" if which == OURS else "their_server"))
    token = STAGE.set(chosen)
    yield chosen
    STAGE.reset(token)


@pytest.fixture(scope="package")
def our_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Our own cluster, without a scheduler and without kubelets, in a process of its own."""
    state = tmp_path_factory.mktemp("our-server") / "empty.json"
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    with running("--state", state, "--no-schedule", "--no-kubelet", f"--feature-gates={GATES}") as server:
        yield Target(server.kubernetes)


@pytest.fixture(scope="package")
def their_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A kube-apiserver over etcd, without controllers and kubelets."""
    # As in upstream's integration tests: nodes are ready, and objects go when they are told to.
    admission = ("TaintNodesByCondition", "StorageObjectInUseProtection")
    flags = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", f"--feature-gates={GATES}")
    with ControlPlane.start(
        Path(os.environ[ASSETS]), tmp_path_factory.mktemp("control-plane"), without_admission=admission, flags=flags
    ) as plane:
        yield plane.target()
