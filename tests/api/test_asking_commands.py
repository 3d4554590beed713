"""The commands that ask: of a service that runs, of a cluster through its API server, of a dump."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import app
from api.cli.sources import Source
from tests.api.test_questions import get, pod
from tests.kit.objects import priority_class, state_file
from tests.kit.service import Service, kubeconfig_for, serving
from tests.kit.tables import cases
from tests.kit.waiting import until


@pytest.fixture(scope="module")
def running(dump: Path) -> Iterator[Service]:
    with serving(state=dump) as service:
        until(lambda: service.client.get("/v1/preemptions").json().get("items"))
        yield service


@pytest.fixture
def vip(tmp_path: Path) -> str:
    file = tmp_path / "vip.yaml"
    very_high = priority_class("very-high", 5000)
    file.write_text(yaml.safe_dump_all([very_high, pod("vip", "3", priority=5000, priorityClassName="very-high")]))
    return str(file)


def reprieve(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [*arguments], input=text, catch_exceptions=False)


def server(service: Service) -> list[str]:
    return ["--server", f"http://127.0.0.1:{service.port}"]


def test_why_tells_people(dump: Path) -> None:
    output = reprieve("why", "shop/too-large", "--dump", str(dump)).stdout

    assert output.startswith("shop/too-large  Pending")
    assert "0/3 nodes are available: 3 Insufficient cpu." in output
    assert "NodeResourcesFit" in output
    assert "requests 64" in output


def test_why_wide_shows_every_node(dump: Path) -> None:
    assert "Every node" not in reprieve("why", "shop/too-large", "--dump", str(dump)).stdout
    wide = reprieve("why", "shop/too-large", "--dump", str(dump), "-o", "wide").stdout

    every_node = wide.split("Every node")[1]
    assert [line.split()[0] for line in every_node.splitlines()[2:]] == ["node-0", "node-1", "node-2"]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_get_the_answer_of_the_request(running: Service, form: str) -> None:
    printed = reprieve("why", "shop/too-large", *server(running), "-o", form).stdout

    assert (json.loads(printed) if form == "json" else yaml.safe_load(printed)) == get(
        running, "/v1/explain/shop/too-large", picture="true"
    )


def test_victims_command_names_the_victims_and_why_other_candidates_lose(dump: Path, vip: str) -> None:
    output = reprieve("victims", "-f", vip, "--dump", str(dump)).stdout

    assert output.startswith("shop/vip (priority 5000) would evict 1 pod on node-0")
    assert "bank/batch-0" in output
    assert "Other candidates: 2 nodes" in output
    assert "its most important victim has priority 1, on node-0 it is 0" in output


def test_victims_of_a_running_service_are_those_of_its_cluster_now(running: Service, vip: str) -> None:
    answer = json.loads(reprieve("victims", "-f", vip, *server(running), "-o", "json").stdout)

    assert [victim["pod"]["name"] for victim in answer["placements"][0]["evicts"]] == ["batch-1"]


CLASSES = """
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ordinary}, value: 100, globalDefault: true}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: unused}, value: 5000}
- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: low}
  spec: {nodeName: a, priority: 1, containers: [{name: c, image: x, resources: {requests: {cpu: "2"}}}]}
  status: {phase: Running}
"""


@pytest.mark.parametrize("source", ["a dump", "a service", "an API server"])
@pytest.mark.parametrize(("name", "priority"), [("", 100), ("unused", 5000), ("system-node-critical", 2_000_001_000)])
def test_a_pod_gets_its_priority_from_the_classes_of_the_cluster_wherever_it_is_read(
    source: str, name: str, priority: int, tmp_path: Path
) -> None:
    """The default class, one that no pod has, and one of every cluster."""
    state = tmp_path / "cluster.yaml"
    state_file(state, *yaml.safe_load(CLASSES))
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}
    spec = {"containers": [container], **({"priorityClassName": name} if name else {})}
    manifest = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": spec})
    with serving(state=state, schedule=False) as service:
        where = {
            "a dump": ["--dump", str(state)],
            "a service": server(service),
            "an API server": ["--kubeconfig", str(kubeconfig_for(service.port, tmp_path))],
        }[source]

        for command in ("victims", "whatif"):
            (placement,) = json.loads(reprieve(command, "-f", "-", *where, "-o", "json", text=manifest).stdout)[
                "placements"
            ]
            assert placement["pod"]["priority"] == priority, command
            assert [victim["pod"]["name"] for victim in placement["evicts"]] == ["low"], command
        assert json.loads(reprieve("fits", "-f", "-", *where, "-o", "json", text=manifest).stdout)["fits"] == 0


def test_message_about_preemption_is_printed_once(dump: Path) -> None:
    """By `victims` and by `why`: then it is said in plain words."""
    unimportant = yaml.safe_dump(pod("lowly", "3"))

    victims = reprieve("victims", "-f", "-", "--dump", str(dump), text=unimportant).stdout
    why = reprieve("why", "shop/too-large", "--dump", str(dump)).stdout

    assert victims.count("preemption: 0/3 nodes are available: ") == victims.count("0/3 nodes are available: 3 No") == 1
    assert victims.splitlines()[-1] == "no pod of lower priority is on a node where evictions could help"
    assert why.count("0/3 nodes are available: 3 Preemption is not helpful") == 1
    assert why.split("Preemption\n")[1].splitlines()[:2] == [
        "no eviction would make room", "3 nodes: Preemption is not helpful for scheduling",
    ]  # fmt: skip


def test_whatif_drains_a_node(dump: Path) -> None:
    output = reprieve("whatif", "--drain", "node-2", "--dump", str(dump)).stdout

    assert "bank/batch-2" in output
    assert "drained" in output


@cases(
    "arguments, budget_row, summary",
    ("drain", ["--drain", "n1"], "drained, once budget keep allows it", "wait for PodDisruptionBudget default/keep"),
    (
        "preemption",
        ["-f", "-"],
        "preempted by default/vip, against budget keep",
        "of default/db violates PodDisruptionBudget default/keep",
    ),
)
def test_whatif_names_the_budget_and_the_pod_that_it_protects(
    tmp_path: Path, arguments: list[str], budget_row: str, summary: str
) -> None:
    db = pod("db", "2", namespace="default", node="n1")
    objects = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}},
        {**db, "metadata": {**db["metadata"], "labels": {"app": "db"}}},
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}},
        },
    ]  # fmt: skip
    file = tmp_path / "cluster.json"
    state_file(file, *objects)

    vip = yaml.safe_dump(pod("vip", "2", namespace="default", priority=9))
    output = reprieve("whatif", *arguments, "--dump", str(file), text=vip).stdout

    assert summary in output.splitlines()[0]
    assert [
        budget_row in line for line in output.split("Evicted")[1].splitlines() if line.startswith("default/db ")
    ] == [True]


def test_whatif_reads_manifests_from_standard_input(dump: Path) -> None:
    answer = json.loads(
        reprieve(
            "whatif", "-f", "-", "--dump", str(dump), "-o", "json", text=yaml.safe_dump(pod("small", "500m"))
        ).stdout
    )

    assert answer["placements"][0]["node"]
    assert answer["evictions"] == []


def test_fits_counts(dump: Path, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod("one", "500m")))

    output = reprieve("fits", "-f", str(file), "--dump", str(dump)).stdout

    assert output.startswith("6 pods fit on 3 nodes")
    assert "3 Insufficient cpu" in output


def test_fits_takes_the_priority_class_of_the_file(dump: Path, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "of-file"},
        "value": 5,
    }
    one = pod("one", "500m", priorityClassName="of-file")
    del one["spec"]["priority"]
    file.write_text(yaml.safe_dump_all([urgent, one]))

    assert reprieve("fits", "-f", str(file), "--dump", str(dump)).stdout.startswith("6 pods fit on 3 nodes")


def test_who_preempted_command_prints_the_preemptor_and_other_candidates(running: Service) -> None:
    output = reprieve("who-preempted", "bank/batch-0", *server(running)).stdout

    assert "preempted on node-0 for shop/urgent (priority 1000)" in output
    assert "Other candidates: 2 nodes" in output


def test_a_cluster_is_asked_through_its_api_server(running: Service, tmp_path: Path) -> None:
    """Nothing of ours has to run there: the objects are listed, and the question is answered here."""
    file = kubeconfig_for(running.port, tmp_path)

    answer = json.loads(reprieve("why", "shop/too-large", "--kubeconfig", str(file), "-o", "json").stdout)

    assert answer["message"] == get(running, "/v1/explain/shop/too-large")["message"]


def test_names_without_a_namespace_are_in_default(dump: Path) -> None:
    result = CliRunner().invoke(app, ["why", "too-large", "--dump", str(dump)])

    assert result.exit_code == 1
    assert "there is no pod default/too-large" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["why", "shop/x/y", "--dump", "DUMP"], "write namespace/name"),
        (["why", "shop/x", "--dump", "/nowhere"], "/nowhere"),
        (["why", "shop/x", "--server", "http://127.0.0.1:1"], "cannot be reached"),
        (["whatif", "--dump", "DUMP"], "nothing to try"),
        (["whatif", "-f", "/nowhere", "--dump", "DUMP"], "/nowhere: no such file"),
        (["whatif", "--drain", "node-9", "--dump", "DUMP"], "node-9"),
        (["who-preempted", "shop/too-large", "--server", "SERVER"], "no preemption of shop/too-large is known"),
        (["fits", "-f", "DUMP", "--dump", "DUMP"], "6 pods or workloads in it; give one"),
        (["why", "shop/x", "--dump", "DUMP", "--kubeconfig", "DUMP"], "give one of them"),
    ],
)
def test_failing_command_explains_itself_in_one_line(
    running: Service, dump: Path, arguments: list[str], words: str
) -> None:
    names = {"DUMP": str(dump), "SERVER": server(running)[1]}

    result = CliRunner().invoke(app, [names.get(argument, argument) for argument in arguments])

    assert result.exit_code == 1
    assert words in str(result.exception)
    assert len(str(result.exception).splitlines()) == 1


class Heavy(msgspec.Struct):
    """An answer that takes long to format for developers."""

    text: str
    formatted: ClassVar[list[str]] = []

    def __repr__(self) -> str:
        self.formatted.append(self.text)
        return self.text


def test_an_answer_is_formatted_for_people_alone(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the main thread, where asyncio.run looks at a signal handler that holds a task, which holds what it returned."""

    async def ask(_: object) -> Heavy:
        return Heavy("fine")

    Source(dump=dump).show(ask, "", lambda _, answer, __: print(answer.text))

    assert capsys.readouterr().out == "fine\n"
    assert Heavy.formatted == []
