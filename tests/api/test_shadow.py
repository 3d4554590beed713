"""A service with a shadow says how far its configuration agrees with the scheduler of the cluster: to programs, people
and Prometheus.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.settings.settings import Settings
from api.starting import prepare
from reprieve.errors import StartUpError
from tests.api.in_process import reprieve
from tests.api.test_following import readiness
from tests.api.test_questions import get
from tests.api.test_recorded_service import PACKING
from tests.kit.objects import pod
from tests.kit.service import Service, kubeconfig_for, serving
from tests.kit.waiting import until, until_at_rest

EXTENDERS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:1/", filterVerb: filter}]
"""


def create(service: Service, name: str, cpu: str = "100m") -> None:
    answer = service.post("/api/v1/namespaces/default/pods", pod(name, cpu))
    assert answer.status_code == 201, answer.text


def place(service: Service, *names: str) -> None:
    """Creates pods, each after the one before has its node."""
    for name in names:
        create(service, name)
        until(lambda name=name: get(service, f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName"))  # type: ignore[misc]


@pytest.fixture(scope="module")
def packing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("configuration") / "packing.yaml"
    path.write_text(PACKING)
    return path


@pytest.fixture(scope="module")
def two(packing: Path) -> Iterator[Service]:
    """Two configurations of ours: the default one decides, the other one is in its shadow."""
    with serving(shadow_config=packing) as service:
        place(service, *(f"web-{number}" for number in range(6)))
        until(lambda: get(service, "/v1/agreement")["costs"]["waiting"] == 0)
        yield service


def test_two_configurations_of_ours_are_compared(two: Service, packing: Path) -> None:
    answer = get(two, "/v1/agreement")

    assert answer["configuration"] == str(packing)
    assert answer["total"]["decisions"] >= 6
    assert (
        answer["total"]["different"] + answer["total"]["unclear"]
        == sum(answer["byKind"].values()) - answer["byKind"].get("spared", 0)
        > 0
    )
    assert {row["plugin"] for row in answer["differences"] if row["kind"] == "elsewhere"} == {"NodeResourcesFit"}
    assert {share["name"] for share in answer["byPlugin"]} >= {"NodeResourcesFit", "TaintToleration"}
    assert answer["costs"]["seconds"] > 0
    assert len(get(two, "/v1/agreement", limit="1")["differences"]) == 1


def test_metrics_count_the_same(two: Service) -> None:
    text, total = two.client.get("/metrics").text, get(two, "/v1/agreement")["total"]

    assert f'reprieve_shadow_decisions_total{{result="same"}} {float(total["same"])}' in text
    assert 'reprieve_shadow_differences_total{kind="elsewhere",plugin="NodeResourcesFit"}' in text
    assert "reprieve_shadow_behind_seconds 0.0" in text


def test_the_report_is_a_table_for_people(two: Service) -> None:
    server = f"http://127.0.0.1:{two.port}"

    done = reprieve("shadow", "report", "--server", server)
    strict = reprieve("shadow", "report", "--server", server, "--at-least", "100", "-o", "json")

    output = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "clear decisions agree" in output and "NodeResourcesFit gives" in output and "of CPU time" in output
    assert strict.returncode == int(json.loads(strict.stdout)["total"]["agreement"] < 1)


def test_the_cluster_of_another_scheduler_is_followed(tmp_path: Path) -> None:
    with (
        serving() as deciding,
        serving(kubeconfig=kubeconfig_for(deciding.port, tmp_path), access="open", shadow=True) as shadow,
    ):
        until(lambda: readiness(shadow) == 200)
        place(deciding, "a", "b", "c", "d")
        until(lambda: get(shadow, "/v1/agreement")["total"]["decisions"] >= 4)
        answer = get(shadow, "/v1/agreement")

    assert answer["total"]["different"] == 0 and answer["total"]["agreement"] == 1
    assert answer["configuration"] == "default"


def test_a_command_follows_a_cluster_and_reports(tmp_path: Path) -> None:
    with serving() as deciding:
        done = reprieve(
            "shadow", "run", "--kubeconfig", str(kubeconfig_for(deciding.port, tmp_path)), "--for", "2s", "-o", "json"
        )

    assert done.returncode == 0, done.stderr
    assert done.stderr.decode() == "following the cluster for 2 s\n"
    assert json.loads(done.stdout)["total"]["different"] == 0


def test_a_recording_is_reported_on(tmp_path: Path, packing: Path) -> None:
    file = tmp_path / "example.recording"
    with serving(record=file) as service:
        place(service, *(f"web-{number}" for number in range(4)))
        until_at_rest(f"http://127.0.0.1:{service.port}")  # its watch may be behind what the API shows

    same = reprieve("shadow", "report", str(file), "-o", "json")
    other = reprieve("shadow", "report", str(file), "--config", str(packing), "-o", "json")

    assert json.loads(same.stdout)["total"]["different"] == 0 and json.loads(same.stdout)["total"]["decisions"] >= 4
    assert json.loads(other.stdout)["byKind"].get("elsewhere", 0) > 0


def test_without_a_shadow_the_answer_says_how_to_get_one(example: Service) -> None:
    answer = get(example, "/v1/agreement", code=404)
    done = reprieve("shadow", "report", "--server", f"http://127.0.0.1:{example.port}")

    assert answer["message"] == "no decisions are compared: start the service with --shadow"
    assert done.returncode == 2 and b"the service has no shadow: start it with --shadow" in done.stderr


def test_extenders_cannot_be_shadowed(tmp_path: Path) -> None:
    path = tmp_path / "extenders.yaml"
    path.write_text(EXTENDERS)

    with pytest.raises(StartUpError, match="names extenders, which a shadow does not call"):
        prepare(Settings(shadow_config=path))


@pytest.mark.parametrize("duration", ["soon", "10"])
def test_a_duration_has_a_unit(duration: str) -> None:
    done = reprieve("shadow", "run", "--for", duration)

    assert done.returncode == 2 and b"give a duration such as 90s or 24h" in done.stderr


def test_the_page_shows_the_same(two: Service, example: Service) -> None:
    page, total = two.client.get("/ui/agreement").text, get(two, "/v1/agreement")["total"]

    assert f"{total['different']} different" in page
    assert "NodeResourcesFit gives" in page and "default/web-" in page
    assert 'href="/ui/agreement"' in two.client.get("/").text
    assert 'href="/ui/agreement"' not in example.client.get("/").text
    assert "start the service with --shadow" in example.client.get("/ui/agreement").text
