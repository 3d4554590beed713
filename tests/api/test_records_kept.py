"""What was decided is known after a restart, if there is a file for it."""

from pathlib import Path

import pytest

from api.fatal_errors import StartUpError
from api.settings.settings import Settings
from api.starting import prepare
from tests.api.in_process import reprieve
from tests.api.serving import serving
from tests.api.test_questions import PREEMPTED, get, until
from tests.api.test_questions import state as state  # noqa: PLC0414 - a fixture


def test_preemptions_outlive_the_service(state: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    with serving(state=state, records=records) as service:
        until(lambda: service.client.get("/v1/preemptions").json().get("items"))
        until(lambda: get(service, "/v1/preemptions")["items"][0]["outcome"] == "told")
        before = get(service, "/v1/preemptions", pod=PREEMPTED)
        decided = get(service, "/v1/decisions")["items"]

    with serving(state=state, records=records, schedule=False) as service:
        assert get(service, "/v1/preemptions", pod=PREEMPTED) == before
        assert [item["id"] for item in get(service, "/v1/decisions")["items"]] == [item["id"] for item in decided]
        assert get(service, f"/v1/explain/{PREEMPTED}")["preemptedBy"] == before["items"][0]


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="choose another --records"):
        prepare(Settings(records=tmp_path / "nowhere" / "records.jsonl"))


def test_our_own_cluster_has_nobody_to_review(tmp_path: Path) -> None:
    result = reprieve("serve", "--access", "reviewed", "--port", "0", "--kubernetes-port", "0")

    assert result.returncode == 1
    assert "the embedded cluster has no users" in result.stderr.decode()
