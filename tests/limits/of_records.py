"""What is kept: of calls, of decisions, of simulations, of the shadow."""

import asyncio
import json
import random
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Raw
from opentelemetry.sdk.trace import TracerProvider

from api.otel_spans import OpenTelemetryTracer
from extender.answers.records.record_store import keep_candidates
from extender.client.credentials.exec_plugin import Exec, ExecPlugin
from extender.client.informers.keeping import SharedParts
from extender.engine import framework as fwk
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.scheduler.world import BindsInFlight
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.config.configuration import Extender
from extender.values.golang.times import Duration
from extender.values.protocol.arriving_nodes import ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import read_extender_args
from reprieve.lab.doctor.examined_service import ExaminedService
from reprieve.lab.recordings.recorder import RecordedChance
from reprieve.lab.shadow.tally import AgreementTally
from tests.extender.answers.explain.test_preemption import outcome_of
from tests.extender.answers.explain.test_queue_places import view
from tests.extender.client.embedded_server import Server
from tests.extender.client.test_event_recorder import event, record, recorded
from tests.extender.engine.queue.clocked_queue import ClockedQueue
from tests.kit.service import serving
from tests.limits.of_scheduling import SCHEDULING
from tests.limits.rows import Filled, Held, Kept


async def nodes_known(number: int, size: int = 0) -> int:
    """Sends so many nodes, one a call; returns how many of them are known at the end."""
    nodes = DecodedNodes()
    for index in range(number):
        await nodes.of([Raw(f'{{"metadata":{{"name":"n{index:05}"}}}}'.ljust(size).encode())])
    return len(nodes)


async def lists_known(*lists: list[str]) -> list[bool]:
    """Whether the second reading of each list gives the same object as the first."""

    async def read(names: list[str]) -> object:
        body = f'{{"Pod":{{"metadata":{{"name":"p"}}}},"Nodes":null,"NodeNames":{json.dumps(names)}}}'.encode()
        return (await read_extender_args(ArrivedBody([body]), DecodedNodes())).node_names

    for names in lists:
        await read(names)
    first = [await read(names) for names in lists]
    second = [await read(names) for names in lists]
    return [one is other for one, other in zip(first, second, strict=True)]


def of_length(size: int) -> list[str]:
    """A list of names that has so many bytes as JSON."""
    names = [f"n{index:06}" for index in range(size // 11)]
    return [*names[:-1], names[-1] + "x" * (size - len(json.dumps(names)))]


def first_is_shared(size: int) -> bool:
    """Whether the first of two parts is still known when both take so many bytes."""
    of_table = 128
    parts, first = SharedParts(), "".join(["a"] * 100)
    parts(first)
    parts("b" * (size - 100 - 2 * of_table))
    return parts("".join(["a"] * 100)) is first


def drawn(number: int) -> int:
    chance = RecordedChance(random.Random(0))
    for _ in range(number):
        chance.getrandbits(8)
    return len(chance.drawn)


def suggestions(number: int) -> int:
    """How many suggestions take one port away."""
    pod = make_pod("p")
    for index in range(number):
        pod = pod.host_port(8000 + index)
    rows = fwk.Rows.of(make_snapshot(make_node("n")))
    return sum(" and " not in suggestion.text for suggestion in NodePorts(None, None).suggest(pod.obj(), rows))


def reasons(number: int) -> int:
    tally = AgreementTally()
    for index in range(number):
        tally.agreed("same", "plain", f"reason {index}", ())
    return len(tally.by_reason)


def waits(seconds: int) -> float:
    return ExaminedService(Extender(url_prefix="http://e", http_timeout=Duration.of(seconds)), dict).seconds


def kept_candidates(number: int, victims: int = 1) -> tuple[int, list[int]]:
    """How many of so many candidates are kept, and how many victims of each."""
    nodes = [make_node(f"n{index}").capacity(cpu=victims, pods=5000) for index in range(number)]
    pods = [
        make_pod(f"p{index}-{one}").req(cpu=1).node(f"n{index}").start_time("2026-01-01T09:00:00Z")
        for index in range(number)
        for one in range(victims)
    ]
    pending = make_pod("urgent").req(cpu=victims).priority(1000).obj()
    outcome = outcome_of(make_snapshot(*nodes, pods=pods), pending)
    assert outcome.candidates is not None
    candidates = keep_candidates(outcome.candidates, pending, 0.0, "n0")
    return len(candidates), [len(candidate.victims) for candidate in candidates]


def traced(number: int) -> int:
    trace = OpenTelemetryTracer(TracerProvider()).call("filter", {"traceparent": f"00-{'1' * 32}-{'1' * 16}-01"})
    assert trace is not None
    for _ in range(number):
        trace.timed(0.0, "P", "Filter", "Success")
    return len(trace.timed_parts)  # type: ignore[attr-defined]


def queued(number: int) -> int:
    clocked = ClockedQueue()
    clocked.add(*(make_pod(f"p{index}").uid(f"u{index}") for index in range(number)))
    return len(view(clocked).items)


async def has_room(number: int) -> bool:
    """Whether another binding may be sent beside so many."""
    binds = BindsInFlight()
    with ExitStack() as bindings:
        for _ in range(number):
            bindings.enter_context(binds)
        try:
            await asyncio.wait_for(binds.below_limit(), 1)
        except TimeoutError:
            return False
        return True


def noted(length: int) -> str:
    server = Server()
    record(server, event("x" * length))
    note: str = recorded(server)[0]["message"]
    return note.rstrip("x")


def printed(size: int) -> str:
    """A program for credentials prints so many bytes."""
    text = '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}'
    with TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        program.write_text(f"#!/bin/sh\nhead -c {size - len(text)} /dev/zero | tr '\\0' ' '; printf '%s' '{text}'\n")
        program.chmod(0o755)
        config = Exec("client.authentication.k8s.io/v1", str(program))
        try:
            return str(asyncio.run(ExecPlugin(config).identity(0)).authorization)
        except Exception as exc:
            return type(exc).__name__


def unknown_parameter(length: int) -> int:
    """How much of its name is repeated."""
    with serving(schedule=False) as service:
        message: str = service.client.get("/v1/queue", params={"x" * length: "1"}).json()["message"]
    return message.count("x")


RECORDS: dict[str, Filled | Held | Kept] = {
    **SCHEDULING,
    "NODES_KEPT": Filled(nodes_known, at=10, above=10, lowered_to=10),
    "NODES_KEPT_BYTES": Filled(lambda n: nodes_known(2, n // 2 + n % 2), at=2, above=1, lowered_to=1000),
    "NAME_LIST_BYTES": Filled(lambda n: lists_known(of_length(n)), at=[True], above=[False]),
    "RECORDED_DRAWS": Filled(drawn, at=64, above=64),
    "RECORDED_ENTRIES": Held(
        "tests/reprieve/lab/recordings/test_recording_file.py::test_a_disk_that_is_slow_costs_bounded_memory"
    ),
    "RECORDED_ANSWERS_BYTES": Held(
        "tests/reprieve/lab/simulation/test_replay_with_extenders.py::test_answers_take_bounded_memory_while_the_disk_is_slow"
    ),
    "SUGGESTED_ONE_BY_ONE": Filled(suggestions, at=3, above=3),
    "SHADOW_REASONS": Filled(reasons, at=50, above=51),
    "CANDIDATES_KEPT": Filled(lambda n: kept_candidates(n)[0], at=8, above=8),
    "OTHER_VICTIMS_KEPT": Filled(lambda n: kept_candidates(2, n)[1][1], at=16, above=16),
    "VICTIMS_KEPT": Filled(lambda n: kept_candidates(1, n)[1][0], at=1000, above=1000),
    "TRACE_SPANS": Filled(traced, at=256, above=256),
    "QUEUE_PLACES": Filled(queued, at=5000, above=5000),
    "SHARED_PARTS": Filled(first_is_shared, at=True, above=False, lowered_to=2000),
    "BINDS_IN_FLIGHT": Filled(lambda n: has_room(n - 1), at=True, above=False),
    "EVENT_NOTE_BYTES": Filled(noted, at="", above=" ..."),
    "EXEC_OUTPUT_BYTES": Filled(printed, at="Bearer t", above="Error"),
    "REFUSED_NAME_CHARACTERS": Filled(unknown_parameter, at=64, above=64),
    "DOCTOR_SECONDS": Filled(waits, at=30, above=30),
    "REASONS_KEPT": Held("tests/extender/answers/records/test_details.py::test_a_reason_a_node_is_too_much"),
    "CALL_NAME_CHARACTERS": Held(
        "tests/extender/answers/records/test_verb_calls.py::test_calls_with_huge_names_take_no_more_memory_than_others"
    ),
    "CALL_MESSAGE_CHARACTERS": Held(
        "tests/extender/answers/records/test_verb_calls.py::test_calls_with_huge_names_take_no_more_memory_than_others"
    ),
}
