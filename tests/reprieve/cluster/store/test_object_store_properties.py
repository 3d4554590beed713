"""Several writers and watchers over one API: nothing is lost, nothing comes twice, everything in order; pages see one
moment.
"""

import asyncio
from typing import Any

import orjson
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from extender.rules.api_resources import PODS
from reprieve.cluster.responses.response import StreamResponse
from tests.kit.examples import examples
from tests.reprieve.cluster.api_calls import ask, make_api, merge, pod, send

HISTORY = 30
NAMES = st.sampled_from([f"p{number}" for number in range(4)])
NAMESPACES = st.sampled_from(["a", "b"])
LABELS = st.sampled_from(["red", "blue", ""])
SELECTORS = st.sampled_from(
    ["", "?labelSelector=color%3Dred", "?labelSelector=color%21%3Dred", "?fieldSelector=metadata.name%3Dp1"]
)

Key = tuple[str, str]


def key_of(obj: Any) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def is_selected(obj: Any, selector: str) -> bool:
    color = obj["metadata"].get("labels", {}).get("color")
    if "%21%3D" in selector:
        return bool(color != "red")
    if "labelSelector" in selector:
        return bool(color == "red")
    return not selector or obj["metadata"]["name"] == "p1"


class Watcher:
    """A caller that lists, watches from there and keeps a copy of what it is told."""

    def __init__(self, answer: StreamResponse, state: dict[Key, Any], version: int, selector: str) -> None:
        self.chunks = answer.chunks
        self.state = state
        self.version = version
        self.selector = selector
        self.is_over = False
        self._next: asyncio.Future[bytes | None] | None = None

    async def read(self) -> None:
        """What there is to read now."""
        while not self.is_over:
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self.chunks, None))
            for _ in range(4):
                await asyncio.sleep(0)
            if not self._next.done():
                return
            chunk, self._next = self._next.result(), None
            self.is_over = chunk is None
            for line in (chunk or b"").splitlines():
                self.note(orjson.loads(line))

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self.chunks.aclose()

    def note(self, event: Any) -> None:
        obj = event["object"]
        version = int(obj["metadata"]["resourceVersion"])
        assert version > self.version, "out of order, or twice"
        self.version = version
        if event["type"] == "BOOKMARK":
            return
        key = key_of(obj)
        assert (event["type"] == "ADDED") == (key not in self.state)
        if event["type"] == "DELETED":
            del self.state[key]
        else:
            self.state[key] = obj


class ManyCallers(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.api = make_api(history=HISTORY, namespaces=("a", "b"))
        self.watchers: list[Watcher] = []
        self.snapshots: dict[int, dict[Key, Any]] = {}
        self.pages: list[tuple[int, str, str, list[Key]]] = []
        self.remember()

    def remember(self) -> None:
        """What the truth is at this moment, by asking for each object alone."""
        pods = {}
        for namespace in ("a", "b"):
            for number in range(4):
                code, obj = ask(self.api, "GET", f"/api/v1/namespaces/{namespace}/pods/p{number}")
                if code == 200:
                    pods[namespace, f"p{number}"] = obj
        self.snapshots[self.api.registry.store.resource_version] = pods

    @property
    def truth(self) -> dict[Key, Any]:
        return self.snapshots[self.api.registry.store.resource_version]

    @rule(namespace=NAMESPACES, name=NAMES, color=LABELS)
    def create(self, namespace: str, name: str, color: str) -> None:
        was_there = (namespace, name) in self.truth
        code, _ = ask(
            self.api,
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            pod(name, labels={"color": color} if color else None),
        )
        assert code == (409 if was_there else 201)
        self.remember()

    @rule(namespace=NAMESPACES, name=NAMES, color=LABELS)
    def relabel(self, namespace: str, name: str, color: str) -> None:
        before = self.api.registry.store.resource_version
        old = self.truth.get((namespace, name))
        patch = {"metadata": {"labels": {"color": color or None}}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        code, _ = merge(self.api, path, patch)
        assert code == (404 if old is None else 200)
        is_same = old is None or old["metadata"].get("labels", {}).get("color", "") == color
        assert (self.api.registry.store.resource_version == before) == is_same, (
            "an update that changes nothing writes nothing"
        )
        self.remember()

    @rule(namespace=NAMESPACES, name=NAMES)
    def write_over_somebody(self, namespace: str, name: str) -> None:
        old = self.truth.get((namespace, name))
        if old is None:
            return
        stale = {**old, "metadata": {**old["metadata"], "resourceVersion": "1"}}
        code, status = ask(self.api, "PUT", f"/api/v1/namespaces/{namespace}/pods/{name}", stale)
        assert (code, status["reason"]) == (409, "Conflict")

    @rule(namespace=NAMESPACES, name=NAMES)
    def delete(self, namespace: str, name: str) -> None:
        was_there = (namespace, name) in self.truth
        code, _ = ask(self.api, "DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")
        assert code == (200 if was_there else 404)
        self.remember()

    @rule(selector=SELECTORS)
    def list_and_watch(self, selector: str) -> None:
        _, listed = ask(self.api, "GET", f"/api/v1/pods{selector}")
        state = {key_of(item): item for item in listed["items"]}
        assert list(state) == sorted(key for key, obj in self.truth.items() if is_selected(obj, selector))
        version = int(listed["metadata"]["resourceVersion"])
        self.watch(selector, state, version)

    def watch(self, selector: str, state: dict[Key, Any], version: int) -> None:
        more = "&" if selector else "?"
        answer = send(
            self.api, "GET", f"/api/v1/pods{selector}{more}watch=1&allowWatchBookmarks=1&resourceVersion={version}"
        )
        assert isinstance(answer, StreamResponse)
        self.watchers.append(Watcher(answer, state, version, selector))

    @rule(data=st.data())
    def watch_from_some_version(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.snapshots)))
        if version < self.compacted:
            answer = send(self.api, "GET", f"/api/v1/pods?watch=1&resourceVersion={version}")
            assert isinstance(answer, StreamResponse)
            event = self.loop.run_until_complete(anext(answer.chunks))
            assert orjson.loads(event)["object"]["code"] == 410
        else:
            self.watch("", dict(self.snapshots[version]), version)

    @precondition(lambda self: self.watchers)
    @rule(data=st.data())
    def read_one(self, data: st.DataObject) -> None:
        self.read(data.draw(st.sampled_from(self.watchers)))

    @rule()
    def read_all(self) -> None:
        for watcher in list(self.watchers):
            self.read(watcher)

    def read(self, watcher: Watcher) -> None:
        self.loop.run_until_complete(watcher.read())
        if watcher.is_over:
            # It was too slow: the history has passed its place. Nothing else ends a watch here.
            assert watcher.version < self.compacted
            self.watchers.remove(watcher)
            return
        expected = {
            key: obj["metadata"]["resourceVersion"]
            for key, obj in self.truth.items()
            if is_selected(obj, watcher.selector)
        }
        assert {key: obj["metadata"]["resourceVersion"] for key, obj in watcher.state.items()} == expected

    @property
    def compacted(self) -> int:
        return self.api.registry.store.compacted(PODS)

    @rule(limit=st.integers(1, 4), namespace=st.sampled_from(["", "a"]))
    def begin_paging(self, limit: int, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        _, page = ask(self.api, "GET", f"{path}?limit={limit}")
        version = int(page["metadata"]["resourceVersion"])
        keys = [key_of(item) for item in page["items"]]
        token = page["metadata"].get("continue", "")
        self.check_page(version, path, limit, keys, token, page)

    @precondition(lambda self: self.pages)
    @rule(data=st.data(), limit=st.integers(1, 4))
    def next_page(self, data: st.DataObject, limit: int) -> None:
        place = data.draw(st.integers(0, len(self.pages) - 1))
        version, path, token, keys = self.pages.pop(place)
        code, page = ask(self.api, "GET", f"{path}?limit={limit}&continue={token}")
        if version < self.compacted:
            assert (code, page["reason"]) == (410, "Expired")
            code, page = ask(self.api, "GET", f"{path}?continue={page['metadata']['continue']}")
            assert code == 200
            assert [key_of(item) for item in page["items"]] == [
                key for key in self.in_path(path, self.truth) if key > keys[-1]
            ]
            return
        assert code == 200
        assert int(page["metadata"]["resourceVersion"]) == version
        keys = [*keys, *(key_of(item) for item in page["items"])]
        self.check_page(version, path, limit, keys, page["metadata"].get("continue", ""), page)

    def check_page(self, version: int, path: str, limit: int, keys: list[Key], token: str, page: Any) -> None:
        then = self.in_path(path, self.snapshots[version])
        assert keys == then[: len(keys)], "all pages show one moment"
        assert {key_of(item): item["metadata"]["resourceVersion"] for item in page["items"]}.items() <= {
            key: obj["metadata"]["resourceVersion"] for key, obj in self.snapshots[version].items()
        }.items()
        if token:
            assert len(page["items"]) == limit
            assert page["metadata"]["remainingItemCount"] == len(then) - len(keys)
            self.pages.append((version, path, token, keys))
        else:
            assert keys == then

    def in_path(self, path: str, state: dict[Key, Any]) -> list[Key]:
        return sorted(key for key in state if path == "/api/v1/pods" or key[0] == "a")

    @rule(back=st.integers(0, 10))
    def compact(self, back: int) -> None:
        store = self.api.registry.store
        store.compact(store.resource_version - back)

    @rule(data=st.data())
    def list_what_was(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.snapshots)))
        code, listed = ask(self.api, "GET", f"/api/v1/pods?resourceVersion={version}&resourceVersionMatch=Exact")
        if version < self.compacted:
            assert (code, listed["reason"]) == (410, "Expired")
        else:
            assert [key_of(item) for item in listed["items"]] == sorted(self.snapshots[version])

    @invariant()
    def lists_are_the_truth(self) -> None:
        if hasattr(self, "api"):
            _, listed = ask(self.api, "GET", "/api/v1/pods")
            assert {key_of(item): item["metadata"]["resourceVersion"] for item in listed["items"]} == {
                key: obj["metadata"]["resourceVersion"] for key, obj in self.truth.items()
            }

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            for watcher in self.watchers:
                self.loop.run_until_complete(watcher.close())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


ManyCallers.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=60, deadline=None)
TestManyCallers = ManyCallers.TestCase
