"""What other servers answer, what answers show, and callers."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx

from api.callers.http_refusals import cannot_be_done
from api.ui import pages
from api.ui.node_table import NodeSelection, group_keys
from api.verb_metrics import VerbMetrics
from extender.answers.cluster_map import ClusterMaps
from extender.answers.explain.fixes import patch_of
from extender.answers.overviews import ClusterMap
from extender.client.errors import ApiError
from extender.client.informers.keeping import SharedParts
from extender.rules import statuses
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.golang.field_errors import FieldError
from extender.values.klog.setup import escaped
from extender.values.objects.decoding import replaced
from extender.values.protocol.verb_results import filter_error
from reprieve.sources.manifest_text import manifest_of
from tests.api.ui.samples import RECORD, node as drawn
from tests.api.ui.test_pages import around
from tests.extender.answers.explain.test_explanation import explained, node
from tests.extender.answers.explain.test_preemption import PENDING, answered, node as small, running
from tests.extender.answers.test_cluster_map import make_cluster
from tests.extender.answers.test_past import Told
from tests.extender.client.scripted import Scripted, answer, refusal
from tests.extender.client.test_client import PODS, client_of
from tests.extender.client.test_event_reader import event, listing
from tests.extender.verbs.test_engine import A, engine
from tests.extender.verbs.verb_calls import filtered
from tests.limits.of_explanations import EXPLANATIONS
from tests.limits.of_lab import LAB
from tests.limits.of_pages import PAGES
from tests.limits.of_records import RECORDS
from tests.limits.of_wire import WIRE
from tests.limits.rows import Command, Filled, Held, Kept, Page

# Answers of servers that are called.


async def got(server: Scripted, method: str = "get") -> str:
    """Returns why a request fails; empty if it does not."""
    client = client_of(server)
    try:
        await (client.get(PODS) if method == "get" else client.create(PODS, {"kind": "Pod"}))
    except ApiError as exc:
        return str(exc)
    return ""


def padded(size: int) -> httpx.Response:
    return answer(200, json.dumps({"kind": "PodList"}).encode().ljust(size))


async def refused(size: int) -> str:
    response = refusal(403, "Forbidden", "no, said the server")
    return await got(Scripted(httpx.Response(403, headers=response.headers, content=response.content.ljust(size))))


async def asked_to_wait(seconds: int) -> int:
    server = Scripted(refusal(429, "TooManyRequests", retry_after=str(seconds)), answer())
    await got(server)
    return len(server.asked)


async def events(server: Scripted, *names: str) -> tuple[Any, int]:
    from extender.client.event_reader import EventReader

    reader = EventReader(client_of(server), asyncio.get_running_loop().time)
    histories = [await reader.of("Pod", "shop", name) for name in names]
    return histories[-1], len(server.asked)


async def lists(number: int) -> int:
    """Asks for the Events of so many pods, and of the first again; returns how many were asked for twice."""
    _, num_asked = await events(Scripted(listing()), *(f"p{index}" for index in range(number)), "p0")
    return num_asked - number


async def listed(number: int) -> str:
    server = Scripted(listing())
    await events(server, "web")
    return str(server.asked[0].url.params["limit"])


async def of_bytes(size: int) -> str:
    content = listing(event("A")).content.ljust(size)
    history, _ = await events(Scripted(answer(200, content)), "web")
    return str(history.why_none)


def is_shared(part: Callable[[], str], parts: SharedParts) -> bool:
    return parts(part()) is parts(part())


# What answers show.


def shown_preemptions(number: int) -> int:
    records = tuple(replaced_id(index) for index in range(number))
    page = pages.cluster_page(around(ClusterMap(generation=1, nodes=(), has_pods=False)), NodeSelection(), (), records)
    return page.count("#preemption-")


def replaced_id(index: int) -> Any:
    import msgspec

    return msgspec.structs.replace(RECORD, id=1000 + index)


def has_next_page(number: int) -> bool:
    nodes = tuple(drawn(name=f"m{index}") for index in range(number))
    frame = around(ClusterMap(generation=1, nodes=nodes, has_pods=False))
    return "Next" in pages.nodes_page(frame, "", "")


def manifest(size: int) -> str:
    def padded(pad: int) -> str:
        return manifest_of(make_pod("p").annotation(a="x" * pad).obj())

    return padded(1 + size - len(padded(1)))


def groups(number: int) -> bool:
    import msgspec

    nodes = [msgspec.structs.replace(drawn(name=f"m{index}"), labels={"rack": f"r{index}"}) for index in range(number)]
    return "rack" in group_keys(nodes)


def full(number: int) -> Any:
    """A pod that fits on none of so many nodes."""
    nodes = [node(f"n{index}", cpu=1) for index in range(number)]
    return explained(make_snapshot(*nodes), make_pod("web").req(cpu=2).obj())


def tainted(*keys: str) -> Any:
    """What is said of nodes that have these taints."""
    nodes = [node(f"n{index}").taint(key) for index, key in enumerate(keys)]
    return explained(make_snapshot(*nodes), make_pod("web").obj()).facts


def spares_siblings(number: int) -> bool:
    """Only on the last of so many nodes somebody else's pod is in the way."""
    nodes = [node(f"n{index:03}", cpu=1) for index in range(number)]
    apps = ["web"] * (number - 1) + ["other"]
    pods = [make_pod(f"p{index}").node(f"n{index:03}").label(app=app).req(cpu=1) for index, app in enumerate(apps)]
    fixes = explained(make_snapshot(*nodes, pods=pods), make_pod("web").label(app="web").req(cpu=1).obj()).fixes
    return any(fix.kind == "preemption" for fix in fixes)


def fitting(number: int) -> Any:
    return explained(make_snapshot(*(node(f"n{index}") for index in range(number))), make_pod("web").req(cpu=2).obj())


def candidates(number: int) -> int:
    nodes = [small(f"n{index}") for index in range(number)]
    pods = [running(f"p{index}", f"n{index}") for index in range(number)]
    return len(answered(make_snapshot(*nodes, pods=pods), PENDING.obj()).candidates)


def on_a_map(nodes: int, pods: int) -> bool:
    cluster = make_cluster(
        *(make_node(f"n{row}") for row in range(nodes)), pods=(make_pod(f"p{row}").node("n0") for row in range(pods))
    )
    return ClusterMaps(cluster).now().has_pods


def patch_bytes(size: int) -> bool:
    import msgspec

    def patched(pad: int) -> Any:
        before = make_pod("p").obj()
        return patch_of(before, replaced(before, spec=replaced(before.spec, node_selector={"a": "x" * pad})))

    return bool(patched(1 + size - len(msgspec.json.encode(patched(1)))))


def causes(number: int) -> int:
    errors = [FieldError(f"spec.x[{index}]", "FieldValueInvalid") for index in range(number)]
    details = statuses.invalid("", "Pod", "p", errors).details
    return len(details["causes"]) if details is not None else -1


def counted_reason(length: int) -> int:
    metrics = VerbMetrics()
    metrics.rejected(["x" * length])
    return metrics.text().decode().count("x" * length)


def reason(length: int) -> str:
    """Returns which part of so long a reason for refusing a node is left out."""
    a_half, rest = divmod(length - len(", "), 2)
    names = [
        f"example.com/{index}".ljust(size - len("Insufficient "), "x")
        for index, size in enumerate((a_half, a_half + rest))
    ]
    pod = make_pod("p").req(dict.fromkeys(names, 1)).obj()
    words = filtered(engine(A), pod, node_names=["a"]).failed_and_unresolvable["a"]
    return words[words.find(" and ") :] if " and " in words else "" if len(words) == length else words


def past(*attempts: tuple[str, str]) -> Any:
    return Told(*attempts).ask()


ANSWERS: dict[str, Filled | Held | Kept | Page | Command] = {
    **RECORDS,
    **WIRE,
    **PAGES,
    **EXPLANATIONS,
    **LAB,
    "POD_ANNOTATIONS": Held(
        "tests/extender/client/test_keeping.py::test_the_longest_annotations_of_a_pod_with_a_node_are_not_kept"
    ),
    "REDIRECTS": Held(
        "tests/extender/client/http_extender/test_calling.py::test_redirects_in_a_circle_end", says="after 10 redirects"
    ),
    "NODE_REASON": Filled(reason, above="and 1 more reasons", lowered_to=100),
    "BUDGETS_NAMED": Held(
        "tests/extender/engine/preemption/test_budgets.py::test_thousands_of_budgets_are_counted_as_one_after_the_other_would_be"
    ),
    "VICTIMS_TRIED": Held("tests/extender/verbs/test_few_others.py::test_a_node_of_many_pods_is_bounded"),
    "PICTURE_NAMES": Held(
        "tests/api/ui/test_node_plugin_picture.py::test_five_thousand_nodes_are_a_few_rows_that_name_the_first_of_them"
    ),
    "FIX_OBJECT_BYTES": Held(
        "tests/extender/answers/explain/test_fix_commands.py::test_a_very_large_pod_is_not_tried_by_an_address"
    ),
    "NAMES_FOUND": Held(
        "tests/extender/answers/test_search.py::test_many_pods_of_one_namespace_do_not_hide_those_of_another"
    ),
    "READ_BYTES": Filled(lambda n: got(Scripted(padded(n))), above="longer than 10000 bytes", lowered_to=10_000),
    "WRITE_BYTES": Filled(lambda n: got(Scripted(padded(n)), "create"), above="longer than 8388608 bytes"),
    "ERROR_BYTES": Filled(refused, at="no, said the server", above="403"),
    "RETRY_AFTER_SECONDS": Filled(asked_to_wait, at=2, above=1),
    "REVIEWS_KEPT": Held("tests/extender/client/test_access_review.py::test_number_of_kept_reviews_is_limited"),
    "NAMESPACES_REVIEWED": Held(
        "tests/api/test_access.py::test_of_many_namespaces_only_those_that_the_request_names_are_shown"
    ),
    "EVENT_LISTS_KEPT": Filled(lists, at=0, above=1),
    "EVENTS_LISTED": Filled(listed, at="500", above="500"),
    "EVENTS_BYTES": Filled(of_bytes, above="does not list them"),
    "EVENTS_QUEUED": Held("tests/extender/client/test_call_queue.py::test_number_of_queued_events_is_limited"),
    "EVENTS_KNOWN": Held(
        "tests/extender/client/test_event_recorder.py::test_of_too_many_events_the_one_without_another_for_longest_is_forgotten"
    ),
    "DELETIONS_REMEMBERED": Held("tests/extender/client/test_store.py::test_number_of_remembered_deletions_is_limited"),
    "SHARED_PART_BYTES": Filled(lambda n: is_shared(lambda: "".join(["x" * n]), SharedParts()), at=True, above=False),
    "EXTENDER_TEXT": Filled(lambda n: len(json.loads(filter_error("x" * n))["Error"].rstrip("…")), at=1024, above=1023),
    "EVENTS_SHOWN": Held(
        "tests/extender/client/test_event_reader.py::test_newest_events_are_shown_with_a_note_that_there_are_more"
    ),
    "LOGGED_FIELD": Filled(lambda n: escaped("x" * n), at=lambda n: "x" * n, above="x…"),
    "ERRORS_OF_OBJECT": Filled(causes, at=1000, above=1000),
    "REFUSAL_CHARACTERS": Filled(
        lambda n: str(cannot_be_done(ValueError("x" * n))), at=lambda n: "x" * n, above="x..."
    ),
    "METRIC_REASONS": Held("tests/api/test_verb_metrics.py::test_reasons_take_a_bounded_number_of_series"),
    "METRIC_REASON_CHARACTERS": Filled(counted_reason, at=1, above=0),
    "PAGE_NODES": Filled(has_next_page, at=False, above=True),
    "PAGE_RECENT_PREEMPTIONS": Filled(shown_preemptions, at=5, above=5),
    "PAGE_PENDING": Held("tests/api/ui/test_frame.py::test_first_of_many_pending_pods_are_listed_and_the_rest_counted"),
    "PAGE_MANIFEST_CHARACTERS": Filled(lambda n: manifest(n).endswith("…"), at=False, above=True),
    "PICTURE_ROWS": Held("tests/api/ui/test_node_plugin_picture.py::test_nodes_of_rows_that_are_left_out_are_counted"),
    "NODE_GROUPS": Filled(groups, at=True, above=False),
    "MAP_NODES_WITH_PODS": Filled(lambda n: on_a_map(n, 1), at=True, above=False),
    "MAP_PODS": Filled(lambda n: on_a_map(1, n), at=True, above=False),
    "FIX_PATCH_BYTES": Filled(patch_bytes, at=True, above=False),
    "FACT_NODES": Filled(lambda n: len(tainted(*["x"] * n)[0].nodes), at=20, above=20),
    "FACTS": Filled(lambda n: len(tainted(*(f"x{index}" for index in range(n)))), at=8, above=8),
    "SIBLING_NODES": Filled(spares_siblings, at=True, above=False),
    "NEAREST_NODES": Filled(lambda n: len(full(n).nearest), at=5, above=5),
    "SCORES": Filled(lambda n: len(fitting(n).scores), at=10, above=10),
    "CANDIDATES": Filled(candidates, at=20, above=20),
    "HISTORY_ALIKE": Filled(
        lambda n: bool(past(*((f"shop/p{index}", "") for index in range(n))).older), at=False, above=True
    ),
    "HISTORY_ATTEMPTS": Kept(10, lambda: bool(past(*[("shop/p", "")] * 10).older), whole=False, cut=True),
    "STREAMS": Held("tests/api/test_streams.py::test_number_of_streams_is_limited_and_a_closed_one_makes_room"),
    "TOKEN_CHARACTERS": Held("tests/api/test_access.py::test_the_longest_token_is_passed_on_as_it_is"),
    "REVIEWS_AT_ONE_TIME": Held("tests/api/test_access.py::test_strangers_without_end_keep_no_scheduler_waiting"),
    "UNKNOWN_TOKENS": Held(
        "tests/api/test_access.py::test_the_api_server_is_asked_about_so_many_unknown_tokens_of_an_address"
    ),
    "REQUESTS_WAITING": Held(
        "tests/api/test_connections.py::test_a_connection_on_which_too_many_requests_wait_is_closed"
    ),
    "API_REQUESTS": Held("tests/api/test_kubernetes.py::test_answers_that_are_not_read_are_bounded"),
    "API_WATCHES": Held("tests/api/test_limits.py::test_watches_at_one_time_are_bounded"),
    "HANDSHAKES": Held("tests/api/test_tls_handshakes.py::test_the_oldest_handshake_gives_way_to_one_too_many"),
    "HANDSHAKE_SECONDS": Held("tests/api/test_tls_handshakes.py::test_a_handshake_that_takes_too_long_is_broken_off"),
}
