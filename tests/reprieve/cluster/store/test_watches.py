"""WATCH: where it begins, what it tells, when it ends; in virtual time."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from extender.testing import virtual_time
from reprieve.cluster.kube_api import MIN_WATCH_SECONDS, KubeApi
from reprieve.cluster.responses.response import StreamResponse
from tests.reprieve.cluster.api_calls import PODS_PATH, add_node, add_pod, ask, events, make_api, merge, send, summary

ENDS_SOON = "timeoutSeconds=5"


def watched(
    api: KubeApi,
    query: str,
    meanwhile: Callable[[], Any] = lambda: None,
    *,
    path: str = "/api/v1/pods",
    accept: str = "",
) -> list[Any]:
    """All events of a watch during which something happens after a second."""

    async def story() -> list[Any]:
        answer = send(api, "GET", f"{path}?watch=1&{query}", accept=accept)
        asyncio.get_running_loop().call_later(1, meanwhile)
        return await events(answer)

    return virtual_time.run(story())


@pytest.mark.parametrize("version", ["", "0"])
def test_watch_without_a_version_begins_with_the_existing_objects(api: KubeApi, version: str) -> None:
    add_pod(api, "b")
    add_pod(api, "a")

    events = watched(api, f"resourceVersion={version}&{ENDS_SOON}", lambda: add_pod(api, "c"))

    assert [*map(summary, events)] == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


def test_a_watch_from_a_version_tells_every_change_after_it(api: KubeApi) -> None:
    version = add_pod(api, "a")["metadata"]["resourceVersion"]
    add_pod(api, "b")
    merge(api, f"{PODS_PATH}/a", {"metadata": {"labels": {"x": "y"}}})

    events = watched(api, f"resourceVersion={version}&{ENDS_SOON}", lambda: ask(api, "DELETE", f"{PODS_PATH}/b"))

    assert [*map(summary, events)] == [("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_object_that_enters_or_leaves_the_selection_is_added_or_deleted(api: KubeApi) -> None:
    add_pod(api, "a")

    def meanwhile() -> None:
        for label in ("red", "red", "blue"):
            patch = {
                "metadata": {"labels": {"color": label}, "annotations": {"n": str(api.registry.store.resource_version)}}
            }
            merge(api, f"{PODS_PATH}/a", patch)

    events = watched(api, f"resourceVersion=0&labelSelector=color%3Dred&{ENDS_SOON}", meanwhile)

    assert [*map(summary, events)] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    last = events[-1]["object"]["metadata"]
    assert last["labels"] == {"color": "red"}, "it is shown as it was"
    assert last["resourceVersion"] == str(api.registry.store.resource_version), "under the version of the change"


def test_binding_deletes_a_pod_from_a_watch_of_unbound_pods(api: KubeApi) -> None:
    add_pod(api, "a")
    body = {"metadata": {"name": "a"}, "target": {"name": "n"}}

    events = watched(
        api,
        f"resourceVersion=0&fieldSelector=spec.nodeName%3D&{ENDS_SOON}",
        lambda: ask(api, "POST", f"{PODS_PATH}/a/binding", body),
    )

    assert [*map(summary, events)] == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_sees_its_namespace_only() -> None:
    api = make_api(namespaces=("default", "other"))

    def meanwhile() -> None:
        add_pod(api, "a", "other")
        add_pod(api, "b")

    events = watched(api, f"resourceVersion=0&{ENDS_SOON}", meanwhile, path=PODS_PATH)

    assert [*map(summary, events)] == [("ADDED", "b")]


def test_one_object_can_be_watched_by_name(api: KubeApi) -> None:
    add_node(api, "n")
    add_node(api, "m")

    events = watched(api, f"resourceVersion=0&{ENDS_SOON}", path="/api/v1/nodes/n")

    assert [*map(summary, events)] == [("ADDED", "n")]


@pytest.mark.parametrize(("path", "names"), [("/api/v1/watch/nodes", ["m", "n"]), ("/api/v1/watch/nodes/n", ["n"])])
def test_the_old_paths_of_watches_are_served(api: KubeApi, path: str, names: list[str]) -> None:
    add_node(api, "n")
    add_node(api, "m")

    answer = virtual_time.run(events(send(api, "GET", f"{path}?{ENDS_SOON}")))

    assert [*map(summary, answer)] == [("ADDED", name) for name in names]


async def test_bookmarks_come_each_minute_and_before_the_end(api: KubeApi) -> None:
    version = api.registry.store.resource_version
    add_node(api, "n")
    clock = asyncio.get_running_loop().time
    answer = send(
        api, "GET", f"/api/v1/pods?watch=1&allowWatchBookmarks=1&timeoutSeconds=150&resourceVersion={version}"
    )
    assert isinstance(answer, StreamResponse)
    timed_events = [(clock(), orjson.loads(chunk)) async for chunk in answer.chunks]

    assert [seconds for seconds, _ in timed_events] == [60, 120, 148]
    assert {summary(event) for _, event in timed_events} == {("BOOKMARK", "")}
    assert timed_events[0][1]["object"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(version + 1)},
        "spec": {"containers": None},
        "status": {},
    }


def test_without_being_asked_for_there_are_no_bookmarks() -> None:
    assert watched(make_api(), "timeoutSeconds=150") == []


@pytest.mark.parametrize("version", ["", "0", "1"])
def test_initial_events_end_with_an_annotated_bookmark(api: KubeApi, version: str) -> None:
    add_pod(api, "a")
    now = str(api.registry.store.resource_version)
    query = f"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=2"

    events = watched(api, query, lambda: add_pod(api, "b"))

    assert [*map(summary, events)] == [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")]
    annotations = {"k8s.io/initial-events-end": "true"}
    assert events[1]["object"]["metadata"] == {"resourceVersion": now, "annotations": annotations}


def test_initial_events_can_be_declined(api: KubeApi) -> None:
    add_pod(api, "a")

    events = watched(
        api,
        f"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0&{ENDS_SOON}",
        lambda: add_pod(api, "b"),
    )

    assert [*map(summary, events)] == [("ADDED", "b")]


def test_forgotten_version_is_an_error_event_in_the_stream(api: KubeApi) -> None:
    add_pod(api, "a")
    now = api.registry.store.resource_version
    api.registry.store.compact(now)

    events = watched(api, "resourceVersion=1")

    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"] == f"too old resource version: 1 ({now})"


def test_initial_events_as_of_a_version_to_come_are_refused_in_the_stream() -> None:
    events = watched(make_api(), "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999")

    assert events[0]["type"] == "ERROR"
    assert events[0]["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_watch_from_a_version_to_come_waits_for_what_is_newer(api: KubeApi) -> None:
    ahead = api.registry.store.resource_version + 1

    def meanwhile() -> None:
        add_pod(api, "a")
        add_pod(api, "b")

    events = watched(api, f"resourceVersion={ahead}&{ENDS_SOON}", meanwhile)

    assert [*map(summary, events)] == [("ADDED", "b")]


async def test_a_watch_that_names_no_end_lasts_between_half_an_hour_and_an_hour() -> None:
    await events(send(make_api(), "GET", "/api/v1/pods?watch=1"))

    assert MIN_WATCH_SECONDS <= asyncio.get_running_loop().time() <= 2 * MIN_WATCH_SECONDS


async def test_watcher_that_reads_too_slowly_is_cut_off() -> None:
    api = make_api(history=10)

    answer = send(api, "GET", f"/api/v1/nodes?watch=1&resourceVersion={api.registry.store.resource_version}")
    for number in range(30):
        add_node(api, f"n{number}")
    received = await events(answer)

    assert received == []


def test_tables_are_watched_with_their_columns_told_once(api: KubeApi) -> None:
    add_pod(api, "a")
    add_pod(api, "b")

    events = watched(
        api,
        "allowWatchBookmarks=1&resourceVersion=0&timeoutSeconds=1",
        accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    )

    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    tables = [event["object"] for event in events]
    assert [table["kind"] for table in tables] == ["Table"] * 3
    assert tables[0]["columnDefinitions"]
    assert [table["columnDefinitions"] for table in tables[1:]] == [None, None]


def test_events_are_watched_in_the_words_of_either_api(api: KubeApi) -> None:
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "k/s",
        "reportingInstance": "me",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "well",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
    }
    code, _ = ask(api, "POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)

    new = watched(
        api, f"resourceVersion=0&fieldSelector=regarding.name%3Da&{ENDS_SOON}", path="/apis/events.k8s.io/v1/events"
    )
    core = watched(api, f"resourceVersion=0&fieldSelector=involvedObject.name%3Da&{ENDS_SOON}", path="/api/v1/events")

    assert code == 201
    assert (new[0]["object"]["apiVersion"], new[0]["object"]["note"]) == ("events.k8s.io/v1", "well")
    assert (core[0]["object"]["apiVersion"], core[0]["object"]["message"]) == ("v1", "well")
