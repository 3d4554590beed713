"""What was recorded is decided again: identically with the same configuration, and with another one where that makes a
difference.
"""

import asyncio
import gzip
from pathlib import Path

import msgspec
import pytest

from extender.rules.api_resources import NODES as NODE_RESOURCE, PODS, Object
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab.recordings.entries import RecordedAttempt, Recording, RecordingError
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.replaying import ReplayReport, replay
from reprieve.lab.simulation.sweeping import read_workloads
from tests.kit.objects import node, priority_class
from tests.kit.storage_objects import DATA, NOT_PROVISIONED, WITH_DATA, local_volume
from tests.reprieve.lab.recordings.recorded_cluster import NODES, create, record

PACKING = load(
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: "
    "NodeResourcesFit,"
    " args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]}]"
)


URGENT: Object = priority_class("urgent", 1000)


async def a_busy_day(cluster: ObjectRegistry) -> None:
    """Equal nodes, so that chance decides; pods that are evicted, deleted and refused; nodes that come and go."""
    for number in range(30):
        create(cluster, f"web-{number}", "500m", labels={"app": f"app-{number % 3}"})
        if number % 6 == 5:
            await asyncio.sleep(1)
            cluster.delete(PODS, "default", f"web-{number - 2}")
    cluster.delete(NODE_RESOURCE, "", "n4")
    for number in range(9):
        create(cluster, f"urgent-{number}", "3", priorityClassName="urgent")
    await asyncio.sleep(20)
    create(cluster, "too-large", "100")
    await asyncio.sleep(400)


def replayed(file: Path, configuration: Configuration | None = None) -> ReplayReport:
    recording = Recording(file)
    return replay(recording, configuration or recording.configuration)


@pytest.fixture(scope="module")
def busy_day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded") / "day.recording", a_busy_day, *NODES, URGENT)


def test_a_recorded_day_is_decided_identically(busy_day: Path) -> None:
    report = replayed(busy_day)

    attempts = [entry for entry in Recording(busy_day).entries() if isinstance(entry, RecordedAttempt)]
    assert (report.same, report.different, report.not_decided) == (len(attempts), 0, 0)
    assert report.is_complete
    assert any(attempt.victims for attempt in attempts) and any(attempt.draws for attempt in attempts if attempt.node)


def test_without_the_recorded_draws_ties_would_fall_otherwise(busy_day: Path, tmp_path: Path) -> None:
    entries = [
        msgspec.structs.replace(entry, draws=[]) if isinstance(entry, RecordedAttempt) else entry
        for entry in Recording(busy_day).entries()
    ]
    without_draws = tmp_path / "without"
    without_draws.write_bytes(gzip.compress(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)))

    assert replayed(without_draws).different > 0


def test_with_another_configuration_the_pods_are_named_that_would_go_elsewhere(busy_day: Path) -> None:
    report = replayed(busy_day, PACKING)

    assert report.same + report.different == report.decisions
    assert report.different == len(report.differences) > 0
    first = report.differences[0]
    assert first.pod.startswith("default/web-") and first.recorded.node != first.replayed.node
    assert replayed(busy_day, PACKING) == report


def test_one_difference_does_not_make_the_next_one(tmp_path: Path) -> None:
    """Each pod is decided in the state in which it was decided then: a pod that only one node fits goes there, wherever
    others would go.
    """

    async def tell(cluster: ObjectRegistry) -> None:
        create(cluster, "free", "1")
        await asyncio.sleep(1)
        create(cluster, "bound-to-n1", "4", nodeSelector={"kubernetes.io/hostname": "n1"})
        await asyncio.sleep(1)

    two = [NODES[0], NODES[1]]
    file = record(tmp_path / "r", tell, *two, configuration=PACKING)
    attempts = [entry for entry in Recording(file).entries() if isinstance(entry, RecordedAttempt)]
    report = replayed(file, Configuration())

    assert [attempt.pod for attempt in attempts] == [f"default/{name}" for name in ("free", "bound-to-n1")]
    assert "default/bound-to-n1" not in [difference.pod for difference in report.differences]


def test_volumes_are_reserved_and_bound_as_they_were(tmp_path: Path) -> None:
    async def tell(cluster: ObjectRegistry) -> None:
        create(cluster, "first", **WITH_DATA)
        create(cluster, "second", **WITH_DATA)
        await asyncio.sleep(30)

    storage = (NOT_PROVISIONED, DATA, local_volume("v", on="b"))
    report = replayed(record(tmp_path / "r", tell, node("a"), node("b"), *storage))

    assert (report.different, report.not_decided) == (0, 0) and report.same >= 2


def test_a_binding_that_failed_is_given_back(tmp_path: Path) -> None:
    """The pod is deleted between its decision and its binding; another one fits only once its room is free again."""

    async def tell(cluster: ObjectRegistry) -> None:
        for number in range(6):
            create(cluster, f"a-{number}", "4")
            cluster.delete(PODS, "default", f"a-{number}")
            create(cluster, f"b-{number}", "4")
            await asyncio.sleep(3)
            cluster.delete(PODS, "default", f"b-{number}")
            await asyncio.sleep(40)

    report = replayed(record(tmp_path / "r", tell, NODES[0]))

    assert (report.different, report.not_decided) == (0, 0) and report.same >= 6


def test_a_recording_is_a_workload(busy_day: Path) -> None:
    [workload] = read_workloads(busy_day)

    report = play(workload, workload.own_configuration or Configuration()).report

    # Of the 40 pods five are deleted; nothing is left of them, and the others have room or not as on the day.
    assert report.pods == 40
    assert report.nodes == 8
    assert report.placed >= 30 and report.refused >= 1
    assert report.evicted > 0
    assert report.simulated_seconds == pytest.approx(425, abs=10)


def test_a_moment_of_a_recording_is_a_cluster(busy_day: Path) -> None:
    recording = Recording(busy_day)

    def names(objects: list[Object], kind: str) -> set[str]:
        return {obj["metadata"]["name"] for obj in objects if obj["kind"] == kind}

    early, late = recording.objects_at(0.9), recording.objects_at()
    assert names(early, "Node") == {f"n{number}" for number in range(9)}
    assert names(early, "Pod") == {f"web-{number}" for number in range(6)}
    assert names(late, "Node") == names(early, "Node") - {"n4"}
    assert "too-large" in names(late, "Pod")
    with pytest.raises(RecordingError, match="ends"):
        recording.objects_at(100_000)


def test_recording_that_was_cut_off_replays_identically(busy_day: Path, tmp_path: Path) -> None:
    """The file is cut anywhere, as by a crash or a full disk."""
    content = busy_day.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(content[: len(content) * 2 // 3])

    report = replayed(cut)

    assert report.same == report.decisions > 0
    assert not report.is_complete


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x1f\x8b", b"\x1f\x8b\x08\x00aaaaaaaaaaaaa"], ids=["empty", "json", "head", "torn"]
)
def test_file_that_is_no_recording_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)

    with pytest.raises(RecordingError) as refused:
        Recording(file)
    assert str(file) in str(refused.value) and "\n" not in str(refused.value)
