"""A shell completes names of pods, nodes, namespaces and contexts, or says nothing while there is nobody to ask."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from api.cli import names
from tests.kit.ports import free_port
from tests.kit.service import ROOT, Service
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

THREE_PODS = {
    "kind": "List",
    "items": [
        *({"kind": "Node", "metadata": {"name": f"node-{number}"}} for number in range(2)),
        {"kind": "Pod", "metadata": {"namespace": "shop", "name": "web-0"}},
        {"kind": "Pod", "metadata": {"namespace": "shop", "name": "cart-0"}},
        {"kind": "Pod", "metadata": {"name": "web-1"}},
    ],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without a kubeconfig, where the commands run, with a dump."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "cluster.json").write_text(json.dumps(THREE_PODS))
    return folder


@pytest.fixture
def silent_port() -> Iterator[int]:
    """The port of a server that accepts connections, and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / "config"
    names = ("prod", "prod-2", "dev")
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": "shop"}} for name in names]
    clusters = [{"name": "c", "cluster": {"server": server}}]
    users = [{"name": "u", "user": {}}]
    file.write_text(
        yaml.safe_dump({"current-context": "prod", "contexts": contexts, "clusters": clusters, "users": users})
    )
    return file


def completed(home: Path, line: str) -> list[str]:
    """What a shell is told after this line; nothing is written to its terminal meanwhile."""
    words = line.split(" ")
    completion = {"_REPRIEVE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("REPRIEVE_", "KUBE"))}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['reprieve']; from api.cli import main; main()"],
        cwd=ROOT,
        env={**inherited, **completion, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
@cases(
    "line, offered",
    ("a pod of a namespace", "why shop/w", ["shop/web-0"]),
    ("every pod, as short as it may be given", "why ", ["shop/web-0", "shop/cart-0", "web-1"]),
    ("a pod of the namespace that an option names", "why -n shop ", ["web-0", "cart-0"]),
    ("a namespace", "why -n ", ["shop", "default"]),
    ("a node", "whatif --drain node-", ["node-0", "node-1"]),
    ("nobody", "why nobody", []),
)
def test_names_of_a_dump_are_completed(home: Path, line: str, offered: list[str]) -> None:
    command, _, rest = line.partition(" ")

    assert completed(home, f"reprieve {command} --dump {home / 'cluster.json'} {rest}") == offered


@pytest.mark.slow
def test_names_of_a_service_are_completed(home: Path, example: Service) -> None:
    source = f"--server http://127.0.0.1:{example.port}"

    # A busy machine may take longer than a shell waits.
    until(lambda: len(completed(home, f"reprieve why {source} shop/web-")) == 7)
    until(lambda: completed(home, f"reprieve whatif {source} --like node-b")[:2] == ["node-b1", "node-b2"])
    until(lambda: completed(home, f"reprieve why {source} -n s") == ["shop"])


@pytest.mark.slow
def test_names_of_a_cluster_are_completed(home: Path, twelve_nodes: Service, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, f"http://127.0.0.1:{twelve_nodes.port}")

    until(lambda: len(completed(home, f"reprieve whatif --kubeconfig {file} --remove ")) == 12)


@pytest.mark.slow
def test_contexts_are_completed_without_asking_anybody(home: Path, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1")

    assert completed(home, f"reprieve why --kubeconfig {file} --context p") == ["prod", "prod-2"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--server", "--kubeconfig"])
@pytest.mark.parametrize("who", ["nobody listens", "nobody answers", "no such name"])
def test_shell_is_told_nothing_while_nobody_answers(
    home: Path, tmp_path: Path, silent_port: int, who: str, option: str
) -> None:
    host = {
        "nobody listens": f"127.0.0.1:{free_port()}",
        "nobody answers": f"127.0.0.1:{silent_port}",
        "no such name": "nobody.invalid:80",
    }[who]
    source = f"http://{host}" if option == "--server" else str(kubeconfig(tmp_path, f"http://{host}"))

    assert completed(home, f"reprieve why {option} {source} shop/w") == []
    assert names.SECONDS < 1


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--dump nowhere.json", "--dump openapi.json", "--kubeconfig nowhere", "--dump -"])
def test_shell_is_told_nothing_of_a_source_that_there_is_not(home: Path, option: str) -> None:
    assert completed(home, f"reprieve why {option} w") == []
