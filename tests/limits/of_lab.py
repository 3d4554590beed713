"""Simulations, recordings and the shadow."""

import asyncio
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from extender.answers.parts import PodName
from extender.engine import framework as fwk
from extender.engine.queue import QueuedPodInfo
from extender.engine.reporter import Decided
from extender.testing import make_node, make_pod
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab.agreement import Difference
from reprieve.lab.recordings.entries import ExtenderAnswer, RecordedAttempt, Recording
from reprieve.lab.recordings.recorder import Recorder
from reprieve.lab.shadow.shadow import Shadow
from reprieve.lab.shadow.tally import AgreementTally
from reprieve.lab.simulation.observation import Observation
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.replaying import replay
from reprieve.lab.simulation.sweeping import read_workloads, sweep
from tests.kit.objects import node, pod
from tests.limits.of_questions import in_file, workload
from tests.limits.rows import Filled, Kept, words
from tests.reprieve.lab.recordings.recorded_cluster import NODES, create, record
from tests.reprieve.lab.simulation.test_playing import Given
from tests.reprieve.lab.simulation.test_replay import PACKING


def played(number: int) -> str:
    """Returns why so many plays of a workload are refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "w.yaml"
        path.write_text(workload())
        return words(partial(sweep, read_workloads(path)[0], [None], range(number)))


def samples(number: int) -> int:
    """Returns how many of so many samples a report has; the last one is taken at the end."""
    observation = Observation(lambda: 0.0, lambda attempts: None)
    for index in range(number):
        observation.sample(is_last=index == number - 1)
    return len(observation.samples)


def refused() -> int:
    """Returns how many messages of three a report has."""
    pods = [pod(f"p{index}", nodeSelector={"kubernetes.io/hostname": "none"}) for index in range(2)]
    pods += [pod("large", "100"), pod("gated", schedulerName="nobody")]
    workload = Given([node("n"), *pods])
    return len(play(workload, Configuration()).report.refusals)


def told_differences() -> tuple[int, int]:
    """Returns how many differences of a replay are told, and how many there are."""
    with TemporaryDirectory() as folder:

        async def tell(cluster: ObjectRegistry) -> None:
            for index in range(6):
                create(cluster, f"p{index}", "1")
                await asyncio.sleep(1)

        report = replay(Recording(record(Path(folder) / "day", tell, *NODES[:2])), PACKING)
    return len(report.differences), report.different


def is_left_out(size: int) -> bool:
    """Whether an answer of an extender that has so many bytes is left out of the recording."""
    recorder, info = Recorder(lambda: 0.0), QueuedPodInfo(make_pod("p").obj(), 0.0)

    def answer(error: str) -> ExtenderAnswer:
        return ExtenderAnswer("e", "filter", "question", error)

    recorder.asked(info.pod)
    recorder.answered(answer("x" * (size - len(msgspec.json.encode(answer(""))))))
    recorder.failed(info, "default-scheduler", fwk.unschedulable("no"), 0.0)
    (attempt,) = recorder.take()
    assert isinstance(attempt, RecordedAttempt)
    return attempt.answers[0].is_left_out


async def shadow_is_behind(number: int) -> bool:
    """Whether a decision is not looked at while so many changes wait for the shadow, it among them."""
    shadow, standing, waits = Shadow(Configuration()), make_node("n").obj(), make_pod("p").obj()
    running = asyncio.create_task(shadow.run())
    for obj in (standing, waits):
        shadow.changed(None, obj)
    await shadow.caught_up()
    shadow.changed(waits, replaced(waits, spec=replaced(waits.spec, node_name="n")))
    for _ in range(number - 1):
        shadow.changed(standing, standing)
    await shadow.caught_up()
    running.cancel()
    return shadow.tally.not_decided["the shadow was behind"] > 0


def difference(number: int) -> Difference:
    pod, decided = PodName.of(make_pod(f"p{number}").obj()), Decided(node="n")
    return Difference(
        time="2026-03-01T12:00:00Z", pod=pod, kind="elsewhere", shape="plain", theirs=decided, ours=decided
    )


def differences(number: int) -> tuple[int, str]:
    """Returns how many differences with the scheduler are kept of so many, and the pod of the first of these."""
    tally = AgreementTally()
    for index in range(number):
        tally.differed(difference(index), "", ())
    return len(tally.differences), tally.differences[0].pod.name


LAB: dict[str, Filled | Kept] = {
    "WORKLOAD_BYTES": Filled(
        lambda n: in_file(read_workloads, workload().ljust(n, "\n"), "w.yaml"),
        above="more than 1000 bytes",
        lowered_to=1000,
    ),
    "WORKLOAD_PLAYS": Filled(played, above="2 plays, but at most 1", lowered_to=1),
    "REPORTED_SAMPLES": Filled(samples, at=240, above=121),
    "REPORTED_REFUSALS": Kept(3, refused, whole=3, cut=2),
    "REPLAY_DIFFERENCES": Kept(3, told_differences, whole=(3, 3), cut=(2, 3)),
    "RECORDED_ANSWER_BYTES": Filled(is_left_out, at=False, above=True),
    "SHADOW_CHANGES": Filled(shadow_is_behind, at=False, above=True, lowered_to=5),
    "SHADOW_DIFFERENCES": Filled(differences, at=(1000, "p0"), above=(1000, "p1")),
}
