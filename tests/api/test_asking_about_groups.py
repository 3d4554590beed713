"""The commands and pages about pod groups: of a dump, and of a service that runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app
from tests.kit.objects import GROUP_GATES, node, pod, pod_group, priority_class, state_file
from tests.kit.service import Service, serving
from tests.kit.waiting import until

GATES = ",".join(f"{name}=true" for name in GROUP_GATES)
WAITS = "PodGroup default/train would wait: 4 of 5 pods fit (the gang needs 5)"


def member(number: int, **spec: Any) -> dict[str, Any]:
    in_group = {"schedulingGroup": {"podGroupName": "train"}, **spec}
    return pod(f"train-{number}", "2", metadata={"namespace": "default"}, **in_group)


def running(number: int, on: str, priority: int, cpu: str = "2") -> dict[str, Any]:
    low_pod = pod(f"low-{number}", cpu, metadata={"namespace": "default"}, nodeName=on)
    low_pod["spec"]["priority"] = priority
    return low_pod


def gang(size: int) -> list[dict[str, Any]]:
    group = pod_group("train", size)
    group["metadata"]["namespace"] = "default"
    return [group, *map(member, range(size))]


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two nodes, each with room for two members, in a dump."""
    return dump(tmp_path)


def dump(folder: Path, *objects: dict[str, Any]) -> Path:
    return state_file(folder / "cluster.json", node("a", "4"), node("b", "4"), *objects)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that schedules, in whose cluster a gang of five waits."""
    file = dump(tmp_path_factory.mktemp("waiting"), *gang(5))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REPRIEVE_FEATURE_GATES", GATES)
        with serving(state=file, feature_gates=GATES) as service:
            until(lambda: service.client.get("/v1/decisions").json().get("items"))
            yield service


def reprieve(*arguments: str, text: str | None = None) -> str:
    runner = CliRunner(env={"REPRIEVE_FEATURE_GATES": GATES})
    return runner.invoke(app, [*arguments], input=text, catch_exceptions=False).stdout


def printed(command: str, dump: Path, *objects: dict[str, Any], more: tuple[str, ...] = ()) -> str:
    """What the command prints about these objects, in one line."""
    text = yaml.safe_dump_all(objects)
    return " ".join(reprieve(command, "-f", "-", "--dump", str(dump), *more, text=text).split())


@pytest.mark.parametrize("command", ["victims", "whatif"])
def test_before_a_gang_is_created_one_learns_how_many_of_it_fit(nodes: Path, command: str) -> None:
    assert WAITS in printed(command, nodes, *gang(5))
    assert "PodGroup default/train would be scheduled as a whole" in printed(command, nodes, *gang(4))


def test_victims_names_those_of_the_whole_gang(tmp_path: Path) -> None:
    low = [running(number, name, -1) for number, name in enumerate("aabb")]

    output = printed("victims", dump(tmp_path, *low), *gang(3))

    assert "It would evict 3 pods:" in output
    assert sum(f"default/low-{number} " in output for number in range(4)) == 3


def test_a_job_set_and_a_list_of_jobs_are_groups_as_well(nodes: Path) -> None:
    def job(name: str, pods: int) -> dict[str, Any]:
        spec = {**member(0)["spec"], "restartPolicy": "Never"}
        return {"kind": "Job", "metadata": {"name": name}, "spec": {"parallelism": pods, "template": {"spec": spec}}}

    group = gang(5)[0]
    jobs = [job("train-leader-0", 1), job("train-worker-0", 2), job("train-worker-1", 2)]
    replicated = [
        {"name": name, "replicas": number, "template": {"spec": single_job["spec"]}}
        for name, number, single_job in (("leader", 1, jobs[0]), ("worker", 2, jobs[1]))
    ]
    job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}}
    job_set["spec"] = {"replicatedJobs": replicated}
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [group, *({"apiVersion": "batch/v1", **single_job} for single_job in jobs)],
    }

    for command in ("victims", "whatif"):
        assert printed(command, nodes, listed).count(WAITS) == 1
        assert printed(command, nodes, group, job_set).count(WAITS) == 1
    more = ("--priority-class", "high", "-o", "json")
    answer = json.loads(printed("whatif", nodes, priority_class("high", 7), group, job_set, more=more))
    assert {placement["pod"]["priority"] for placement in answer["placements"]} == {7}


def room_by_one_victim_or_two() -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """Running pods, two small ones of the lowest priority on one node and a large one on the other; a group that asks
    for the fewest victims, and its pods.
    """
    low = [running(0, "a", -3), running(1, "a", -2), running(2, "b", -1, cpu="4")]
    group, *pods = gang(2)
    group["metadata"]["annotations"] = {"reprieve.dev/minimal-victims": "true"}
    return low, group, pods


def test_victims_says_what_asking_for_the_fewest_saves(tmp_path: Path) -> None:
    low, group, pods = room_by_one_victim_or_two()
    file = dump(tmp_path, *low)

    output = printed("victims", file, group, *pods)
    answer = json.loads(printed("whatif", file, group, *pods, more=("-o", "json")))

    assert "would be scheduled as a whole; it evicts 1 pod, where kube-scheduler alone would evict 2" in output
    assert "default/low-2 " in output
    assert [victim["pod"]["name"] for victim in answer["groups"][0]["evicts"]] == ["low-2"]
    assert {victim["pod"]["name"] for victim in answer["groups"][0]["withoutPolicies"]} == {"low-0", "low-1"}


@pytest.mark.parametrize("command", ["victims", "whatif"])
def test_malformed_annotation_for_minimal_victims_is_reported_as_ignored(tmp_path: Path, command: str) -> None:
    low, group, pods = room_by_one_victim_or_two()
    group["metadata"]["annotations"] = {"reprieve.dev/minimal-victims": "soon"}

    output = printed(command, dump(tmp_path, *low), group, *pods)

    assert 'the annotation reprieve.dev/minimal-victims is ignored: "soon" is neither true nor false' in output


def test_victims_of_a_group_are_recorded_once_under_its_first_member(tmp_path: Path) -> None:
    low, group, pods = room_by_one_victim_or_two()
    with serving(state=dump(tmp_path, *low, group, *pods), feature_gates=GATES) as service:
        until(
            lambda: all(
                item["spec"].get("nodeName")
                for item in service.client.get("/api/v1/namespaces/default/pods").json()["items"]
            )
        )
        (preemption,) = service.client.get("/v1/preemptions").json()["items"]
        output = reprieve("who-preempted", "default/low-2", "--server", str(service.client.base_url))

    assert preemption["by"]["name"] in ("train-0", "train-1")
    assert (preemption["node"], preemption["outcome"]) == ("", "told")
    assert [victim["pod"]["name"] for victim in preemption["victims"]] == ["low-2"]
    assert {victim["pod"]["name"] for victim in preemption["withoutPolicies"]["victims"]} == {"low-0", "low-1"}
    assert f"preempted for default/{preemption['by']['name']}" in output
    assert "kube-scheduler alone would evict default/low-1, default/low-0, and lose" in " ".join(output.split())


@pytest.mark.parametrize(("topology_key", "fit"), [("", 2), ("example.com/rack", 1)])
def test_fits_counts_gangs(tmp_path: Path, topology_key: str, fit: int) -> None:
    nodes = [node(name, cpu, labels={"example.com/rack": name[0]}) for name, cpu in (("a1", "8"), ("b1", "4"))]
    group = pod_group("train", 3, topology_key=topology_key)
    file = state_file(tmp_path / "racks.json", *nodes)

    output = reprieve("fits", "-f", "-", "--dump", str(file), text=yaml.safe_dump_all([group, member(0)]))

    assert output.splitlines()[:2] == ["6 pods fit on 2 nodes", f"{fit} gang{'' if fit == 1 else 's'} of 3 fit"]


def test_why_lists_the_members(tmp_path: Path) -> None:
    output = reprieve("why", "default/train-0", "--dump", str(dump(tmp_path, *gang(5))))

    assert "Pod group train: 4 of 5 pods fit" in output
    assert all(f"default/train-{number} " in output for number in range(5))


def test_the_page_of_a_pod_shows_its_gang(waiting: Service) -> None:
    page = waiting.client.get("/ui/pods/default/train-0").text

    assert "Pod group train" in page
    assert "4 of 5 pods fit, at least 5 must" in page
    assert all(f"train-{number}" in page for number in range(5))


def test_the_page_of_a_what_if_shows_the_group(waiting: Service) -> None:
    pods = [pod_group("later", 2), *(member(number, schedulingGroup={"podGroupName": "later"}) for number in (6, 7))]
    page = waiting.post("/ui/what-if", {"manifest": yaml.safe_dump_all(pods), "by": "cpu"}).text

    assert "Pod groups" in page
    assert "PodGroup default/later would be scheduled as a whole" in page
