"""What was decided is known after a restart, if there is a file for it."""

from pathlib import Path

import pytest

from api.settings.settings import Settings
from api.starting import prepare
from reprieve.errors import StartUpError
from tests.api.in_process import reprieve
from tests.api.test_questions import PREEMPTED, get
from tests.kit.service import serving
from tests.kit.waiting import until


def test_preemptions_outlive_the_service(dump: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    with serving(state=dump, records=records) as service:
        until(lambda: service.client.get("/v1/preemptions").json().get("items"))
        until(lambda: get(service, "/v1/preemptions")["items"][0]["outcome"] == "told")
        before = get(service, "/v1/preemptions", pod=PREEMPTED)
        decided = get(service, "/v1/decisions")["items"]

    with serving(state=dump, records=records, schedule=False) as service:
        assert get(service, "/v1/preemptions", pod=PREEMPTED) == before
        assert [item["id"] for item in get(service, "/v1/decisions")["items"]] == [item["id"] for item in decided]
        steps = get(service, f"/v1/explain/{PREEMPTED}")["story"]["steps"]
        assert before["items"][0] in [step["preemption"] for step in steps]


def test_calls_of_others_are_marked_and_displace_no_decision(dump: Path) -> None:
    """Anyone who reaches an open service may ask about any pod, under any name and UID."""
    with serving(state=dump) as service:
        until(lambda: service.client.get("/v1/preemptions").json().get("items"))
        before = [item["id"] for item in get(service, "/v1/decisions")["items"]]
        forged = {
            "metadata": {"name": "forged", "namespace": "default", "uid": "forged"},
            "spec": {"containers": [{"name": "c"}]},
        }
        for number in range(100):
            pod = forged | {"metadata": {"name": f"forged-{number}", "namespace": "default", "uid": f"{number}"}}
            assert service.call("filter", {"Pod": pod, "NodeNames": ["n1"]}).status_code == 200
        service.call("filter", {"Pod": forged, "NodeNames": ["n1"]})
        attempts = get(service, "/v1/explain/default/forged")["attempts"]
        decisions = get(service, "/v1/decisions", limit="1000")["items"]

        assert [attempt["caller"] for attempt in attempts] == ["anonymous at 127.0.0.1"]
        assert {item["id"] for item in decisions if not item["caller"]} >= set(before)
        assert sum(bool(item["caller"]) for item in decisions) == 101
        assert "asked by anonymous at 127.0.0.1" in service.client.get("/ui/history").text
        assert "anonymous at 127.0.0.1" in service.client.get("/ui/pods/default/forged").text


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="choose another --records"):
        prepare(Settings(records=tmp_path / "nowhere" / "records.jsonl"))


def test_reviewed_access_is_refused_for_the_embedded_cluster(tmp_path: Path) -> None:
    result = reprieve("serve", "--access", "reviewed", "--port", "0", "--kubernetes-port", "0")

    assert result.returncode == 2
    assert "callers of the embedded cluster are known by client certificates only" in result.stderr.decode()
