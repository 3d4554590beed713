"""The commands and pages about pod groups: of a dump, and of a service that runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app
from tests.api.serving import Service, serving
from tests.api.test_questions import until
from tests.stories.scenery import GROUP_GATES, pod_group

GATES = ",".join(f"{name}=true" for name in GROUP_GATES)


def member(number: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": "train"}, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"train-{number}", "namespace": "default"}, "spec": spec}


def gang(size: int) -> list[dict[str, Any]]:
    group = pod_group("train", size)
    group["metadata"]["namespace"] = "default"
    return [group, *map(member, range(size))]


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two nodes, each with room for two members, in a dump."""
    return dump(tmp_path)


def dump(folder: Path, *further: dict[str, Any]) -> Path:
    made = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
        for name in "ab"
    ]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [*made, *further]}))
    return file


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
    return CliRunner(env={"REPRIEVE_FEATURE_GATES": GATES}).invoke(app, [*arguments], input=text, catch_exceptions=False).stdout


@pytest.mark.parametrize("command", ["victims", "whatif"])
def test_before_a_gang_is_created_one_learns_how_many_of_it_fit(nodes: Path, command: str) -> None:
    told = reprieve(command, "-f", "-", "--dump", str(nodes), text=yaml.safe_dump_all(gang(5)))
    assert "PodGroup default/train would wait: 4 of 5 pods fit (the gang needs 5)" in " ".join(told.split())

    told = reprieve(command, "-f", "-", "--dump", str(nodes), text=yaml.safe_dump_all(gang(4)))
    assert "PodGroup default/train would be scheduled as a whole" in told


def test_victims_names_those_of_the_whole_gang(tmp_path: Path) -> None:
    low = [member(number, nodeName=name, priority=-1, schedulingGroup=None) for number, name in enumerate("aabb")]
    for pod in low:
        pod["metadata"]["name"] = pod["metadata"]["name"].replace("train", "low")
    told = reprieve("victims", "-f", "-", "--dump", str(dump(tmp_path, *low)), text=yaml.safe_dump_all(gang(3)))

    assert "It would evict 3 pods:" in told
    assert sum(f"default/low-{number} " in told for number in range(4)) == 3


@pytest.mark.parametrize(("topology_key", "fit"), [("", 2), ("example.com/rack", 1)])
def test_fits_counts_gangs(tmp_path: Path, topology_key: str, fit: int) -> None:
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"example.com/rack": name[0]}}, "status": status}
        for name, status in (("a1", {"allocatable": {"cpu": "8", "pods": "9"}}), ("b1", {"allocatable": {"cpu": "4", "pods": "9"}}))
    ]
    file = tmp_path / "racks.json"
    file.write_text(json.dumps({"kind": "List", "items": nodes}))
    told = reprieve(
        "fits", "-f", "-", "--dump", str(file), text=yaml.safe_dump_all([pod_group("train", 3, topology_key=topology_key), member(0)])
    )

    assert told.splitlines()[:2] == ["6 pods fit on 2 nodes", f"{fit} gang{'' if fit == 1 else 's'} of 3 fit"]


def test_why_lists_the_members(tmp_path: Path) -> None:
    told = reprieve("why", "default/train-0", "--dump", str(dump(tmp_path, *gang(5))))

    assert "Pod group train: 4 of 5 pods fit" in told
    assert all(f"default/train-{number} " in told for number in range(5))


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
