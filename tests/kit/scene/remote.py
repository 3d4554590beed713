"""An API server in another process, asked as the story asks: one question after the other, while the scheduler
waits.
"""

import builtins
import json
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, final

import httpx

from extender.client.paths import path
from extender.rules.api_resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Object,
    Resource,
)
from extender.values.targets.target import Fixed, Target
from extender.values.targets.tls import context
from tests.kit.objects import PRIORITIES

_ALL: Final = (
    PODS, POD_GROUPS, POD_DISRUPTION_BUDGETS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES,
    CSI_DRIVERS, CSI_NODES,
    CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES, NODES,
    PRIORITY_CLASSES, EVENTS,
)  # fmt: skip
_KEPT: Final = {priority["metadata"]["name"] for priority in PRIORITIES}
_ADMISSION_SECONDS: Final = 5.0
"""A priority class is known to admission a moment after it was created."""


class Api(Protocol):
    """What a story does with the objects of a cluster. The registry of a cluster in memory is one; `RemoteApi` is the
    other.
    """

    def get(self, resource: Resource, namespace: str, name: str) -> Object: ...

    def list(self, resource: Resource, namespace: str | None = None) -> "list[Object]": ...

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object: ...

    def update(
        self, resource: Resource, namespace: str, name: str, obj: Object, *, subresource: str = ""
    ) -> Object: ...

    def delete(self, resource: Resource, namespace: str, name: str, options: Object | None = None) -> Object: ...


class RefusedError(Exception):
    """The server would not."""


class ConflictError(RefusedError):
    """Somebody else came first."""


class NotFoundError(RefusedError):
    """There is no such object, or no longer."""


def change(
    api: Api,
    resource: Resource,
    namespace: str,
    name: str,
    *changes: Callable[[Object], Any],
    subresource: str = "",
    tries: int = 5,
) -> None:
    """An object is changed in place, as it is by then: a scheduler or a controller may write to it at the same time."""
    obj = api.get(resource, namespace, name)
    for edit in changes:
        edit(obj)
    try:
        api.update(resource, namespace, name, obj, subresource=subresource)
    except ConflictError:
        if tries == 1:
            raise
        change(api, resource, namespace, name, *changes, subresource=subresource, tries=tries - 1)


@final
class RemoteApi:
    """An `Api` over HTTP."""

    def __init__(self, target: Target) -> None:
        assert isinstance(target.credentials, Fixed)
        authorization = target.credentials.fixed.authorization
        headers = {"Authorization": authorization} if authorization else {}
        self._http = httpx.Client(
            base_url=target.server, headers=headers, verify=verification(target), trust_env=False, timeout=30
        )
        self.touched: set[Resource] = set()
        """Kinds of which objects were written or deleted here."""

    def close(self) -> None:
        self._http.close()

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._ask("GET", _path(resource, namespace, name))

    def list(self, resource: Resource, namespace: str | None = None) -> "list[Object]":
        items: list[Object] = self._ask("GET", _path(resource, namespace or ""))["items"]
        return items

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        self.touched.add(resource)
        created = self._created(_path(resource, namespace), body)
        # Most kinds are created without their status, whatever it says.
        if obj.get("status") and not created.get("status", {}).items() >= obj["status"].items():
            name, status = obj["metadata"]["name"], obj["status"]
            change(
                self,
                resource,
                namespace,
                name,
                lambda current: current.setdefault("status", {}).update(status),
                subresource="status",
            )
            return self.get(resource, namespace, name)
        return created

    def update(self, resource: Resource, namespace: str, name: str, obj: Object, *, subresource: str = "") -> Object:
        self.touched.add(resource)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return self._ask("PUT", _path(resource, namespace, name, subresource), body)

    def delete(self, resource: Resource, namespace: str, name: str, options: Object | None = None) -> Object:
        self.touched.add(resource)
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        return self._ask("DELETE", _path(resource, namespace, name), body)

    def bind(self, namespace: str, name: str, binding: Object) -> None:
        self._ask("POST", _path(PODS, namespace, name, "binding"), {"apiVersion": "v1", "kind": "Binding", **binding})

    def version(self) -> int:
        """How far history is."""
        return int(self._ask("GET", _path(PODS, ""))["metadata"]["resourceVersion"])

    def changes(self, resource: Resource, since: int) -> builtins.list[Object]:
        """The objects as they became, one after the other."""
        query = f"?watch=1&resourceVersion={since}&timeoutSeconds=1"
        answer = self._http.get(_path(resource, "") + query)
        events = [json.loads(line) for line in answer.text.splitlines() if line]
        return [event["object"] for event in events if event["type"] != "BOOKMARK"]

    def clear(self) -> None:
        """Nothing is left of the stories before, and there is a namespace for the next one."""
        self._try(
            "POST", path("", "v1", "namespaces"), {"metadata": {"name": "default"}}
        )  # it may take a new server a while
        default = self.get(NAMESPACES, "", "default")
        default["metadata"]["labels"] = {"kubernetes.io/metadata.name": "default"}
        default["metadata"].pop("annotations", None)
        self.update(NAMESPACES, "", "default", default)
        for resource in _ALL:
            for obj in self.list(resource):
                meta = obj["metadata"]
                if resource is PRIORITY_CLASSES and (meta["name"] in _KEPT or meta["name"].startswith("system-")):
                    continue
                if meta.get("finalizers"):
                    del meta["finalizers"], meta["resourceVersion"]
                    self.update(resource, meta.get("namespace", ""), meta["name"], obj)
                self.touched.add(resource)  # a first list may still show it
                self._try("DELETE", _path(resource, meta.get("namespace", ""), meta["name"]), {"gracePeriodSeconds": 0})

    def _created(self, where: str, body: Object) -> Object:
        deadline = time.monotonic() + _ADMISSION_SECONDS
        while True:
            answer = self._try("POST", where, body)
            if answer.status_code == 403 and "no PriorityClass" in answer.text and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            return _content_of(answer)

    def _ask(self, method: str, where: str, body: Any = None) -> Object:
        return _content_of(self._try(method, where, body))

    def _try(self, method: str, where: str, body: Any = None) -> httpx.Response:
        return self._http.request(method, where, json=body)


def verification(target: Target) -> ssl.SSLContext | bool:
    """How httpx knows the server."""
    return context(target.tls.read()) if target.server.startswith("https") else True


def _content_of(answer: httpx.Response) -> Object:
    content: Object = answer.json()
    if answer.is_error:
        refused = {"Conflict": ConflictError, "NotFound": NotFoundError}.get(content.get("reason", ""), RefusedError)
        raise refused(f"{answer.request.method} {answer.request.url.path}: {content.get('message', content)}")
    return content


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    return path(
        resource.group,
        resource.version,
        resource.plural,
        namespace=namespace or None,
        name=name or None,
        subresource=subresource or None,
    )
