"""Kubernetes' REST semantics over an ObjectRegistry: `KubeApi.handle` answers one request, without an HTTP server.

Upstream: apiserver/pkg/endpoints, installer.go, handlers.
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import orjson

from extender.rules import statuses
from extender.rules.api_resources import BINDINGS, Object, Resource
from extender.rules.schema import api_types
from extender.rules.statuses import ApiStatus
from extender.values import limits
from extender.values.golang.schema import read_as, type_meta
from reprieve.cluster import refusals
from reprieve.cluster.patches.patch_types import TYPES, Patch
from reprieve.cluster.registry import subresources
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.requests import request_bodies, request_options
from reprieve.cluster.requests.request_info import (
    JSON,
    Form,
    Request,
    RequestInfo,
    accepted_form,
    body_media_type,
    request_info,
)
from reprieve.cluster.requests.request_options import WriteOptions
from reprieve.cluster.responses import discovery, openapi
from reprieve.cluster.responses.response import Presenter, Response, StreamResponse
from reprieve.cluster.store import list_pages, selections, stored_objects, watch_streams
from reprieve.cluster.store.custom_resources import custom_resources

MIN_WATCH_SECONDS: Final = 1800
"""The shortest duration of a watch that names none; the longest is twice as much. Upstream: MinRequestTimeout."""

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")

logger: Final = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class _Call:
    request: Request
    info: RequestInfo
    form: Form

    @property
    def resource(self) -> Resource:
        return self.info.resource

    @property
    def place(self) -> tuple[Resource, str, str]:
        """Returns the resource, the namespace and the name in the request."""
        return self.info.resource, self.info.namespace, self.info.name


@final
class KubeApi:
    """Answers requests as kube-apiserver does.

    Arguments:
        address: the `host:port` under which callers reach this server, for the discovery documents.
        keep: writes the changes to a disk. Raises OSError.
    """

    def __init__(
        self, registry: ObjectRegistry, *, address: str = "", keep: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.registry: Final = registry
        self._address = address
        self._keep = keep

    async def answer(self, request: Request) -> Response | StreamResponse:
        """Answers a request as `handle` does; a write once it is on disk, or with 500 if it cannot be."""
        answer = self.handle(request)
        if self._keep is not None and request.method != "GET":
            try:
                await self._keep()
            except OSError as exc:
                why = f"the last writes are in memory, but not in the file of the cluster: {exc.strerror or exc}"
                return self._finished(request, self._refusal(request, refusals.internal_error(why)))
        return answer

    def handle(self, request: Request) -> Response | StreamResponse:
        """Returns the answer. A watch begins now, even if its first chunk is asked for later."""
        try:
            answer = self._answer(request)
        except Exception as error:
            answer = self._refusal(request, error)
        return self._finished(request, answer)

    def _finished(self, request: Request, answer: Response | StreamResponse) -> Response | StreamResponse:
        headers = {"Audit-Id": self._audit_id(request), "Cache-Control": "no-cache, private", **answer.headers}
        if isinstance(answer, StreamResponse):
            return StreamResponse(answer.status, answer.chunks, headers)
        return Response(answer.status, b"" if request.method == "HEAD" else answer.body, headers)

    def _refusal(self, request: Request, error: Exception) -> Response:
        if isinstance(error, ApiStatus):
            return _json(error.code, error.as_object(), error.headers)
        # No request may end the service.
        logger.error("%r %r", request.method, request.path, exc_info=error)
        return _json(500, refusals.internal_error("the request could not be processed").as_object())

    def _audit_id(self, request: Request) -> str:
        return request.headers.get("audit-id") or str(uuid.UUID(int=self.registry.rng.getrandbits(128), version=4))

    def _answer(self, request: Request) -> Response | StreamResponse:
        info = request_info(request, self.registry.features, custom_resources(self.registry.store))
        if info is None:
            return self._document(request)
        form = accepted_form(request.headers.get("accept", ""))
        return self._VERBS[info.verb](self, _Call(request, info, form))

    def _document(self, request: Request) -> Response:
        if request.path in HEALTH_PATHS:
            return Response(
                200, b"ok", {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
            )
        accept = request.headers.get("accept", "")
        described = openapi.answer(request.path, accept, features=self.registry.features)
        if described is None:
            custom = custom_resources(self.registry.store)
            document = discovery.answer(
                request.path, accept, address=self._address, features=self.registry.features, custom=custom
            )
            if document is None:
                raise refusals.page_not_found()
            headers = {"Content-Type": document.content_type, "Cache-Control": document.cache_control}
            answer = Response(200, orjson.dumps(document.body), headers)
        else:
            answer = Response(200, described[1], {"Content-Type": described[0]})
        if request.method not in ("GET", "HEAD"):
            raise refusals.method_not_allowed()
        return answer

    # --- reading

    def _get(self, call: _Call) -> Response:
        version = list_pages.parse_resource_version(request_options.text(call.request.query, "resourceVersion"))
        store = self.registry.store
        if version > store.resource_version:
            raise refusals.too_large_resource_version(version, store.resource_version)
        if call.info.subresource == "scale":
            return self._shown(call, 200, subresources.scale_of(call.resource, self.registry.get(*call.place)))
        if call.form.shape:
            return self._shown(call, 200, self.registry.get(*call.place))
        stored = self.registry.stored(*call.place)
        return Response(200, stored_objects.body(call.resource, stored), {"Content-Type": JSON})

    def _list(self, call: _Call) -> Response | StreamResponse:
        options = request_options.list_options(call.request.query, watch=call.info.is_watch)
        selected = selections.selection(call.resource, options.label_selector, options.field_selector)
        if call.info.name:
            selected = selections.named(call.resource, selected, call.info.name)
        if options.watch:
            return self._watch(call, options, selected)
        page = list_pages.page(self.registry.store, call.resource, call.info.namespace, selected, options)
        return self._listed(call, page)

    def _listed(self, call: _Call, page: list_pages.Page) -> Response:
        return Response(200, self._presenter(call).listed(page), {"Content-Type": JSON})

    def _watch(
        self, call: _Call, options: request_options.ListOptions, selected: selections.ObjectSelection
    ) -> StreamResponse:
        seconds = options.timeout_seconds or MIN_WATCH_SECONDS * (1 + self.registry.rng.random())
        presenter = self._presenter(call)
        try:
            watch = watch_streams.Watch(
                self.registry.store,
                call.resource,
                call.info.namespace,
                selected,
                options,
                seconds=seconds,
                encode=presenter.event(),
                encode_bookmark=presenter.bookmark,
            )
        except ApiStatus as refusal:
            if refusal.code not in (410, 504):
                raise
            return StreamResponse(200, _once(watch_streams.error_event(refusal)), {"Content-Type": JSON})
        return StreamResponse(200, watch.chunks(), {"Content-Type": JSON})

    # --- writing

    def _create(self, call: _Call) -> Response:
        media_type = self._media_type(call)
        body = _limited(call.request)
        write = self._write_options(call, "CreateOptions")
        _, namespace, name = call.place
        if call.info.subresource == "eviction":
            raw = request_bodies.typed(body, media_type, "policy", "v1", "Eviction")
            obj = subresources.evict(self.registry, namespace, name, raw, write)
        elif call.info.subresource == "binding" or call.resource is BINDINGS:
            raw = request_bodies.typed(body, media_type, "", "v1", "Binding")
            obj = subresources.bind(self.registry, namespace, name, raw, write)
        else:
            obj = self.registry.create(call.resource, namespace, self._typed(call, body, media_type), write)
        return self._shown(call, 201, obj, write)

    def _update(self, call: _Call) -> Response:
        body = _limited(call.request)
        write = self._write_options(call, "UpdateOptions")
        media_type = self._media_type(call)
        if call.info.subresource == "scale":
            scale = request_bodies.typed(body, media_type, "autoscaling", "v1", "Scale")
            obj = subresources.rescale(self.registry, *call.place, lambda _: scale, write)
        else:
            raw = self._typed(call, body, media_type)
            obj = self.registry.update(*call.place, raw, write, subresource=call.info.subresource)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _patch(self, call: _Call) -> Response:
        media_type = body_media_type(call.request.headers.get("content-type", ""), TYPES)
        body = _limited(call.request)
        write = self._write_options(call, "PatchOptions", is_apply=media_type == TYPES[-1])
        try:
            value = request_bodies.parse(body, request_bodies.YAML if media_type == TYPES[-1] else request_bodies.JSON)
        except ValueError as error:
            why = f"error encoding patch: {error}" if media_type == TYPES[-1] else "invalid JSON patch"
            raise statuses.bad_request(why) from error
        patch = Patch(media_type, value)
        if call.info.subresource == "scale":
            changed = partial(patch.of, subresources.scale_type())
            obj = subresources.rescale(self.registry, *call.place, changed, write)
        else:
            obj = self.registry.patch(*call.place, patch, write, subresource=call.info.subresource)
        return self._shown(call, 201 if write.created else 200, obj, write)

    def _delete(self, call: _Call) -> Response:
        options = self._delete_options(call)
        result = self.registry.delete(*call.place, options)
        is_left = self.registry.store.get(*call.place) is not None
        # Only requests with orphanDependents learn that the deletion was accepted, but is not done. Upstream:
        # handlers/delete.go.
        return self._shown(call, 202 if is_left and options.get("orphanDependents") is False else 200, result)

    def _delete_collection(self, call: _Call) -> Response:
        list_options = request_options.list_options(call.request.query)
        selected = selections.selection(call.resource, list_options.label_selector, list_options.field_selector)
        options = self._delete_options(call)
        page = list_pages.page(self.registry.store, call.resource, call.info.namespace, selected, list_options)
        for stored in page.objects:
            # Some objects of a page from the past may no longer exist.
            if self.registry.store.get(call.resource, stored.namespace, stored.name) is not None:
                self.registry.delete(call.resource, stored.namespace, stored.name, options)
        return self._listed(call, page)

    def _write_options(self, call: _Call, kind: str, *, is_apply: bool = False) -> WriteOptions:
        return request_options.write_options(
            call.request.query, call.request.headers.get("user-agent", ""), kind, is_apply=is_apply
        )

    def _delete_options(self, call: _Call) -> Object:
        """Returns the options in the body or, if there is none, in the query."""
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
        # Objects without a type have no field numbers and thus no protobuf form.
        supported = request_bodies.MEDIA_TYPES if call.resource.is_typed else request_bodies.MEDIA_TYPES[:2]
        return body_media_type(call.request.headers.get("content-type", ""), supported, request_bodies.JSON)

    def _typed(self, call: _Call, body: bytes, media_type: str) -> Any:
        resource = call.resource
        return request_bodies.typed(body, media_type, resource.group, resource.version, resource.kind)

    def _shown(self, call: _Call, code: int, obj: Object, write: WriteOptions | None = None) -> Response:
        headers = {"Content-Type": JSON}
        if write is not None and write.warnings:
            headers["Warning"] = ", ".join(map(_warning, dict.fromkeys(write.warnings)))
        return Response(code, self._presenter(call).one(obj), headers)

    def _presenter(self, call: _Call) -> Presenter:
        kind = "Scale" if call.info.subresource == "scale" else ""
        return Presenter(
            call.resource, call.form, request_options.text(call.request.query, "includeObject"), self.registry.now, kind
        )

    _VERBS: Final[Mapping[str, Callable[["KubeApi", _Call], Response | StreamResponse]]] = {
        "get": _get,
        "list": _list,
        "create": _create,
        "update": _update,
        "patch": _patch,
        "delete": _delete,
        "deletecollection": _delete_collection,
    }


def _limited(request: Request) -> bytes:
    if len(request.body) > limits.API_BODY_BYTES:
        raise refusals.too_large_body(limits.API_BODY_BYTES)
    return request.body


def _json(code: int, obj: Object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(code, orjson.dumps(obj), {"Content-Type": JSON, **(headers or {})})


def _warning(text: str) -> str:
    """Upstream: apimachinery/pkg/util/net/http.go, NewWarningHeader."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


async def _once(chunk: bytes) -> AsyncGenerator[bytes, None]:
    yield chunk
