"""Commands about more than one pod, and about pods and nodes that do not exist yet."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app
from tests.api.in_process import reprieve
from tests.api.test_questions import deployment, get, pod
from tests.kit import objects
from tests.kit.objects import state_file
from tests.kit.service import Service, kubeconfig_for, serving
from tests.kit.waiting import until

OWNER = objects.owner(name="web-7d")


def of_web(number: int, cpu: str, node: str = "") -> dict[str, Any]:
    """A pod of the Deployment web."""
    web_pod = pod(f"web-7d-{number}", cpu, node=node)
    web_pod["metadata"] |= {"labels": {"app": "web", "pod-template-hash": "7d"}, "ownerReferences": [OWNER]}
    return web_pod


def node(name: str, cpu: str) -> dict[str, Any]:
    return objects.node(name, cpu, memory="8Gi", pods="10", labels={"disk": "ssd"})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes that are almost full; of the Deployment web one pod runs, and two wait. Another pod waits, too."""
    folder = tmp_path_factory.mktemp("many")
    items = [
        node("n1", "4"), node("n2", "4"), of_web(0, "3", "n1"), of_web(1, "3"), of_web(2, "3"),
        pod("db", "3", namespace="bank", node="n2"), pod("big", "9", namespace="bank"),
    ]  # fmt: skip
    return state_file(folder / "cluster.yaml", *items)


@pytest.fixture(scope="module")
def service(file: Path) -> Iterator[Service]:
    with serving(state=file) as running:
        until(lambda: get(running, "/v1/pending")["pods"] == 3)
        until(lambda: all(queued_pod["refusedBy"] for queued_pod in get(running, "/v1/queue")["items"]))
        yield running


@pytest.fixture(params=["--dump", "--server", "--kubeconfig"])
def source(request: pytest.FixtureRequest, file: Path, service: Service, tmp_path: Path) -> list[str]:
    where = {
        "--dump": file,
        "--server": f"http://127.0.0.1:{service.port}",
        "--kubeconfig": kubeconfig_for(service.port, tmp_path),
    }
    return [request.param, str(where[request.param])]


def printed(*arguments: str, code: int = 0, stdin: str = "") -> str:
    done = reprieve(*arguments, stdin=stdin.encode())
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def test_pending_pods_are_grouped_by_reason_and_workload(service: Service) -> None:
    lines = printed("pending", "--server", f"127.0.0.1:{service.port}").splitlines()

    assert lines[0] == "3 pending pods, 1 reason"
    assert lines[1] == "short of: cpu (3 pods)"
    assert [line.split()[:3] for line in lines if "(Deployment)" in line] == [["2", "shop/web", "(Deployment)"]]


def test_pending_pods_of_one_namespace(source: list[str]) -> None:
    answer = json.loads(printed("pending", *source, "-n", "bank", "-o", "json"))

    namespaces = [workload["namespace"] for reason in answer["reasons"] for workload in reason["workloads"]]
    assert (answer["pods"], namespaces) == (1, ["bank"])
    assert printed("pending", *source, "-n", "nobody") == "No pending pods in the namespace nobody.\n"


@pytest.mark.parametrize("words", [["deploy/web"], ["deployment/web"], ["-l", "app=web"], ["-l", "app in (web, shop)"]])
def test_why_explains_the_first_pod_that_waits_and_lists_the_others(source: list[str], words: list[str]) -> None:
    lines = printed("why", *words, "-n", "shop", *source).splitlines()

    assert lines[0] == "2 of 3 pods are pending"
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["shop/web-7d-1", "pending"], ["shop/web-7d-2", "pending"], ["shop/web-7d-0", "n1"],
    ]  # fmt: skip
    assert "shop/web-7d-1  Pending" in "\n".join(lines)
    assert "Insufficient cpu" in "\n".join(lines)


def test_why_reports_that_a_workload_has_no_pods(source: list[str]) -> None:
    done = reprieve("why", "job/nothing", *source)

    assert done.returncode == 1
    assert b"there is no pod of Job/nothing in the namespace default" in done.stderr


@pytest.mark.parametrize("words", [[], ["web-0", "-l", "app=web"], ["deploy/web", "-f", "-"]])
def test_why_refuses_more_than_one_subject(file: Path, words: list[str]) -> None:
    done = reprieve("why", *words, "--dump", str(file))

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"one of them" in done.stderr


def test_labels_that_are_none_are_refused(source: list[str]) -> None:
    done = reprieve("why", "-l", "app in web", *source)

    assert done.returncode == 2
    assert b"label selector" in done.stderr


def test_why_explains_a_pod_that_does_not_exist_yet(source: list[str]) -> None:
    answer = json.loads(printed("why", "-f", "-", *source, "-o", "json", stdin=yaml.safe_dump(pod("new", "3"))))

    assert answer["state"] == "Pending"
    assert answer["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert [near["lacks"][0]["short"] for near in answer["nearest"]] == ["2", "2"]
    assert {fix["kind"] for fix in answer["fixes"]} >= {"request"}
    assert "Best nodes now" in printed("why", "-f", "-", *source, stdin=yaml.safe_dump(pod("small", "1")))


def test_why_explains_the_first_pod_of_a_workload_that_does_not_exist_yet(source: list[str]) -> None:
    workload = deployment("new", pod("any", "3")["spec"], 4, namespace="shop")

    lines = printed("why", "-f", "-", *source, stdin=yaml.safe_dump(workload)).splitlines()

    assert lines[0].startswith("shop/new-")
    assert "note: 3 more pods would be created; this is the first" in lines


def test_more_nodes_like_another(source: list[str]) -> None:
    plan = json.loads(printed("whatif", "--pending", "--add-nodes", "2", "--like", "n2", *source, "-o", "json", code=1))

    assert {placement["node"] for placement in plan["placements"] if placement["node"]} == {"n2-new-1", "n2-new-2"}
    assert [placement["pod"]["name"] for placement in plan["placements"] if not placement["node"]] == ["big"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--add-nodes", "2"], "go together"),
        (["--add-nodes", "2", "--like", "nobody"], 'node "nobody" not found'),
        (["--pending", "--no-preempt"], "about the pods of -f"),
    ],
)
def test_impossible_what_if_is_refused_with_the_reason(file: Path, words: list[str], reason: str) -> None:
    done = reprieve("whatif", *words, "--dump", str(file))

    assert done.returncode == 2
    assert reason in done.stderr.decode()


def test_the_pods_of_a_file_are_tried_with_another_priority(source: list[str]) -> None:
    new = yaml.safe_dump(pod("new", "3", priority=3))
    critical = ["--priority-class", "system-node-critical"]

    # exit code 1: the evicted pod of the Deployment comes back and finds no room
    evicting = json.loads(printed("whatif", "-f", "-", *critical, *source, "-o", "json", stdin=new, code=1))
    calm = json.loads(printed("whatif", "-f", "-", *critical, "--no-preempt", *source, "-o", "json", stdin=new, code=1))

    first, spared = evicting["placements"][0], calm["placements"][0]
    assert (first["pod"]["priority"], len(first["evicts"])) == (2_000_001_000, 1)
    assert (spared["node"], spared["evicts"]) == ("", [])
    assert "preemptionPolicy=Never" in spared["message"]


@pytest.fixture(scope="module")
def evicting(dump: Path) -> Iterator[list[str]]:
    with serving(state=dump) as running:
        until(lambda: running.client.get("/v1/preemptions").json().get("items"))
        yield ["--server", f"127.0.0.1:{running.port}"]


@pytest.mark.parametrize(
    "words", [[], ["--since", "1h"], ["-n", "bank"], ["bank/"], ["bank/bat"], ["-n", "bank", "batch"]]
)
def test_who_preempted_command_lists_victims_by_the_beginning_of_their_names(
    evicting: list[str], words: list[str]
) -> None:
    lines = printed("who-preempted", *words, *evicting).splitlines()

    assert lines[0].split() == ["AGE", "POD", "PRIORITY", "FOR", "FOR", "PRIORITY", "NODE"]
    assert [line.split()[1:] for line in lines[1:]] == [["bank/batch-0", "0", "shop/urgent", "1000", "node-0"]]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["bank/web"], 1, "no preemption of bank/web is known"),
        (["-n", "shop"], 1, "no preemption of shop/ is known"),
        (["--since", "soon"], 2, "write a number and a unit, such as 90s, 30m, 1h or 2d"),
    ],
)
def test_who_preempted_command_says_that_it_knows_no_preemption(
    evicting: list[str], words: list[str], code: int, reason: str
) -> None:
    done = reprieve("who-preempted", *words, *evicting)

    assert (done.returncode, reason in done.stderr.decode()) == (code, True)


def test_each_plugins_score_is_in_the_wide_answer(source: list[str]) -> None:
    new = yaml.safe_dump(pod("small", "1"))

    wide = printed("why", "-f", "-", *source, "-o", "wide", stdin=new).split("Best nodes now\n")[1].splitlines()

    assert wide[0].split() == ["NODE", "SCORE", "PLUGIN", "RAW", "NORMALIZED", "WEIGHT", "WEIGHTED"]
    fits = next(line.split() for line in wide if line.split()[:1] == ["NodeResourcesFit"])
    assert int(fits[4]) == int(fits[2]) * int(fits[3])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["fits", "-f", "POD"], "fit"),
        (["who-preempted", "bank/nobody"], "no preemption of bank/nobody is known"),
        (["pending"], "pending pods"),
    ],
)
def test_unchanged_answer_is_printed_once_by_watch(
    service: Service, command: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("one", "1")))
    pauses = []

    async def next_question(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("api.cli.showing.pause", next_question)

    arguments = [str(file) if word == "POD" else word for word in command]
    done = CliRunner().invoke(app, [*arguments, "--watch", "--server", f"127.0.0.1:{service.port}"])

    assert done.exit_code == 0
    assert len(pauses) == 3
    assert len([line for line in done.stdout.splitlines() if words in line]) == 1, done.stdout


def test_watching_prints_an_answer_again_when_it_has_changed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until Ctrl-C, which comes here with the third question."""
    pauses = []

    async def next_question(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            service.client.delete("/api/v1/namespaces/bank/pods/big")
            until(lambda: get(service, "/v1/pending")["pods"] == 2)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("api.cli.showing.pause", next_question)

    done = CliRunner().invoke(app, ["pending", "--watch", "--server", f"127.0.0.1:{service.port}"])

    assert [line for line in done.stdout.splitlines() if "pending pods" in line] == [
        "3 pending pods, 1 reason",
        "2 pending pods, 1 reason",
    ]
