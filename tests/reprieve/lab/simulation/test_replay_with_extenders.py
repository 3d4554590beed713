"""What a scheduler with extenders decided is decided again without them: the recording holds their answers."""

import asyncio
import dataclasses
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from extender.rules.api_resources import NODES as NODE
from extender.values.config.configuration import Configuration, Extender, ExtenderManagedResource
from extender.values.config.loading import load
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.registry.subresources import bind as bind_pod
from reprieve.lab import limits
from reprieve.lab.recordings.entries import RecordedAttempt, Recording, RecordingError
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.replaying import ReplayReport, replay
from reprieve.lab.simulation.sweeping import read_workloads
from tests.kit.extenders import InMemory, an_extender
from tests.reprieve.lab.recordings.recorded_cluster import NODES, create, record
from tests.reprieve.lab.simulation.test_replay import URGENT

PREFERS_N7: dict[str, Any] = {"filter_verb": "filter", "prioritize_verb": "prioritize", "weight": 5}
REFUSES_ZONE_A = ("n0", "n3", "n6")


def refusing(*names: str, why: str = "no license") -> Callable[[Any], Any]:
    """Passes every other node, whether it is asked by name or shown the nodes."""

    def says(arguments: Any) -> Any:
        if arguments.get("NodeNames") is not None:
            asked_names = arguments["NodeNames"]
            passing_nodes: Any = {"NodeNames": [name for name in asked_names if name not in names]}
        else:
            items = arguments["Nodes"]["items"]
            asked_names = [node["metadata"]["name"] for node in items]
            passing_nodes = {"Nodes": {"items": [node for node in items if node["metadata"]["name"] not in names]}}
        return passing_nodes | {"FailedNodes": {name: why for name in asked_names if name in names}}

    return says


def preferring(name: str) -> Callable[[Any], Any]:
    def says(arguments: Any) -> Any:
        listed = arguments.get("NodeNames") or [node["metadata"]["name"] for node in arguments["Nodes"]["items"]]
        return [{"Host": host, "Score": 10 if host == name else 0} for host in listed]

    return says


def configured(*extenders: Extender, base: Configuration | None = None) -> Configuration:
    return dataclasses.replace(base or Configuration(), extenders=extenders)


async def ten_pods(cluster: ObjectRegistry) -> None:
    for number in range(10):
        create(cluster, f"web-{number}", "1")
        await asyncio.sleep(0.2)
    create(cluster, "too-large", "100")
    await asyncio.sleep(2)


def recorded(
    file: Path,
    memory: InMemory,
    *extenders: Extender,
    tell: Callable[[ObjectRegistry], Awaitable[None]] = ten_pods,
    **options: Any,
) -> Path:
    return record(
        file, tell, *NODES, URGENT, configuration=configured(*extenders), transports=memory.transport, **options
    )


def replayed(file: Path, configuration: Configuration | None = None) -> ReplayReport:
    recording = Recording(file)
    return replay(recording, configuration or recording.deciding_configuration)


def attempts(file: Path) -> list[RecordedAttempt]:
    return [entry for entry in Recording(file).entries() if isinstance(entry, RecordedAttempt)]


def outcome(report: ReplayReport) -> tuple[int, int, int]:
    return report.same, report.different, report.not_decided


def licenses() -> InMemory:
    return InMemory(e_filter=refusing(*REFUSES_ZONE_A), e_prioritize=preferring("n7"))


@pytest.mark.parametrize("by_name", [True, False])
def test_recorded_answers_of_extenders_are_used_without_asking_them(tmp_path: Path, by_name: bool) -> None:
    memory = licenses()
    file = recorded(tmp_path / "r", memory, an_extender("e", node_cache_capable=by_name, **PREFERS_N7))
    num_calls = len(memory.asked)

    report = replayed(file)

    nodes = [attempt.node for attempt in attempts(file) if attempt.node]
    assert nodes.count("n7") == 4 and not {*nodes} & {*REFUSES_ZONE_A}
    assert outcome(report) == (11, 0, 0)
    assert len(memory.asked) == num_calls == 20


def test_extenders_that_choose_victims_bind_and_fail_are_replayed(tmp_path: Path) -> None:
    """One is down and ignorable, one binds, and one takes part in preemption; a binding of the second fails once."""
    bindings = iter([{"Error": "no"}])
    bound: list[str] = []

    def bind(arguments: Any) -> Any:
        failure = next(bindings, None)
        if failure is not None:
            return failure
        target = {"kind": "Node", "name": arguments["Node"]}
        bind_pod(
            cluster[0],
            arguments["PodNamespace"],
            arguments["PodName"],
            {"metadata": {"name": arguments["PodName"]}, "target": target},
        )
        bound.append(arguments["PodName"])
        return {"Error": ""}

    def victims(arguments: Any) -> Any:
        offered = arguments["NodeNameToMetaVictims"]
        chosen = max(offered)
        return {"NodeNameToMetaVictims": {chosen: offered[chosen]}}

    cluster: list[ObjectRegistry] = []

    async def tell(registry: ObjectRegistry) -> None:
        cluster.append(registry)
        for number in range(9):
            create(registry, f"low-{number}", "4")
            await asyncio.sleep(0.1)
        await asyncio.sleep(15)
        create(registry, "urgent", "4", priorityClassName="urgent")
        await asyncio.sleep(60)

    memory = InMemory(down_filter=lambda arguments: 500, e_bind=bind, p_preempt=victims)
    down = an_extender("down", filter_verb="filter", ignorable=True)
    extenders = down, an_extender("e", bind_verb="bind"), an_extender("p", preempt_verb="preempt")
    file = recorded(tmp_path / "r", memory, *extenders, tell=tell)

    report = replayed(file)

    assert len(bound) == 10 and "urgent" in bound
    assert [attempt.nominated for attempt in attempts(file) if attempt.victims] == ["n8"]
    assert outcome(report) == (len(attempts(file)), 0, 0)


def test_an_attempt_is_decided_in_the_state_in_which_it_began(tmp_path: Path) -> None:
    """While the extender takes its time, nodes come that a decision of then did not see."""
    registry: list[ObjectRegistry] = []

    async def slowly(arguments: Any) -> Any:
        await asyncio.sleep(0.5)
        registry[0].update(NODE, "", "n1", {**registry[0].get(NODE, "", "n1"), "spec": {"unschedulable": True}})
        await asyncio.sleep(0.5)
        return refusing()(arguments)

    async def tell(cluster: ObjectRegistry) -> None:
        registry.append(cluster)
        create(cluster, "first", "1", nodeSelector={"kubernetes.io/hostname": "n1"})
        await asyncio.sleep(5)

    file = recorded(tmp_path / "r", InMemory(e_filter=slowly), an_extender("e", filter_verb="filter"), tell=tell)

    assert [attempt.node for attempt in attempts(file)] == ["n1"]
    assert outcome(replayed(file)) == (1, 0, 0)


def test_another_weight_names_the_pods_that_would_go_elsewhere(tmp_path: Path) -> None:
    """The questions are the same then, and so their answers are known."""
    extender = an_extender("e", **PREFERS_N7)
    file = recorded(tmp_path / "r", licenses(), extender)

    report = replayed(file, configured(dataclasses.replace(extender, weight=1, prioritize_verb="")))

    assert report.not_decided == 0
    assert report.different >= 3
    assert {difference.recorded.node for difference in report.differences} == {"n7"}


def test_question_that_an_extender_was_not_asked_is_named_as_unknown(tmp_path: Path) -> None:
    """Another configuration leaves other nodes over; what the extender would say of those is not known."""
    two_zones = "{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}]}"
    affinity = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{two_zones}]}}}}"
    only_half = load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{addedAffinity: {affinity}}}}}]}}]"
    )
    extender = an_extender("e", **PREFERS_N7)
    file = recorded(tmp_path / "r", licenses(), extender)

    report = replayed(file, configured(extender, base=only_half))

    assert outcome(report) == (1, 0, 10), "the pod that fits nowhere is refused before the extender is asked"
    [name] = {attempt.answers[0].extender for attempt in attempts(file) if attempt.answers}
    assert report.unknown[0].pod == "default/web-0"
    assert report.unknown[0].why == f"the extender {name} would be asked which of 6 nodes pass: it was not asked that"


def test_extenders_that_are_new_are_unknown_and_those_that_are_gone_ask_nothing(tmp_path: Path) -> None:
    file = recorded(tmp_path / "r", licenses(), an_extender("e", **PREFERS_N7))

    assert outcome(replayed(file, configured(an_extender("other", filter_verb="filter")))) == (1, 0, 10)
    bare_report = replayed(file, Configuration())
    assert bare_report.not_decided == 0 and bare_report.different > 0


def test_pods_that_an_extender_does_not_care_for_need_no_answer(tmp_path: Path) -> None:
    gpus = (ExtenderManagedResource("example.com/gpu", True),)
    file = recorded(tmp_path / "r", licenses(), an_extender("e", managed_resources=gpus, **PREFERS_N7))

    assert not any(attempt.answers for attempt in attempts(file))
    assert outcome(replayed(file)) == (11, 0, 0)


def test_addresses_and_credentials_are_not_recorded(tmp_path: Path) -> None:
    memory = InMemory(**{"secret-host_filter": lambda arguments: 500})
    address = "http://me:password@secret-host/"
    file = recorded(
        tmp_path / "r",
        memory,
        Extender(url_prefix=address, filter_verb="filter", ignorable=True, node_cache_capable=True),
    )

    text = gzip.decompress(file.read_bytes()).decode()

    assert "code 500" in text
    assert "secret-host" not in text and "password" not in text
    assert outcome(replayed(file)) == (11, 0, 0)
    with_its_address = configured(
        Extender(url_prefix=address, filter_verb="filter", ignorable=True, node_cache_capable=True)
    )
    assert outcome(replayed(file, with_its_address)) == (11, 0, 0)


def test_reasons_are_left_out_with_the_names(tmp_path: Path) -> None:
    memory = InMemory(e_filter=refusing(*(f"n{number}" for number in range(9)), why="tenant acme"))
    file = recorded(tmp_path / "r", memory, an_extender("e", filter_verb="filter"), redacts="names")

    assert "acme" not in gzip.decompress(file.read_bytes()).decode()
    assert outcome(replayed(file)) == (len(attempts(file)), 0, 0)


def test_answers_take_bounded_memory_while_the_disk_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond are left out, and the replay says so of the pods."""
    monkeypatch.setattr(limits, "RECORDED_ANSWERS_BYTES", 1000)
    file = recorded(tmp_path / "r", licenses(), an_extender("e", **PREFERS_N7), every=1.2)

    report = replayed(file)

    assert report.same > 0 and report.not_decided > 0 and report.different == 0
    assert {entry.why.partition(": ")[2] for entry in report.unknown} == {"its answer was too long to be recorded"}


def test_the_recording_can_be_simulated_without_its_extenders(tmp_path: Path) -> None:
    file = recorded(tmp_path / "r", licenses(), an_extender("e", **PREFERS_N7))
    [workload] = read_workloads(file)

    report = play(workload, workload.own_configuration or Configuration()).report

    assert report.placed == 10


def test_recordings_of_versions_without_answers_are_refused(tmp_path: Path) -> None:
    file = recorded(tmp_path / "r", licenses(), an_extender("e", **PREFERS_N7))
    first, rest = gzip.decompress(file.read_bytes()).split(b"\n", 1)
    older = tmp_path / "older"
    older.write_bytes(gzip.compress(first[: first.rindex(b",[{")] + b"]\n" + rest))

    with pytest.raises(RecordingError, match="whose answers are not recorded"):
        replayed(older)
