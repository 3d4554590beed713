"""What is kept and repeated: names and lists, expressions, log lines, the past, the shadow."""

import asyncio
import itertools
import json
import logging
from typing import Any

import re2  # type: ignore[import-untyped]
from msgspec import Raw

from extender.answers.history import PastQuery, past
from extender.engine import framework as fwk
from extender.engine.preemption.preemptions import LoopGuard
from extender.rules.api_resources import LEASES
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.cel import CelError, compiled, facts_of
from extender.values.cel.library import RegexError, compiled_regex
from extender.values.klog.logger import as_json
from extender.values.klog.setup import JsonFormatter
from extender.values.objects.devices import Device
from extender.values.protocol.node_lists import check_node_names, names_known
from reprieve.cluster.requests import protobuf_objects
from tests.extender.answers.records.test_record_store import preemption
from tests.extender.client.elected_replica import Replica, Server
from tests.extender.engine.runtime.test_quarantine import framework_of
from tests.extender.values.cel.test_evaluation import LOOPS
from tests.limits.of_records import lists_known
from tests.limits.rows import Filled, Kept, words
from tests.reprieve.cluster.api_calls import PODS_PATH, ask, make_api, pod
from tests.reprieve.cluster.requests.protobuf_writing import body, field

_numbers = itertools.count()

PATTERN = "(ab){500}"
"""Large enough for a step of RE2's measure to be small."""


def compiles() -> bool:
    compiled_regex.cache_clear()
    try:
        compiled_regex(PATTERN)
    except RegexError:
        return False
    finally:
        compiled_regex.cache_clear()
    return True


def compiled_bytes() -> int:
    """Returns the least memory with which RE2 itself compiles the pattern."""
    low, high = 0, 1 << 24
    while high - low > 1:
        options = re2.Options()
        options.log_errors, options.max_mem = False, (low + high) // 2
        try:
            re2.compile(PATTERN, options)
        except re2.error:
            low = options.max_mem
        else:
            high = options.max_mem
    return high


def evaluated() -> str:
    return words(lambda: compiled(LOOPS).matches(facts_of("dra.example.com", Device(name="d"))), CelError)


def names_kept(number: int) -> bool:
    """Whether, after so many names of nodes, the first is still known."""
    # More than may be kept at one time go with the next one.
    check_node_names("names", [f"old{next(_numbers)}" for _ in range(number + 1)])
    names = [f"new{next(_numbers)}" for _ in range(number)]
    for name in names:
        check_node_names("names", [name])
    return names_known(Raw(json.dumps(names[:1]).encode())) is not None


async def lists_kept(number: int) -> bool:
    lists = [[f"list{index}"] for index in range(number)]
    await lists_known(*lists)  # lists that others have left are gone now
    return all(await lists_known(*lists))


def nested(levels: int) -> str:
    text = "[" * (levels - 1) + "1" + "]" * (levels - 1)
    content = field(1, field(17, field(7, field(1, text))))
    return words(lambda: protobuf_objects.parse(body("v1", "Namespace", content)))


def claims_named(number: int) -> bool:
    """Whether the error about an unknown claim names those that there are."""
    claims = [{"name": f"c{index}", "resourceClaimName": "x"} for index in range(number)]
    claiming_pod = pod("p", resourceClaims=claims)
    claiming_pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "none"}]}
    status, answer = ask(make_api(), "POST", PODS_PATH, claiming_pod)
    assert status == 422, answer
    return "c0, c1" in answer["message"]


def logged(message: str) -> str:
    record = logging.LogRecord("other", logging.INFO, "other/file.py", 1, message, None, None)
    return str(json.loads(JsonFormatter().format(record))["msg"])


def preemptors_kept(number: int) -> bool:
    """Whether the first of so many preemptors is still known: its second pause finds what was evicted for it."""
    guard, snapshot = LoopGuard(), make_snapshot(make_node("n"))
    for index in range(number):
        guard.chosen(make_pod(f"p{index}").uid(f"u{index}").obj(), fwk.Candidate("n", (), 0), snapshot)

    class Nobody:
        def pod(self, uid: str) -> None:
            return None

    first = make_pod("p0").uid("u0").nominated_node("n").obj()
    guard.pause(first, snapshot, Nobody(), 0.0)  # type: ignore[arg-type]
    return guard.room_taken_by(first) is not None


def preempted(number: int) -> int:
    records = [preemption(index, "low") for index in range(number)]
    return len(past([], records, PastQuery(), ("default",), 0.0).preemptions)


async def leads_after(seconds: int) -> bool:
    """Whether a lease of so many seconds is waited for to its end."""
    server = Server()
    first = Replica("first", server).start()
    await asyncio.sleep(1)
    await first.kill()
    lease = server.lease()
    lease["spec"]["leaseDurationSeconds"] = seconds
    server.registry.update(LEASES, "kube-system", "kube-scheduler", lease)
    second = Replica("second", server).start()
    await asyncio.sleep(60)
    waits = second.began_to_lead is None
    await second.kill()
    return waits


async def awaited(seconds: int) -> str:
    """What is said of an awaited call of a plugin that takes nearly so long."""

    class Patient(fwk.PostFilterPlugin):
        async def post_filter(self, *args: Any) -> Any:
            await asyncio.sleep(seconds - 0.5)
            return fwk.PostFilterResult(fwk.unschedulable("no"))

    (plugin,) = [plugin for plugin in framework_of(Patient).plugins.post_filter if isinstance(plugin, Patient)]
    try:
        await plugin.post_filter(None, None, None)
    except TimeoutError as exc:
        return str(exc)
    return ""


KEPT: dict[str, Filled | Kept] = {
    "EXPRESSION_WORK": Kept(
        compiled(LOOPS).work, evaluated, whole="", cut="operation cancelled: actual cost limit exceeded"
    ),
    "REGEX_MEMORY": Kept(compiled_bytes(), compiles, whole=True, cut=False),
    "NODE_NAMES_KEPT": Filled(names_kept, at=True, above=False, lowered_to=10),
    "NAME_LISTS_KEPT": Filled(lists_kept, at=True, above=False),
    "PROTOBUF_JSON_DEPTH": Filled(nested, above="exceeded max depth"),
    "CLAIM_NAMES_IN_ERROR": Filled(claims_named, at=True, above=False),
    "LOGGED_VALUE": Filled(lambda n: as_json("x" * n), at=lambda n: "x" * n, above="x…"),
    "LOGGED_MESSAGE": Filled(lambda n: logged("x" * n), at=lambda n: "x" * n, above="x…"),
    "PREEMPTORS_KEPT": Filled(preemptors_kept, at=True, above=False),
    "HISTORY_PREEMPTIONS": Filled(preempted, at=100, above=100),
    "LEASE_SECONDS": Filled(leads_after, at=True, above=False),
    "PLUGIN_AWAITED_SECONDS": Filled(awaited, above="longer than 600 s"),
}
