"""Exit codes are one table for all commands, and nothing is all-clear that was not looked at."""

import re
import socket
from pathlib import Path

import pytest
import yaml

from reprieve.errors import EXIT_CODES
from tests.api.in_process import reprieve
from tests.api.test_questions import pod
from tests.kit.objects import owner, state_file

CLUSTER = "api/examples/cluster.yaml"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
NOT_TEXT = b"\x93\x00\xff\xfe"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "empty").write_text("")
    (tmp_path / "map").write_text(CONFIG_MAP)
    (tmp_path / "bytes").write_bytes(NOT_TEXT)
    (tmp_path / "small").write_text(yaml.safe_dump(pod("small", "100m")))
    (tmp_path / "large").write_text(yaml.safe_dump(pod("large", "9000")))
    return {path.name: str(path) for path in tmp_path.iterdir()} | {"missing": str(tmp_path / "missing")}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("whatif -f small --dump CLUSTER", 0),
        ("victims -f small --dump CLUSTER", 0),
        ("fits -f small --dump CLUSTER", 0),
        ("why shop/web-6 --dump CLUSTER", 0),
        ("whatif -f large --dump CLUSTER", 1),
        ("whatif --pending --dump CLUSTER", 1),
        ("victims -f large --dump CLUSTER", 1),
        ("fits -f large --dump CLUSTER", 1),
        ("why nobody --dump CLUSTER", 1),
        ("pending --dump missing", 2),
        ("why nobody --dump missing", 2),
        ("why nobody --kubeconfig missing", 2),
        ("whatif --drain node-9 --dump CLUSTER", 2),
        ("whatif -f missing --dump CLUSTER", 2),
        ("fits -f missing --dump CLUSTER", 2),
        ("victims -f missing --dump CLUSTER", 2),
        ("simulate missing", 2),
        ("tune missing --maximise placed", 2),
        ("verify missing", 2),
        ("replay missing", 2),
        ("evaluate missing", 2),
        ("serve --state missing", 2),
        ("serve --config map", 2),
        ("print-config --config map", 2),
        ("doctor --config missing", 2),
        ("plugins --config missing", 2),
        ("test missing", 2),
        ("init 0", 2),
        ("why nobody --server 127.0.0.1:TAKEN", 3),
        ("serve --port TAKEN", 4),
    ],
)
def test_every_command_ends_with_the_code_of_the_table(files: dict[str, str], command: str, code: int) -> None:
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))  # and does not listen
        values = {**files, "CLUSTER": CLUSTER, "TAKEN": str(bound_socket.getsockname()[1])}
        words = [values.get(word, word.replace("TAKEN", values["TAKEN"])) for word in command.split()]

        done = reprieve(*words)

    assert done.returncode == code, done.stderr.decode()
    assert code in EXIT_CODES
    assert code in (0, 1) or done.stderr.count(b"\n") == 1


def test_an_option_that_there_is_not_ends_a_command_with_2() -> None:
    assert reprieve("why", "--no-such-option").returncode == 2


def test_the_table_is_in_the_documentation() -> None:
    page = Path("docs/reference/commands.md").read_text(encoding="utf-8")

    assert dict(re.findall(r"^\| (\d) \| (.*) \|$", page, re.MULTILINE)) == {
        str(code): words for code, words in EXIT_CODES.items()
    }


@pytest.mark.parametrize("command", ["pending --dump", "whatif --pending --dump", "why web-6 --dump"])
@pytest.mark.parametrize(
    ("file", "reason"), [("empty", "it is empty"), ("map", "it has ConfigMap, but neither nodes nor pods")]
)
def test_file_without_nodes_and_pods_is_no_cluster(files: dict[str, str], command: str, file: str, reason: str) -> None:
    done = reprieve(*command.split(), files[file])

    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{reason}; kubectl get nodes,pods," in done.stderr.decode()


def test_a_file_with_pods_alone_is_answered_and_told_to_have_no_nodes(tmp_path: Path) -> None:
    file = tmp_path / "\x1b[31mpods.json"
    state_file(file, pod("web", "1"))

    done = reprieve("why", "shop/web", "--dump", str(file))

    assert done.returncode == 0
    assert "pods.json has no nodes; kubectl get nodes,pods," in done.stderr.decode()
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize("command", ["victims -f", "whatif -f", "why -f", "plan --for", "fits -f"])
def test_a_question_about_a_file_without_pods_is_refused(files: dict[str, str], command: str) -> None:
    done = reprieve(*command.split(), files["map"], "--dump", CLUSTER)

    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize(
    "command",
    [
        "pending --dump",
        "victims --dump CLUSTER -f",
        "whatif --pending --dump CLUSTER --with-config",
        "verify",
        "why x --kubeconfig",
        "serve --state",
        "serve --config",
    ],
)
def test_bytes_that_are_no_text_are_refused_in_words(files: dict[str, str], command: str) -> None:
    done = reprieve(*command.replace("CLUSTER", CLUSTER).split(), files["bytes"])

    output = (done.stderr + done.stdout).decode()
    assert "not UTF-8" in output
    assert "codec" not in output


def test_a_configuration_of_another_kind_is_refused_without_a_path_of_go(files: dict[str, str]) -> None:
    error = reprieve("print-config", "--config", files["map"]).stderr.decode()

    assert error.endswith("; give a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1\n")
    assert ".go" not in error


@pytest.mark.parametrize(
    ("name", "elsewhere"), [("web-6", "there is one in shop: -n shop"), ("rs/web", "there is one in shop: -n shop")]
)
def test_a_pod_of_another_namespace_is_suggested(name: str, elsewhere: str, tmp_path: Path) -> None:
    waits = pod("web-6", "3")
    waits["metadata"] |= {"ownerReferences": [owner(name="web")]}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(waits))

    done = reprieve("why", name, "--dump", str(tmp_path / "cluster.yaml"))

    assert done.returncode == 1
    assert elsewhere in done.stderr.decode()
