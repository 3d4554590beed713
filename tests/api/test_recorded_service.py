"""A service that records: what it decided is decided again by `reprieve replay`, and asked about by other commands."""

import json
from pathlib import Path

import pytest

from api.settings.settings import EXAMPLE_CLUSTER, Settings
from api.starting import prepare
from extender.rules.state_file import load_state
from reprieve.errors import StartUpError
from tests.api.in_process import reprieve
from tests.api.test_questions import get
from tests.kit.objects import pod, state_file
from tests.kit.service import serving
from tests.kit.waiting import until

PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


SMALL = {f"small-{number}" for number in range(6)}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example cluster, with pods that fit on several nodes."""
    folder = tmp_path_factory.mktemp("recording")
    small = [pod(name, "50m") for name in SMALL]
    for small_pod in small:
        small_pod["metadata"]["namespace"] = "default"
    state, file = folder / "state.json", folder / "example.recording"
    state_file(state, *load_state(EXAMPLE_CLUSTER), *small)
    with serving(state=state, record=file) as service:
        until(
            lambda: (
                len({item["pod"]["name"] for item in get(service, "/v1/decisions", limit="1000")["items"]} & SMALL)
                == len(SMALL)
            )
        )
    return file


def test_the_example_cluster_is_decided_identically(recording: Path) -> None:
    done = reprieve("replay", str(recording))

    assert (done.returncode, done.stderr) == (0, b"")
    assert " the same, 0 different" in done.stdout.decode()


def test_another_weight_names_the_pods_that_go_elsewhere(recording: Path, tmp_path: Path) -> None:
    other = tmp_path / "packing.yaml"
    other.write_text(PACKING)

    done = reprieve("replay", str(recording), "--config", str(other), "-o", "json")

    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["same"] + report["different"] == report["decisions"]
    assert {difference["pod"] for difference in report["differences"]} & {f"default/{name}" for name in SMALL}
    assert "default/small-" in reprieve("replay", str(recording), "--config", str(other)).stdout.decode()


def test_a_recording_is_simulated_and_asked_about(recording: Path) -> None:
    played = reprieve("simulate", str(recording), "-o", "json")
    early = reprieve("why", "shop/web-6", "--dump", str(recording), "--at", "1ms")
    drained = reprieve("whatif", "--dump", str(recording), "--drain", "node-a1")

    assert json.loads(played.stdout)["pods"] >= 8
    assert early.returncode == 1 and b"there is no pod shop/web-6" in early.stderr
    assert drained.returncode == 0 and b"would be evicted" in drained.stdout


def test_service_that_does_not_schedule_records_changes_only(tmp_path: Path) -> None:
    file = tmp_path / "answers.recording"
    with serving(record=file, schedule=False) as service:
        assert service.client.get("/readyz").status_code == 200

    done = reprieve("replay", str(file))

    assert done.returncode == 0
    assert b"the recording has no decisions" in done.stdout
    assert reprieve("whatif", "--dump", str(file), "--drain", "node-a1").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["replay", "README.md"], "not a recording"),
        (["replay", "nowhere"], "no such file or directory"),
        (["whatif", "--pending", "--at", "1s"], "give one with --dump"),
        (["whatif", "--pending", "--dump", "api/examples/cluster.yaml", "--at", "1s"], "is not a recording"),
    ],
)
def test_unusable_recording_is_refused_in_one_line(arguments: list[str], why: str) -> None:
    done = reprieve(*arguments)

    assert (done.returncode, done.stdout) == (2, b"")
    assert why in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_a_folder_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="choose another --record"):
        prepare(Settings(record=tmp_path / "nowhere" / "r"))
