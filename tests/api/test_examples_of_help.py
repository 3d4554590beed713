"""The examples with which the help of each command ends do what they say."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from api.cli import SUBCOMMANDS, app
from api.cli.examples import EXAMPLES, LINES
from api.documents.documentation import SCENARIO
from tests.api.in_process import HEADER, reprieve
from tests.kit.service import ROOT, Service, serving
from tests.kit.waiting import until

NOT_RUN = {
    **dict.fromkeys(LINES["completion"], "changes its process; tests/installed/test_packages.py runs it"),
    "reprieve top": "fills a terminal until it is left",
    "reprieve top --server http://127.0.0.1:8888": "as above",
    "reprieve init my-policy": "made the project of the other examples",
    "reprieve mcp": "serves a program until it leaves",
    "reprieve serve": "serves until it is told to end; README runs it",
    "reprieve serve --kubeconfig ~/.kube/config --no-schedule": "as above",
    "reprieve shadow run --for 24h": "follows a cluster for a day",
    **dict.fromkeys(LINES["tune"], "plays for minutes; tests/reprieve/lab/tuning/test_tune.py has it play less"),
}
ANSWERS_NO = {
    "reprieve fits -f pod.yaml --limit 500 -o json": "no further pod of its size fits",
    "reprieve plan --free-nodes 2 --of nvidia.com/gpu -o sh": "its nodes have pods that nobody would recreate",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    directory = tmp_path_factory.mktemp("examples")
    listed = yaml.safe_load((ROOT / "api" / "examples" / "cluster.yaml").read_text())
    (directory / "cluster.json").write_text(json.dumps(listed, default=str))
    (directory / "scheduler-config.yaml").write_text(HEADER)
    (directory / "scenarios.jsonl").write_text(json.dumps(SCENARIO) + "\n")
    for name, source in {
        "pod.yaml": "examples/2-urgent.yaml",
        "deployment.yaml": "examples/1-web.yaml",
        "workload.yaml": "examples/workloads/web-and-batch.yaml",
        "day.recording": "tests/api/data/kept/recording",
        "my_policy.py": "api/examples/plugin/my_policy.py",
    }.items():
        shutil.copy(ROOT / source, directory / name)
    shutil.copytree(ROOT / "examples" / "rules", directory / "rules")
    assert reprieve("init", "my-policy", folder=directory).returncode == 0
    return directory


@pytest.fixture(scope="module")
def busy() -> Iterator[Service]:
    """A service for the example cluster that has preempted, and compares."""
    with serving(shadow=True, access="open") as service:
        until(lambda: service.client.get("/v1/preemptions").json().get("items"))
        yield service


def parts(line: str) -> list[str]:
    """The arguments of an example, without what the shell does with its output."""
    return shlex.split(re.split(r" [>|] ", line)[0])[1:]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_of_every_command_ends_with_two_examples(name: str) -> None:
    last = reprieve(name, "--help").stdout.decode().split("\n\n")[-1]

    assert [line.strip() for line in last.splitlines()] == ["Examples:", *LINES[name]]
    assert len(set(EXAMPLES[name])) == 2


@pytest.mark.parametrize("line", [line for name in SUBCOMMANDS for line in LINES[name]])
def test_options_of_every_example_are_known(line: str) -> None:
    group: Any = typer.main.get_command(app)
    name, *arguments = parts(line)

    group.commands[name].make_context(name, arguments).close()


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for name in SUBCOMMANDS for line in LINES[name] if line not in NOT_RUN])
def test_example_answers(busy: Service, folder: Path, line: str) -> None:
    address = f"http://127.0.0.1:{busy.port}"

    done = reprieve(
        *(part.replace("http://127.0.0.1:8888", address) for part in parts(line)),
        folder=folder,
        REPRIEVE_SERVER=address,
        HOME=str(folder),
    )

    assert (done.returncode, done.stdout != b"") == (int(line in ANSWERS_NO), True), done.stderr.decode()
