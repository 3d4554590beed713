"""A recording takes as much of the disk as it may, says when the disk takes no more, and leaves out what is not to be
known.
"""

import asyncio
import gzip
import logging
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from extender.rules.api_resources import PODS
from extender.testing import virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab import limits
from reprieve.lab.recordings.entries import ObjectPut, RecordedAttempt, Recording, is_recording
from reprieve.lab.recordings.recorder import Recorder
from reprieve.lab.recordings.recording_file import RETRY_EVERY, RecordingFileError, recorded_in
from reprieve.lab.simulation.replaying import replay
from tests.reprieve.lab.recordings.recorded_cluster import NODES, a_recorded_cluster, create, record


async def pods_come_and_go(cluster: ObjectRegistry, number: int = 60) -> None:
    for index in range(number):
        create(cluster, f"pod-{index}", "500m")
        await asyncio.sleep(0.5)
        if index >= 20:
            cluster.delete(PODS, "default", f"pod-{index - 20}")


def text_of(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode()


@pytest.mark.slow
def test_files_are_rotated_within_their_bytes_and_each_stands_for_itself(tmp_path: Path) -> None:
    file = record(tmp_path / "r", lambda cluster: pods_come_and_go(cluster, 400), *NODES, max_bytes=64 * 1024)

    files = [file, *(tmp_path / f"r.{number}" for number in (1, 2, 3))]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert sum(path.stat().st_size for path in files) < 2 * 64 * 1024
    for path in files:
        recording = Recording(path)
        report = replay(recording, recording.configuration)
        assert (report.different, report.not_decided) == (0, 0) and report.same > 0, path
    attempts = [
        entry.seconds
        for path in reversed(files)
        for entry in Recording(path).entries()
        if isinstance(entry, RecordedAttempt)
    ]
    assert attempts == sorted(attempts) and len({*attempts}) == len(attempts)


def test_an_older_recording_is_kept(tmp_path: Path) -> None:
    record(tmp_path / "r", lambda cluster: pods_come_and_go(cluster, 2), *NODES)
    before = (tmp_path / "r").read_bytes()

    record(tmp_path / "r", lambda cluster: pods_come_and_go(cluster, 3), *NODES)

    assert (tmp_path / "r.1").read_bytes() == before
    assert is_recording(tmp_path / "r")
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o600


@contextmanager
def a_full_disk(after: int) -> Iterator[None]:
    """No file of the process may become longer than this, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_stops_the_recording_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pods are scheduled as before, the log says that nothing is recorded, and a new file is begun when there is room
    again.
    """
    caplog.set_level(logging.INFO)
    file = tmp_path / "r"
    placed: list[bool] = []

    async def tell() -> None:
        async with a_recorded_cluster(file, *NODES) as cluster:
            await asyncio.sleep(2)
            with a_full_disk(after=file.stat().st_size + 100):
                for number in range(20):
                    create(cluster, f"pod-{number}", "500m")
                await asyncio.sleep(5)
                placed.extend(
                    "nodeName" in cluster.get(PODS, "default", f"pod-{number}")["spec"] for number in range(20)
                )
            await asyncio.sleep(2 * RETRY_EVERY)
            create(cluster, "later")
            await asyncio.sleep(2)

    virtual_time.run(tell())

    assert placed == [True] * 20
    assert "The recording has stopped, and will be tried again; scheduling continues" in caplog.text
    assert "The recording continues in a new file" in caplog.text
    recording = Recording(file)
    report = replay(recording, recording.configuration)
    assert (report.same, report.different) == (1, 0)
    assert (
        len(
            {
                entry.object["metadata"]["name"]
                for entry in recording.entries()
                if isinstance(entry, ObjectPut) and entry.kind == "Pod"
            }
        )
        == 21
    )


def test_a_disk_that_is_slow_costs_bounded_memory() -> None:
    """Beyond a number of entries that wait, the recorder keeps none, until a new file begins with the cluster as it is
    then.
    """
    recorder = Recorder(lambda: 0.0)
    node = convert(Node, NODES[0])
    for _ in range(limits.RECORDED_ENTRIES + 10):
        recorder.changed(None, node)

    assert not recorder.is_on
    assert recorder.take() == []
    assert recorder.lost == limits.RECORDED_ENTRIES + 10


def test_unwritable_path_fails_the_start_with_the_reason(tmp_path: Path) -> None:
    async def tell() -> None:
        async with recorded_in(tmp_path / "nowhere" / "r", Configuration()):
            pass

    with pytest.raises(RecordingFileError, match="no such file or directory"):
        virtual_time.run(tell())


def test_annotations_of_applications_are_left_out_and_the_rest_is_not(tmp_path: Path) -> None:
    text = text_of(record(tmp_path / "r", lambda cluster: pods_come_and_go(cluster, 2), *NODES))

    assert "hush-hush" not in text and "pod-1" in text
    assert "hush-hush" in text_of(
        record(tmp_path / "all", lambda cluster: pods_come_and_go(cluster, 2), *NODES, redacts="nothing")
    )


def test_names_are_replaced_and_decisions_stay_what_they_were(tmp_path: Path) -> None:
    async def tell(cluster: ObjectRegistry) -> None:
        selector = {"matchLabels": {"app": "billing"}}
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        apart = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["billing"]}]},
        }
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        for number in range(12):
            create(
                cluster,
                f"billing-{number}",
                labels={"app": "billing"},
                topologySpreadConstraints=[spread],
                affinity=affinity,
            )
            await asyncio.sleep(0.5)

    file = record(tmp_path / "r", tell, *NODES, redacts="names")

    recording = Recording(file)
    report = replay(recording, recording.configuration)
    assert "billing" not in text_of(file)
    assert "n3" in text_of(file)
    assert (report.different, report.not_decided) == (0, 0) and report.same >= 12
    refused = [entry for entry in recording.entries() if isinstance(entry, RecordedAttempt) and not entry.node]
    assert refused and {entry.message for entry in refused} == {""}


def test_what_waits_for_a_thread_when_the_recording_ends_is_written(tmp_path: Path) -> None:
    async def tell() -> None:
        is_free = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        async with recorded_in(tmp_path / "r", Configuration(), every=0.01) as tap:
            loop.run_in_executor(None, is_free.wait, 10)
            tap.changed(None, convert(Node, {"metadata": {"name": "n"}}))
            await asyncio.sleep(0.1)
            loop.call_later(0.1, is_free.set)
        is_free.set()

    asyncio.run(tell())

    assert [entry.kind for entry in Recording(tmp_path / "r").entries() if isinstance(entry, ObjectPut)] == ["Node"]
