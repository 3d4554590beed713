"""One request, one answer: Kubernetes' REST semantics over an ObjectRegistry, with no HTTP server in it.

Upstream: apiserver/pkg/endpoints, installer.go, handlers, request/requestinfo.go (v1.36.2).
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import orjson

from extender.embedded import schema, statuses
from extender.embedded.api_resources import BINDINGS, Object, Resource
from extender.embedded.patches.patch_types import TYPES, Patch
from extender.embedded.registry import pod_subresources
from extender.embedded.registry.object_registry import ObjectRegistry
from extender.embedded.requests import media_types, request_bodies, request_options
from extender.embedded.requests.media_types import Form
from extender.embedded.requests.request_info import Request, RequestInfo, Response, StreamResponse, target_of
from extender.embedded.requests.request_options import WriteOptions
from extender.embedded.responses import discovery, openapi
from extender.embedded.responses.presenter import Presenter
from extender.embedded.statuses import ApiStatus
from extender.embedded.store import list_pages, selections, versions, watch_streams
from extender.golang.schema import read_as, type_meta

MIN_WATCH_SECONDS: Final = 1800
"""A watch that names no end lasts so long, and up to twice as long. Upstream: MinRequestTimeout."""

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")

logger: Final = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class _Call:
    """A request, and what it is about."""

    request: Request
    target: RequestInfo
    form: Form

    @property
    def resource(self) -> Resource:
        return self.target.resource

    @property
    def namespace(self) -> str:
        return self.target.namespace

    @property
    def name(self) -> str:
        return self.target.name


@final
class KubeApi:
    """Answers requests as kube-apiserver would.

    Arguments:
        address: under which callers reach us, `host:port`; told by discovery.
    """

    def __init__(self, registry: ObjectRegistry, *, address: str = "") -> None:
        self.registry: Final = registry
        self._address = address

    def handle(self, request: Request) -> Response | StreamResponse:
        """The answer. A watch begins now, even if its first chunk is asked for later."""
        try:
            answer = self._answer(request)
        except ApiStatus as refusal:
            answer = _json(refusal.code, refusal.as_object(), refusal.headers)
        except Exception:
            # Nothing a caller sends may end the service, not even what nobody has thought of.
            logger.exception("%r %r", request.method, request.path)
            answer = _json(500, statuses.internal_error("the request could not be processed").as_object())
        headers = {"Audit-Id": self._audit_id(request), "Cache-Control": "no-cache, private", **answer.headers}
        if isinstance(answer, StreamResponse):
            return StreamResponse(answer.status, answer.chunks, headers)
        return Response(answer.status, b"" if request.method == "HEAD" else answer.body, headers)

    def _audit_id(self, request: Request) -> str:
        return request.headers.get("audit-id") or str(uuid.UUID(int=self.registry.rng.getrandbits(128), version=4))

    def _answer(self, request: Request) -> Response | StreamResponse:
        target = target_of(request.path)
        if target is None:
            return self._document(request)
        verb = _verb(request, target)
        form = media_types.accepted(request.headers.get("accept", ""))
        return self._VERBS[verb](self, _Call(request, target, form))

    def _document(self, request: Request) -> Response:
        if request.path in HEALTH_PATHS:
            # There is nothing that could still be missing: the objects are in this process.
            return Response(200, b"ok", {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"})
        accept = request.headers.get("accept", "")
        described = openapi.answer(request.path, accept)
        if described is not None:
            if request.method not in ("GET", "HEAD"):
                raise statuses.method_not_allowed()
            return Response(200, described[1], {"Content-Type": described[0]})
        document = discovery.answer(request.path, accept, address=self._address)
        if document is None:
            raise statuses.page_not_found()
        if request.method not in ("GET", "HEAD"):
            raise statuses.method_not_allowed()
        headers = {"Content-Type": document.content_type, "Cache-Control": document.cache_control}
        return Response(200, orjson.dumps(document.body), headers)

    # Reading.

    def _get(self, call: _Call) -> Response:
        asked = list_pages.parse_resource_version(request_options.text(call.request.query, "resourceVersion"))
        store = self.registry.store
        if asked > store.resource_version:
            raise statuses.too_large_resource_version(asked, store.resource_version)
        if call.target.subresource == "scale" or call.form.shape:
            obj = self.registry.get(call.resource, call.namespace, call.name, call.target.subresource)
            return self._shown(call, 200, obj)
        stored = store.get(call.resource, call.namespace, call.name)
        if stored is None:
            raise statuses.not_found(call.resource, call.name)
        return Response(200, versions.body(call.resource, stored), {"Content-Type": media_types.JSON})

    def _list(self, call: _Call) -> Response | StreamResponse:
        options = request_options.list_options(call.request.query, watch=call.target.is_watch)
        selected = selections.selection(call.resource, options.label_selector, options.field_selector)
        if call.name:
            selected = selections.named(call.resource, selected, call.name)
        if options.watch:
            return self._watch(call, options, selected)
        page = list_pages.page(self.registry.store, call.resource, call.namespace, selected, options)
        return Response(200, self._presenter(call).listed(page), {"Content-Type": media_types.JSON})

    def _watch(self, call: _Call, options: request_options.ListOptions, selected: selections.ObjectSelection) -> StreamResponse:
        seconds = options.timeout_seconds or MIN_WATCH_SECONDS * (1 + self.registry.rng.random())
        presenter = self._presenter(call)
        try:
            watch = watch_streams.watch(
                self.registry.store,
                call.resource,
                call.namespace,
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

    # Writing.

    def _create(self, call: _Call) -> Response:
        media_type = media_types.of_body(call.request.headers.get("content-type", ""), request_bodies.MEDIA_TYPES, request_bodies.JSON)
        body = _limited(call.request)
        write = self._write_options(call, "CreateOptions")
        sub = call.target.subresource
        if sub == "eviction":
            raw = request_bodies.typed(body, media_type, "policy", "v1", "Eviction")
            return self._shown(call, 201, pod_subresources.evict(self.registry, call.namespace, call.name, raw, write), write)
        if sub == "binding" or call.resource is BINDINGS:
            raw = request_bodies.typed(body, media_type, "", "v1", "Binding")
            return self._shown(call, 201, pod_subresources.bind(self.registry, call.namespace, call.name, raw, write), write)
        raw = self._typed(call, body, media_type)
        return self._shown(call, 201, self.registry.create(call.resource, call.namespace, raw, write), write)

    def _update(self, call: _Call) -> Response:
        body = _limited(call.request)
        write = self._write_options(call, "UpdateOptions")
        media_type = media_types.of_body(call.request.headers.get("content-type", ""), request_bodies.MEDIA_TYPES, request_bodies.JSON)
        sub = call.target.subresource
        is_scale = sub == "scale"
        raw = request_bodies.typed(body, media_type, "autoscaling", "v1", "Scale") if is_scale else self._typed(call, body, media_type)
        obj = self.registry.update(call.resource, call.namespace, call.name, raw, write, subresource=sub)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _patch(self, call: _Call) -> Response:
        media_type = media_types.of_body(call.request.headers.get("content-type", ""), TYPES)
        body = _limited(call.request)
        write = self._write_options(call, "PatchOptions", is_apply=media_type == TYPES[-1])
        try:
            value = request_bodies.parse(body, request_bodies.YAML if media_type == TYPES[-1] else request_bodies.JSON)
        except ValueError as error:
            why = f"error encoding patch: {error}" if media_type == TYPES[-1] else "invalid JSON patch"
            raise statuses.bad_request(why) from error
        patch = Patch(media_type, value)
        obj = self.registry.patch(call.resource, call.namespace, call.name, patch, write, subresource=call.target.subresource)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _delete(self, call: _Call) -> Response:
        options = self._delete_options(call)
        result = self.registry.delete(call.resource, call.namespace, call.name, options)
        is_left = self.registry.store.get(call.resource, call.namespace, call.name) is not None
        # Accepted, not done: told only to those who ask in the old way. Upstream: handlers/delete.go.
        return self._shown(call, 202 if is_left and options.get("orphanDependents") is False else 200, result)

    def _delete_collection(self, call: _Call) -> Response:
        list_options = request_options.list_options(call.request.query)
        selected = selections.selection(call.resource, list_options.label_selector, list_options.field_selector)
        options = self._delete_options(call)
        page = list_pages.page(self.registry.store, call.resource, call.namespace, selected, list_options)
        for stored in page.objects:
            try:
                self.registry.delete(call.resource, stored.namespace, stored.name, options)
            except ApiStatus as refusal:
                if refusal.code != 404:
                    raise
        return Response(200, self._presenter(call).listed(page), {"Content-Type": media_types.JSON})

    def _write_options(self, call: _Call, kind: str, *, is_apply: bool = False) -> WriteOptions:
        return request_options.write_options(call.request.query, call.request.headers.get("user-agent", ""), kind, is_apply=is_apply)

    def _delete_options(self, call: _Call) -> Object:
        """From the body or, if there is none, from the request_options."""
        body = _limited(call.request)
        if not body:
            return request_options.delete_options(call.request.query)
        media_type = media_types.of_body(call.request.headers.get("content-type", ""), request_bodies.MEDIA_TYPES, request_bodies.JSON)
        try:
            value = request_bodies.parse(body, media_type)
            _, kind = type_meta(value)
            if kind not in ("", "DeleteOptions"):
                raise ValueError(f'no kind "{kind}" is registered for the internal version of group "meta.k8s.io"')
            options, _ = read_as(schema.lookup("", "v1", "DeleteOptions"), value or {})
        except ValueError as error:
            raise statuses.bad_request(str(error)) from error
        return request_options.checked_delete_options(options)

    def _typed(self, call: _Call, body: bytes, media_type: str) -> Any:
        resource = call.resource
        return request_bodies.typed(body, media_type, resource.group, resource.version, resource.kind)

    def _shown(self, call: _Call, code: int, obj: Object, write: WriteOptions | None = None) -> Response:
        headers = {"Content-Type": media_types.JSON}
        if write is not None and write.warnings:
            headers["Warning"] = ", ".join(map(_warning, dict.fromkeys(write.warnings)))
        return Response(code, self._presenter(call).one(obj), headers)

    def _presenter(self, call: _Call) -> Presenter:
        kind = "Scale" if call.target.subresource == "scale" else ""
        return Presenter(call.resource, call.form, request_options.text(call.request.query, "includeObject"), self.registry.now, kind)

    _VERBS: Final[Mapping[str, Callable[["KubeApi", _Call], Response | StreamResponse]]] = {
        "get": _get,
        "list": _list,
        "create": _create,
        "update": _update,
        "patch": _patch,
        "delete": _delete,
        "deletecollection": _delete_collection,
    }


def _verb(request: Request, target: RequestInfo) -> str:
    """What the request wants done. Upstream: request/requestinfo.go, NewRequestInfo."""
    resource, method = target.resource, request.method
    if target.name:
        verb = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, "")
        if target.subresource and method == "POST":
            verb = "create"
    else:
        verb = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}.get(method, "")
    offered = resource.verbs
    if target.subresource:
        below = resource.subresource(target.subresource)
        if below is None:
            raise statuses.page_not_found()
        offered = below.verbs
    is_creation_elsewhere = verb == "create" and resource.namespaced and not target.namespace
    if verb not in offered or is_creation_elsewhere:
        raise statuses.method_not_allowed()
    if target.is_watch or (verb == "get" and not target.subresource and request_options.flag(request.query, "watch")):
        return "list"
    return verb


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
