"""What a real kube-apiserver 1.36 answered to 54 requests, asked of ours again in the same order.

Left out of the comparison: what names that one server (uids, Audit-Ids, its version and address, generated names),
times of day, and the time in managedFields. `KNOWN` names every other difference and its reason.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from extender.rules.api_resources import EVENTS
from extender.testing import virtual_time
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests.request_info import Request
from reprieve.cluster.responses.response import Response, StreamResponse
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry

TRANSCRIPT = json.loads((Path(__file__).parent / "transcript.json").read_text())
WATCHES = ("watch-events", "watch-pods")
COMPARED_HEADERS = ("Cache-Control", "Content-Type", "Retry-After")
NOW = datetime(2026, 11, 20, 16, 17, 7, tzinfo=UTC)
FIRST_VERSION = 122370
"""The recorded server had seen so many writes before."""

KNOWN = {
    "discovery-api": "it tells its address",
    "discovery-version": "it is another program",
    "discovery-api-v1": "we serve fewer resources",
    "discovery-apis": "we serve fewer groups",
    "discovery-aggregated-api": "we serve fewer resources",
    "discovery-aggregated-apis": "we serve fewer groups",
    "unauthorized-401": "whoever reaches the embedded API may do everything: there are no tokens to be wrong",
}
"""Calls that we answer otherwise on purpose; discovery has tests of its own."""


def make_api() -> KubeApi:
    """As the recorded server was: the namespaces are there, and the event of an earlier run."""
    store = ObjectStore(resource_version=FIRST_VERSION - 3)
    registry = make_registry("default", "kube-system", store=store, now=lambda: NOW)
    registry.create(
        EVENTS, "default", {"metadata": {"name": "rec-b.186a1"}, "involvedObject": {"namespace": "default"}}
    )
    store.compact(FIRST_VERSION)
    return KubeApi(registry)


def ask(api: KubeApi, recorded: dict[str, Any], names: dict[str, str]) -> Response | StreamResponse:
    """The same request, with the uids, names and versions that this run gave out."""
    url = urlsplit(translated(recorded["path"], names))
    headers = {"accept": recorded.get("accept") or "", "user-agent": "Python-urllib/3.11"}
    if recorded.get("contentType"):
        headers["content-type"] = recorded["contentType"]
    body = recorded.get("body")
    encoded = b"" if body is None else translated(json.dumps(body, separators=(",", ":")), names).encode()
    return api.handle(
        Request(recorded["method"], url.path, parse_qs(url.query, keep_blank_values=True), headers, encoded)
    )


def translated(text: str, names: dict[str, str]) -> str:
    for theirs, ours in names.items():
        text = text.replace(theirs, ours)
    return text


def learn(theirs: Any, ours: Any, names: dict[str, str]) -> None:
    """Which uid, generated name and version of ours stands for theirs."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return
    before, now = theirs.get("metadata", {}), ours.get("metadata", {})
    for field in ("uid", "name"):
        if before.get(field) and now.get(field) and before[field] != now[field]:
            names[before[field]] = now[field]


VOLATILE = {"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"}


def comparable(value: Any, names: dict[str, str]) -> Any:
    """Without times of day; in our words."""
    if isinstance(value, dict):
        return {
            key: "some time" if key in VOLATILE and value[key] is not None else comparable(value[key], names)
            for key in sorted(value)
        }
    if isinstance(value, list):
        return [comparable(item, names) for item in value]
    if isinstance(value, str):
        # Where the history of the recorded server began.
        return re.sub(r"(too old resource version: 1) \(\d+\)", r"\1 (N)", translated(value, names))
    return value


def once_bookmarked(events: list[Any]) -> list[Any]:
    """Upstream's timer is so coarse that the last bookmark before the end comes twice."""
    return [event for place, event in enumerate(events) if event["type"] != "BOOKMARK" or event not in events[:place]]


def without_age(body: Any) -> Any:
    """A table without its ages, which tell how long recording took, and without descriptions of columns: ours are our
    own words.
    """
    columns = body.get("columnDefinitions") if isinstance(body, dict) else None
    for place, column in enumerate(columns or ()):
        column["description"] = "some words"
        if column["name"] == "Age":
            for row in body["rows"]:
                row["cells"][place] = "some age"
    return body


async def replay() -> dict[str, tuple[Any, Any]]:
    """(theirs, ours) for every call: status, headers and body."""
    api = make_api()
    names: dict[str, str] = {}
    answers: dict[str, tuple[Any, Any]] = {}
    watches = {
        name: api.handle(Request("GET", url.path, parse_qs(url.query), {}))
        for name in WATCHES
        if (url := urlsplit(TRANSCRIPT[name]["path"].replace("122372", str(FIRST_VERSION))))
    }
    for name, call in TRANSCRIPT.items():
        if name in WATCHES or name in KNOWN:
            continue
        theirs, answer = call["response"], ask(api, call["request"], names)
        chunks = [answer.body] if isinstance(answer, Response) else [chunk async for chunk in answer.chunks]
        raw = b"".join(chunks)
        ours = orjson.loads(raw) if answer.headers["Content-Type"].startswith("application/json") else raw.decode()
        learn(theirs["body"], ours, names)
        both = (theirs.get("headers", {}), answer.headers)
        heads = [{key: headers.get(key) for key in COMPARED_HEADERS} for headers in both]
        answers[name] = (
            [theirs["status"], heads[0], comparable(without_age(theirs["body"]), names)],
            [answer.status, heads[1], comparable(without_age(ours), names)],
        )
    for name, watch in watches.items():
        assert isinstance(watch, StreamResponse)
        events = [orjson.loads(line) for line in b"".join([chunk async for chunk in watch.chunks]).splitlines()]
        answers[name] = (once_bookmarked(comparable(TRANSCRIPT[name]["events"], names)), comparable(events, names))
    return answers


ANSWERS = virtual_time.run(replay())


@pytest.mark.parametrize("name", [name for name in TRANSCRIPT if name not in KNOWN])
def test_answers_as_the_real_server_did(name: str) -> None:
    theirs, ours = ANSWERS[name]

    assert ours == theirs
