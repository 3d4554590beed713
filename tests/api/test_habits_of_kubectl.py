"""What people who know kubectl expect of commands: groups in help, ages, names to paste, rows alone, scripts."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import yaml

from api.cli import GROUPS, SUBCOMMANDS
from tests.api.in_process import reprieve
from tests.api.test_commands_about_many_pods import node, printed
from tests.api.test_questions import get, pod
from tests.kit.objects import state_file
from tests.kit.service import serving
from tests.kit.waiting import until

CLUSTER = ("--dump", "api/examples/cluster.yaml")


def test_help_lists_every_command_in_one_of_five_groups() -> None:
    help_text = printed("--help")

    headings = re.findall(r"^(\w[\w ]*):$", help_text, re.MULTILINE)
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", help_text, re.MULTILINE)
    assert headings == ["Options", *GROUPS] == ["Options", "Ask", "Try", "Develop", "Run", "Set up"]
    assert listed == [*SUBCOMMANDS]


@pytest.mark.parametrize(("command", "usage"), [("init", "NAME"), ("completion", "bash|zsh|fish")])
def test_usage_names_an_argument_as_others_do(command: str, usage: str) -> None:
    assert printed(command, "--help").splitlines()[0] == f"Usage: reprieve {command} [OPTIONS] {usage}"


def test_names_can_be_pasted_into_why() -> None:
    names = printed("pending", "-o", "name", *CLUSTER).splitlines()

    assert names == ["shop/web-6", "batch/train-3"]
    assert all(printed("why", name, *CLUSTER).startswith(f"{name}  Pending") for name in names)
    assert all(name in printed("pending", *CLUSTER) for name in names), "the table has them whole as well"


def test_all_namespaces_and_one_contradict_each_other() -> None:
    assert printed("pending", "-A", *CLUSTER) == printed("pending", *CLUSTER)
    assert printed("pending", "-o", "name", "-n", "shop", *CLUSTER) == "shop/web-6\n"
    assert "contradict each other" in reprieve("pending", "-A", "-n", "shop", *CLUSTER).stderr.decode()


def test_pod_that_is_likely_to_be_meant_is_told_of_one_that_does_not_exist() -> None:
    done = reprieve("why", "shop/wbe-6", *CLUSTER)

    assert done.returncode == 1
    assert done.stderr.decode().endswith("no recent decision about one; did you mean shop/web-6?\n")


def test_rows_alone_have_no_headings() -> None:
    rows = printed("pending", "--no-headers", *CLUSTER).splitlines()

    assert [row.split()[:4] for row in rows] == [
        ["1", "shop", "(no", "controller)"],
        ["1", "batch", "(no", "controller)"],
    ]


def test_times_are_ages_and_the_wide_form_has_the_moments() -> None:
    assert re.search(r"\d{3}d +shop/web-6", printed("pending", *CLUSTER))
    assert re.search(r"2026-03-01T09:41:00Z +shop/web-6", printed("pending", "-o", "wide", *CLUSTER))


def test_events_that_wake_a_pod_are_in_the_wide_form_only(tmp_path: Path) -> None:
    items = [node("n1", "4"), pod("big", "9")]
    state_file(tmp_path / "cluster.yaml", *items)
    with serving(state=tmp_path / "cluster.yaml") as service:
        until(lambda: get(service, "/v1/explain/shop/big").get("attempts"))
        arguments = ("shop/big", "--server", f"127.0.0.1:{service.port}")

        short, wide = printed("why", *arguments), printed("why", *arguments, "-o", "wide")

    assert "retried on" not in short
    assert "retried on " in wide
    assert re.search(r"^AGE +WHAT HAPPENED", short, re.MULTILINE)


def test_pods_that_wait_alike_are_counted(tmp_path: Path) -> None:
    items = [node("n1", "4"), *(pod(f"big-{number}", "9") for number in range(3))]
    state_file(tmp_path / "cluster.yaml", *items)

    source = ("--dump", str(tmp_path / "cluster.yaml"))
    table, wide = (printed("whatif", "--pending", *more, *source, code=1) for more in ((), ("-o", "wide")))

    assert [line.split() for line in table.splitlines()[-1:]] == [["2", "x", "as", "above", "pending"]]
    assert (table.count("Insufficient cpu"), table.count("shop/big-")) == (1, 1)
    assert (wide.count("(as above)"), wide.count("shop/big-")) == (2, 3)


def test_pods_of_a_drain_are_in_one_table() -> None:
    table = printed("whatif", "--drain", "node-a1", *CLUSTER)

    assert [line.split()[0] for line in table.splitlines() if line.startswith("shop/web-0  ")] == ["shop/web-0"]
    assert ("Pods" in table.splitlines(), "Evicted" in table.splitlines()) == (False, True)


@pytest.mark.parametrize("output", ["table", "wide"])
@pytest.mark.parametrize(
    "command", ["why shop/web-6", "pending", "whatif --drain node-a1", "victims -f examples/2-urgent.yaml"]
)
def test_lines_of_a_table_end_with_what_is_in_them(command: str, output: str) -> None:
    lines = printed(*command.split(), "-o", output, *CLUSTER).splitlines()

    assert [line for line in lines if line != line.rstrip()] == []


def test_a_pod_that_is_placed_has_no_message_of_a_refusal() -> None:
    (row,) = [
        line for line in printed("whatif", "--pending", *CLUSTER, code=1).splitlines() if line.startswith("shop/web-6")
    ]

    assert "node-a3" in row
    assert "nodes are available" not in row


KUBECTL = """#!/bin/sh
printf '%s\\n' "kubectl $*" >> "$LOG"
case "$1" in
  get) echo "ReplicaSet/x " ;;
  create) cat > /dev/null ;;
esac
"""


def test_a_plan_is_printed_as_commands_of_kubectl(tmp_path: Path) -> None:
    script = printed(
        "plan", "--for", "examples/workloads/train.yaml", "--dump", "examples/clusters/fragmented.yaml", "-o", "sh"
    )
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}

    (tmp_path / "log").write_text("")
    subprocess.run(["sh", "-c", script], env=environment, check=True, timeout=60)

    done = [line for line in (tmp_path / "log").read_text().splitlines() if not line.startswith("kubectl get")]
    assert done == [
        "kubectl cordon gpu-2",
        "kubectl create --raw /api/v1/namespaces/ml/pods/serve-1/eviction -f -",
        "kubectl create --raw /api/v1/namespaces/ml/pods/tune-0/eviction -f -",
        "kubectl uncordon gpu-2",
        "kubectl apply -f examples/workloads/train.yaml",
    ]


FREE: Final = ("plan", "--free-nodes", "2", "--of", "nvidia.com/gpu", "--dump", "examples/clusters/fleet.yaml")


def test_a_plan_that_frees_nodes_keeps_them_cordoned_until_the_last_pod_has_landed(tmp_path: Path) -> None:
    script, log = printed(*FREE, "-o", "sh"), tmp_path / "log"
    moves = json.loads(printed(*FREE, "-o", "json"))["moves"]
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    log.write_text("")

    subprocess.run(
        ["sh", "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log)}, check=True, timeout=60
    )

    done = [line.split()[1:] for line in log.read_text().splitlines() if not line.startswith("kubectl get")]
    cordons = [words[1:] for words in done if words[0] == "cordon"]
    assert [words[2] for words in done if words[0] == "create"] == [
        f"/api/v1/namespaces/ml/pods/{move['pod']['name']}/eviction" for move in moves
    ]
    assert cordons == [["gpu-a2", "gpu-a4"], *(move["cordon"] for move in moves if move["cordon"])]
    assert done[-1] == ["uncordon", *dict.fromkeys(name for names in cordons for name in names)]


@pytest.mark.slow
def test_a_script_that_fails_uncordons_what_it_has_cordoned(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$*" >> "$LOG"\n[ "$1" != create ]\n')
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    (tmp_path / "sleep").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}

    done = subprocess.run(
        ["sh", "-c", printed(*FREE, "-o", "sh")],
        env=environment,
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "after 60 minutes still waiting for the eviction of ml/" in done.stderr
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith("uncordon gpu-a2 gpu-a4")


def test_names_in_a_script_are_quoted(tmp_path: Path) -> None:
    """A file may name things as no API server would."""
    cluster = yaml.safe_load(Path("examples/clusters/fleet.yaml").read_text())
    for item in cluster["items"]:
        if item["metadata"]["name"] == "serve-1":
            item["metadata"]["name"] = "x; touch hacked; '"
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(cluster))

    script = printed(*FREE[:-1], str(tmp_path / "fleet.yaml"), "-o", "sh")

    (line,) = [line for line in script.splitlines() if "touch" in line]
    assert shlex.split(line)[2] == "x; touch hacked; '"


def test_a_plan_is_drawn() -> None:
    picture = printed("plan", "--free-nodes", "3", *FREE[3:], "-o", "svg")

    assert picture == Path("docs/images/free-nodes.svg").read_text(), "docs/how-to/free-nodes.md says how it is made"


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (
            ("--free-nodes", "2", "--of", "nvidia.com/gpus"),
            2,
            "no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?",
        ),
        (("--free-nodes", "9"), 2, "9 nodes cannot be free: there are 8"),
        (("--free-nodes", "1", "--same", "rack"), 2, 'no node has the label "rack"'),
        ((), 2, "give the pods that should fit, --for FILE, or how many nodes should be free, --free-nodes"),
        (("--free-nodes", "1", "--for", "examples/workloads/train.yaml"), 2, "give the pods that should fit"),
        (("--for", "examples/workloads/train.yaml", "--of", "cpu"), 2, "say how many, too"),
        (("--free-nodes", "8", "-o", "sh"), 1, "# Only 4 of 8 nodes would be free after "),
    ],
)
def test_the_exit_code_of_a_plan_says_whether_there_is_one(words: tuple[str, ...], code: int, expected: str) -> None:
    done = reprieve("plan", *words, "--dump", "examples/clusters/fleet.yaml")

    assert done.returncode == code
    (line,) = [line for line in (done.stdout + done.stderr).decode().splitlines() if not line.startswith("# The")]
    assert expected in line


def test_a_plan_that_there_is_not_is_no_command(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text(yaml.safe_dump(pod("large", "9000")))

    script = printed("plan", "--for", str(tmp_path / "large.yaml"), *CLUSTER, "-o", "sh", code=1)

    assert all(line.startswith("# ") for line in script.splitlines())


FUNCTION = """
from reprieve import plugin as fwk

@fwk.node_filter
def my_policy(pod, node):
    return None if node.labels.get("disk") == "ssd" else "node(s) had no SSD"
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, since it makes the folder's modules known."""
    command = [sys.executable, "-m", "api.cli", *arguments]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_one_file_with_a_plugin_is_enough_for_dev(tmp_path: Path) -> None:
    (tmp_path / "my_policy.py").write_text(FUNCTION)

    done = run(tmp_path, "dev", "my_policy.py")

    assert done.stdout.startswith("MyPolicy on 12 nodes, "), done.stderr
    assert "node(s) had no SSD" in done.stdout


@pytest.mark.slow
def test_two_plugins_in_one_file_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(FUNCTION + FUNCTION.replace("def my_policy", "def other"))

    done = run(tmp_path, "dev", "both.py")

    assert (done.returncode, "both defines 2 plugins (my_policy, other)" in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_function_takes_the_place_of_the_class_in_a_new_project(tmp_path: Path) -> None:
    run(tmp_path, "init", "my-policy")
    project = tmp_path / "my-policy"
    for folder in ("rules", "tests"):
        shutil.rmtree(project / folder)
    (project / "my_policy.py").write_text(FUNCTION)

    good = run(project, "test")
    (project / "my_policy.py").write_text(FUNCTION.replace("node.labels", "node.label"))
    wrong = run(project, "test")

    assert (good.returncode, good.stdout.splitlines()[0]) == (0, "✓ MyPolicy loads: filter")
    assert wrong.returncode == 1
    assert "has no attribute 'label' (AttributeError, my-policy/my_policy.py, line 6)" in wrong.stdout


def test_an_expectation_in_per_cent_is_told_in_per_cent(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(
        "nodes: {cpu: 4}\npods: [{name: a, rate: 1, for: 30s, cpu: 1m}]\nexpect: ['placed >= 99%', 'pods < 99']\n"
    )

    output = printed("simulate", str(path))

    assert "placed >= 99%  (found 100%)" in output
    assert "pods < 99  (found " in output


@pytest.mark.slow
def test_terminal_shows_how_far_a_large_dump_is_read(tmp_path: Path) -> None:
    cluster = yaml.safe_load(Path("api/examples/cluster.yaml").read_text())
    cluster["items"].append(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"text": "x" * 2_000_000}}
    )
    (tmp_path / "cluster.json").write_text(json.dumps(cluster, default=str))
    reader, terminal = os.openpty()
    command = [sys.executable, "-m", "api.cli", "pending", "--dump", "cluster.json"]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "TERM": "xterm", "COLUMNS": "200"}

    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path, env=environment, check=True)
    os.close(terminal)
    output = b""
    with suppress(OSError):  # Linux says so at the end
        while part := os.read(reader, 65536):
            output += part
    os.close(reader)

    assert b"reading cluster.json (2 MB)" in output
    assert b"working on 12 nodes and " in output
    assert b"reading" not in done.stdout
