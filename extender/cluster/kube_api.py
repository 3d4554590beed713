"""Kubernetes' REST semantics over an ObjectRegistry: `KubeApi.respond` answers one request. There is no HTTP server in
here.

Upstream: apiserver/pkg/endpoints, installer.go, handlers (v1.36.2).
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import orjson

from extender.cluster import statuses
from extender.cluster.api_resources import BINDINGS, Object, Resource
from extender.cluster.patches.patch_types import TYPES, Patch
from extender.cluster.registry import pod_subresources
from extender.cluster.registry.long_writes import LONG, LongWrites
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.cluster.requests import media_types, request_bodies, request_options
from extender.cluster.requests.media_types import Form
from extender.cluster.requests.request_info import Request, RequestInfo, request_info
from extender.cluster.requests.request_options import WriteOptions
from extender.cluster.responses import discovery
from extender.cluster.responses.openapi import documents
from extender.cluster.responses.response import Presenter, Response, StreamResponse
from extender.cluster.schema import api_types
from extender.cluster.statuses import ApiStatus
from extender.cluster.store import list_pages, selections, versions, watch_streams
from extender.values.concurrency.abandoned import in_thread
from extender.values.golang.schema import read_as, type_meta

MIN_WATCH_SECONDS: Final = 1800
"""The shortest duration of a watch that names none; the longest is twice as much. Upstream: MinRequestTimeout."""

LONG_SELECTOR: Final = 4096
"""Characters of the selectors of a list or watch; of so many a millisecond or two are needed for reading them."""

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")

logger: Final = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class _Call:
    request: Request
    info: RequestInfo
    form: Form
    selected: selections.ObjectSelection | None
    """What the selectors of the query select, if their text is long; None if they are still to be read."""

    @property
    def resource(self) -> Resource:
        return self.info.resource

    @property
    def place(self) -> tuple[Resource, str, str]:
        """The resource, the namespace and the name that are asked for."""
        return self.info.resource, self.info.namespace, self.info.name


@final
@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a request has led to, before it is put into an answer."""

    shown: Callable[[], Response]
    """Is called when a write is done, because only then is its resourceVersion known."""
    is_long: bool = False
    """To prepare and to show it takes long, and can be done in a thread."""
    prepare: Callable[[], object] = lambda: None
    """Is called before the steps."""
    steps: Iterable[None] = ()
    """What is still to be done; others may have their turn after each."""


@final
class KubeApi:
    """Answers requests as kube-apiserver does.

    Arguments:
        address: the `host:port` under which callers reach this server, for the discovery documents.
    """

    def __init__(self, registry: ObjectRegistry, *, address: str = "") -> None:
        self.registry: Final = registry
        self._address = address
        self._long: Final = LongWrites(registry)

    async def respond(self, request: Request) -> Response | StreamResponse:
        """Returns the answer, as `handle` does. What takes long is worked out in a thread, so that others are answered
        meanwhile.
        """
        try:
            place = self._long_write(request)
            if place is not None:
                return self._completed(
                    request, await self._long.done(*place, lambda beside: self._beside(beside)._answer(request))
                )
            found = self._answer(request, await self._long_selection(request))
            if isinstance(found, _Outcome):
                if found.is_long and found.steps:
                    async with self._long.turn:
                        await in_thread(lambda _: found.prepare())
                for _ in found.steps:
                    await asyncio.sleep(0)
                if found.is_long:
                    async with self._long.turn:
                        return self._completed(request, await in_thread(lambda _: found.shown()))
            return self._completed(request, found)
        except Exception as error:
            return self._refused(request, error)

    def handle(self, request: Request) -> Response | StreamResponse:
        """Returns the answer, however long it takes. A watch begins now, even if its first chunk is asked for later."""
        try:
            found = self._answer(request)
            if isinstance(found, _Outcome):
                for _ in found.steps:
                    pass
            return self._completed(request, found)
        except Exception as error:
            return self._refused(request, error)

    def _long_write(self, request: Request) -> tuple[Resource, str] | None:
        """Returns the resource and the name of what a request writes if that takes long; None for all other
        requests.
        """
        info = request_info(request, self.registry.features) if request.method in ("POST", "PUT", "PATCH") else None
        if info is None or info.resource is BINDINGS or (info.verb == "create" and info.subresource):
            return None
        former = self.registry.store.get(info.resource, info.namespace, info.name)
        length = len(request.body) + (0 if former is None else len(former.body))
        return (info.resource, info.name) if length > LONG else None

    def _beside(self, registry: ObjectRegistry) -> "KubeApi":
        return KubeApi(registry, address=self._address)

    async def _long_selection(self, request: Request) -> selections.ObjectSelection | None:
        """Returns what the selectors of a request select if it takes long to read them; None for all other requests."""
        texts = [request_options.text(request.query, name) for name in ("labelSelector", "fieldSelector")]
        info = request_info(request, self.registry.features) if sum(map(len, texts)) > LONG_SELECTOR else None
        if info is None or info.verb not in ("list", "deletecollection"):
            return None
        async with self._long.turn:
            return await in_thread(lambda _: selections.selection(info.resource, *texts))

    def _refused(self, request: Request, error: Exception) -> Response | StreamResponse:
        if isinstance(error, ApiStatus):
            return self._completed(request, _json(error.code, error.as_object(), error.headers))
        # No request may end the service.
        logger.error("%r %r", request.method, request.path, exc_info=error)
        return self._completed(
            request, _json(500, statuses.internal_error("the request could not be processed").as_object())
        )

    def _completed(self, request: Request, found: "Response | StreamResponse | _Outcome") -> Response | StreamResponse:
        answer = found.shown() if isinstance(found, _Outcome) else found
        headers = {"Audit-Id": self._audit_id(request), "Cache-Control": "no-cache, private", **answer.headers}
        if isinstance(answer, StreamResponse):
            return StreamResponse(answer.status, answer.chunks, headers)
        return Response(answer.status, b"" if request.method == "HEAD" else answer.body, headers)

    def _audit_id(self, request: Request) -> str:
        return request.headers.get("audit-id") or str(uuid.UUID(int=self.registry.rng.getrandbits(128), version=4))

    def _answer(
        self, request: Request, selected: selections.ObjectSelection | None = None
    ) -> Response | StreamResponse | _Outcome:
        info = request_info(request, self.registry.features)
        if info is None:
            return self._document(request)
        form = media_types.accepted(request.headers.get("accept", ""))
        return self._VERBS[info.verb](self, _Call(request, info, form, selected))

    def _document(self, request: Request) -> Response:
        if request.path in HEALTH_PATHS:
            return Response(
                200, b"ok", {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
            )
        accept = request.headers.get("accept", "")
        described = documents.answer(request.path, accept, features=self.registry.features)
        if described is not None:
            if request.method not in ("GET", "HEAD"):
                raise statuses.method_not_allowed()
            return Response(200, described[1], {"Content-Type": described[0]})
        document = discovery.answer(request.path, accept, address=self._address, features=self.registry.features)
        if document is None:
            raise statuses.page_not_found()
        if request.method not in ("GET", "HEAD"):
            raise statuses.method_not_allowed()
        headers = {"Content-Type": document.content_type, "Cache-Control": document.cache_control}
        return Response(200, orjson.dumps(document.body), headers)

    # --- reading

    def _get(self, call: _Call) -> Response | _Outcome:
        asked = list_pages.parse_resource_version(request_options.text(call.request.query, "resourceVersion"))
        store = self.registry.store
        if asked > store.resource_version:
            raise statuses.too_large_resource_version(asked, store.resource_version)
        if call.info.subresource == "scale" or call.form.shape:
            return self._shown(call, 200, self.registry.get(*call.place, call.info.subresource))
        stored = store.get(*call.place)
        if stored is None:
            raise statuses.not_found(call.resource, call.info.name)
        return Response(200, versions.body(call.resource, stored), {"Content-Type": media_types.JSON})

    def _list(self, call: _Call) -> StreamResponse | _Outcome:
        options = request_options.list_options(call.request.query, watch=call.info.is_watch)
        selected = call.selected or selections.selection(call.resource, options.label_selector, options.field_selector)
        if call.info.name:
            selected = selections.named(call.resource, selected, call.info.name)
        if options.watch:
            return self._watch(call, options, selected)
        pending = list_pages.page(self.registry.store, call.resource, call.info.namespace, selected, options)
        return self._listed(call, pending)

    def _listed(self, call: _Call, pending: list_pages.PendingPage) -> _Outcome:
        presenter = self._presenter(call)
        is_long = pending.is_long(shows_stored=presenter.shows_stored)
        return _Outcome(
            lambda: Response(200, presenter.listed(pending.page()), {"Content-Type": media_types.JSON}), is_long
        )

    def _watch(
        self, call: _Call, options: request_options.ListOptions, selected: selections.ObjectSelection
    ) -> StreamResponse:
        seconds = options.timeout_seconds or MIN_WATCH_SECONDS * (1 + self.registry.rng.random())
        presenter = self._presenter(call)
        try:
            watch = watch_streams.watch(
                self.registry.store,
                call.resource,
                call.info.namespace,
                selected,
                options,
                seconds=seconds,
                shown=presenter.event(),
                shown_bookmark=presenter.bookmark,
            )
        except ApiStatus as refusal:
            if refusal.code not in (410, 504):
                raise
            return StreamResponse(200, _once(watch_streams.error_event(refusal)), {"Content-Type": media_types.JSON})
        return StreamResponse(200, watch.chunks(), {"Content-Type": media_types.JSON})

    # --- writing

    def _create(self, call: _Call) -> _Outcome:
        media_type = self._media_type(call)
        body = _limited(call.request)
        write = self._write_options(call, "CreateOptions")
        _, namespace, name = call.place
        if call.info.subresource == "eviction":
            raw = request_bodies.typed(body, media_type, "policy", "v1", "Eviction")
            obj = pod_subresources.evict(self.registry, namespace, name, raw, write)
        elif call.info.subresource == "binding" or call.resource is BINDINGS:
            raw = request_bodies.typed(body, media_type, "", "v1", "Binding")
            obj = pod_subresources.bind(self.registry, namespace, name, raw, write)
        else:
            obj = self.registry.create(call.resource, namespace, self._typed(call, body, media_type), write)
        return self._shown(call, 201, obj, write)

    def _update(self, call: _Call) -> _Outcome:
        body = _limited(call.request)
        write = self._write_options(call, "UpdateOptions")
        media_type = self._media_type(call)
        subresource = call.info.subresource
        if subresource == "scale":
            raw = request_bodies.typed(body, media_type, "autoscaling", "v1", "Scale")
        else:
            raw = self._typed(call, body, media_type)
        obj = self.registry.update(*call.place, raw, write, subresource=subresource)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _patch(self, call: _Call) -> _Outcome:
        media_type = media_types.of_body(call.request.headers.get("content-type", ""), TYPES)
        body = _limited(call.request)
        write = self._write_options(call, "PatchOptions", is_apply=media_type == TYPES[-1])
        try:
            value = request_bodies.parse(body, request_bodies.YAML if media_type == TYPES[-1] else request_bodies.JSON)
        except ValueError as error:
            why = f"error encoding patch: {error}" if media_type == TYPES[-1] else "invalid JSON patch"
            raise statuses.bad_request(why) from error
        obj = self.registry.patch(*call.place, Patch(media_type, value), write, subresource=call.info.subresource)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _delete(self, call: _Call) -> _Outcome:
        options = self._delete_options(call)
        result = self.registry.delete(*call.place, options)
        if call.form.shape:
            result = orjson.loads(orjson.dumps(result))  # to show a part of it, all of it has to be decoded
        is_left = self.registry.store.get(*call.place) is not None
        # Only requests with orphanDependents learn that the deletion was accepted, but is not done. Upstream:
        # handlers/delete.go.
        return self._shown(call, 202 if is_left and options.get("orphanDependents") is False else 200, result)

    def _delete_collection(self, call: _Call) -> _Outcome:
        list_options = request_options.list_options(call.request.query)
        selected = call.selected or selections.selection(
            call.resource, list_options.label_selector, list_options.field_selector
        )
        options = self._delete_options(call)
        pending = list_pages.page(self.registry.store, call.resource, call.info.namespace, selected, list_options)
        return replace(
            self._listed(call, pending), prepare=pending.page, steps=self._deleting(call.resource, pending, options)
        )

    def _deleting(self, resource: Resource, pending: list_pages.PendingPage, options: Object) -> Iterator[None]:
        length = 0
        for stored in pending.page().objects:
            try:
                self.registry.delete(resource, stored.namespace, stored.name, options)
            except ApiStatus as refusal:
                if refusal.code != 404:
                    raise
            # To delete a small object takes as long as to decode a kilobyte.
            length += 1000 + len(stored.body)
            if length > LONG:
                yield
                length = 0

    def _write_options(self, call: _Call, kind: str, *, is_apply: bool = False) -> WriteOptions:
        return request_options.write_options(
            call.request.query, call.request.headers.get("user-agent", ""), kind, is_apply=is_apply
        )

    def _delete_options(self, call: _Call) -> Object:
        """From the body or, if there is none, from the query."""
        body = _limited(call.request)
        if not body:
            return request_options.delete_options(call.request.query)
        media_type = self._media_type(call)
        try:
            value = request_bodies.parse(body, media_type)
            _, kind = type_meta(value)
            if kind not in ("", "DeleteOptions"):
                raise ValueError(f'no kind "{kind}" is registered for the internal version of group "meta.k8s.io"')
            options, _ = read_as(api_types.lookup("", "v1", "DeleteOptions"), value or {})
        except ValueError as error:
            raise statuses.bad_request(str(error)) from error
        return request_options.checked_delete_options(options)

    def _media_type(self, call: _Call) -> str:
        return media_types.of_body(
            call.request.headers.get("content-type", ""), request_bodies.MEDIA_TYPES, request_bodies.JSON
        )

    def _typed(self, call: _Call, body: bytes, media_type: str) -> Any:
        resource = call.resource
        return request_bodies.typed(body, media_type, resource.group, resource.version, resource.kind)

    def _shown(self, call: _Call, code: int, obj: Object, write: WriteOptions | None = None) -> _Outcome:
        headers = {"Content-Type": media_types.JSON}
        if write is not None and write.warnings:
            headers["Warning"] = ", ".join(map(_warning, dict.fromkeys(write.warnings)))
        return _Outcome(lambda: Response(code, self._presenter(call).one(obj), headers))

    def _presenter(self, call: _Call) -> Presenter:
        kind = "Scale" if call.info.subresource == "scale" else ""
        return Presenter(
            call.resource, call.form, request_options.text(call.request.query, "includeObject"), self.registry.now, kind
        )

    _VERBS: Final[Mapping[str, Callable[["KubeApi", _Call], Response | StreamResponse | _Outcome]]] = {
        "get": _get,
        "list": _list,
        "create": _create,
        "update": _update,
        "patch": _patch,
        "delete": _delete,
        "deletecollection": _delete_collection,
    }


def _limited(request: Request) -> bytes:
    if len(request.body) > request_bodies.MAX_BYTES:
        raise statuses.too_large_body(request_bodies.MAX_BYTES)
    return request.body


def _json(code: int, obj: Object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(code, orjson.dumps(obj), {"Content-Type": media_types.JSON, **(headers or {})})


def _warning(text: str) -> str:
    """Upstream: apimachinery/pkg/util/net/http.go, NewWarningHeader."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


async def _once(chunk: bytes) -> AsyncGenerator[bytes, None]:
    yield chunk
