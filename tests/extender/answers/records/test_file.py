"""Who preempted whom is known after a restart, whatever happened to the file meanwhile."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from extender.answers.parts import PodName, Victim
from extender.answers.records.file import RecordsFile, RecordsFileError, kept_in
from extender.answers.records.record_store import AttemptRecord, CandidateRecord, Limits, PreemptionRecord
from extender.answers.records.records import Records
from extender.engine.queue import QueuedPodInfo
from extender.engine.reporter import VerbCall
from extender.testing import make_node, make_pod
from extender.values import limits
from tests.extender.answers.records.test_record_store import attempt, preemption
from tests.kit.told_scheduler import NOON, ToldScheduler


async def a_preemption(records: Records, victim: str = "low") -> None:
    scheduling = ToldScheduler(records)
    scheduling.comes(
        make_node("n").capacity(cpu=2, pods=10),
        make_pod(victim).uid(f"uid-{victim}").req(cpu=2).node("n"),
        make_pod(f"above-{victim}").uid(f"uid-above-{victim}").req(cpu=2).priority(9),
    )
    await scheduling.decides()


def decided(records: Records, name: str) -> None:
    records.decided(QueuedPodInfo(make_pod(name).uid(name).obj(), 0.0), "default-scheduler", "n", 1, 1, 0.001)


def read(path: Path) -> list[object]:
    return [*RecordsFile(path).read()]


async def test_records_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "records"

    async with kept_in(path, now=NOON.timestamp) as records:
        await a_preemption(records)
        (before,), attempts = records.preemptions(), [attempt.record for attempt in records.attempts()]
    async with kept_in(path) as restored:
        assert restored.who_preempted("default/low") == before
        assert [attempt.record for attempt in restored.attempts()] == attempts
        assert next(restored.attempts()).preemption == before
        decided(restored, "later")
        assert next(restored.attempts()).record.id == attempts[0].id + 1


async def test_records_are_written_while_the_service_runs(tmp_path: Path) -> None:
    path = tmp_path / "records"

    async with kept_in(path) as records:
        decided(records, "p")
        assert read(path) == []
        await asyncio.sleep(1.5)

        (record,) = read(path)
        assert record == next(records.attempts()).record


async def test_lines_that_are_not_whole_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A crash tore the last one; what comes next begins a line of its own."""
    path = tmp_path / "records"
    caplog.set_level(logging.INFO, "extender.answers.records.file")
    async with kept_in(path) as records:
        decided(records, "first")
        decided(records, "torn")
    path.write_bytes(b"nonsense\n[1]\n\n" + path.read_bytes()[:-20])
    async with kept_in(path) as records:
        assert [attempt.record.pod.name for attempt in records.attempts()] == ["first"]
        decided(records, "next")
    async with kept_in(path) as records:
        assert [attempt.record.pod.name for attempt in records.attempts()] == ["next", "first"]

    assert "Incomplete lines of the records file were skipped" in caplog.text


async def test_a_file_that_is_too_long_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From what is still kept; preemptions are kept longer than attempts."""
    path = tmp_path / "records"

    monkeypatch.setattr(limits, "RECORDS_FILE_BYTES", 20_000)
    async with kept_in(path) as records:
        await a_preemption(records)
        for second in range(20):
            for number in range(20):
                decided(records, f"pod-{second}-{number}")
            await asyncio.sleep(1)
            assert path.stat().st_size <= 25_000
    async with kept_in(path) as records:
        assert records.who_preempted("default/low") is not None
        newest = [attempt.record.pod.name for attempt in records.attempts()][:3]
        assert newest == ["pod-19-19", "pod-19-18", "pod-19-17"]

    assert os.listdir(tmp_path) == ["records"]


async def test_calls_are_dropped_first_when_the_file_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may call the verbs could push out everything else."""
    path = tmp_path / "records"
    call = VerbCall(make_pod("asked").uid("asked").obj(), "default-scheduler", 1, 0.001, "anonymous at 10.0.0.9")

    monkeypatch.setattr(limits, "RECORDS_FILE_BYTES", 20_000)
    async with kept_in(path) as records:
        for number in range(20):
            decided(records, f"pod-{number}")
        for _ in range(20):
            for _ in range(20):
                records.call_failed(call, "no such node")
            await asyncio.sleep(1)
    async with kept_in(path) as records:
        entries = [attempt.record for attempt in records.attempts()]
        assert [record.pod.name for record in entries if not record.caller] == [f"pod-{n}" for n in range(19, -1, -1)]
        assert 0 < sum(bool(record.caller) for record in entries) < 400


async def test_temporary_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "records"
    (tmp_path / ".records.4711.tmp").write_bytes(b"half of a rec")
    (tmp_path / ".records.bak.4711.tmp").touch()

    async with kept_in(path):
        pass

    assert sorted(os.listdir(tmp_path)) == [".records.bak.4711.tmp", "records"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is a device of Linux")
async def test_a_disk_that_is_full_does_not_end_the_service(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What it refused is written once there is room; the refusal is said once."""
    path = tmp_path / "records"
    caplog.set_level(logging.ERROR, "extender.answers.records.file")
    async with kept_in(path) as records:
        path.unlink()
        path.symlink_to("/dev/full")
        for number in range(3):
            decided(records, f"p{number}")
            await asyncio.sleep(2)
        path.unlink()
        await asyncio.sleep(2)

        assert [record.pod.name for record in read(path)] == ["p0", "p1", "p2"]  # type: ignore[attr-defined]

    assert caplog.text.count("Records cannot be written") == 1


@pytest.mark.parametrize("place", ["folder", "missing/records"])
def test_a_file_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / place

    with pytest.raises(RecordsFileError, match=rf"^records file {path}: "):
        RecordsFile(path).read()


def test_last_of_several_versions_of_a_record_counts() -> None:
    records = Records()
    records.restore(
        [attempt(7, "p", "old"), preemption(7, "a"), attempt(3), attempt(7, "p", "new"), preemption(7, "a", "b")]
    )

    newest, oldest = records.attempts()
    assert (newest.record.message, oldest.record.id) == ("new", 3)
    assert newest.preemption == preemption(7, "a", "b")
    assert records.who_preempted("default/b") is not None


def test_more_than_may_be_kept_is_not_restored() -> None:
    records = Records(Limits(attempts=2))
    records.restore(attempt(number) for number in range(1, 6))

    assert [attempt.record.id for attempt in records.attempts()] == [5, 4]


def test_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """It names pods of all namespaces."""
    path = tmp_path / "records"
    RecordsFile(path).read()

    assert os.stat(path).st_mode & 0o077 == 0


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They have a number of victims in each candidate, and leave out what is empty."""
    path = tmp_path / "records"
    path.write_text(
        '{"type":"attempt","id":7,"time":12.5,"pod":{"namespace":"shop","name":"high","uid":"u","priority":9},"profile":"p",'
        '"outcome":"Unschedulable","number":1,"message":"0/2 nodes are available"}\n'
        '{"type":"preemption","id":7,"time":12.5,"by":{"namespace":"shop","name":"high","uid":"u","priority":9},"node":"a",'
        '"victims":[{"pod":{"namespace":"shop","name":"low"},"owner":"Job/work","cpu":1000}],"candidates":[{"node":"a",'
        '"victims":[{"pod":{"namespace":"shop","name":"low"},"owner":"Job/work","cpu":1000}],"numVictims":1,"numPdbViolations":0,'
        '"costs":[0,0,2147483648,1,0]}],"numCandidates":2,"outcome":"told"}\n'
    )
    low = Victim(PodName("shop", "low"), owner="Job/work", cpu=1000)

    attempt, preemption = RecordsFile(path).read()

    assert isinstance(attempt, AttemptRecord) and isinstance(preemption, PreemptionRecord)
    assert (attempt.pod, attempt.message) == (PodName("shop", "high", "u", 9), "0/2 nodes are available")
    assert preemption.victims == (low,)
    assert preemption.candidates == (CandidateRecord("a", (low,), 0, costs=(0, 0, 2**31, 1, 0)),)
    assert (preemption.num_candidates, preemption.outcome) == (2, "told")
