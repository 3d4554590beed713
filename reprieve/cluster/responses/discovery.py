"""The discovery documents at /api, /apis and below, which list the served resources; and /version.

Upstream: apiserver/pkg/endpoints, discovery, handlers/negotiation; component-base/version.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

from extender import KUBERNETES_VERSION
from extender.rules.api_resources import RESOURCES, Object, Resource, Subresource, served
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates

PLAIN: Final = "application/json"
_AGGREGATED_GROUP: Final = "apidiscovery.k8s.io"
_AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED_VERSIONS: Final = ("v2", "v2beta1")

_Resources = tuple[Resource, ...]
_DOCUMENTS: Final = 128

VERSION: Final[Object] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": f"{KUBERNETES_VERSION}-reprieve",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
"""The document at /version: the version of the API, not of this program."""


@final
@dataclass(frozen=True, slots=True)
class Document:
    """The answer to a GET. Its body is shared and must not be changed."""

    body: Object
    content_type: str = PLAIN
    cache_control: str = "no-cache, private"


def answer(
    path: str,
    accept: str,
    *,
    address: str = "",
    features: FeatureGates = DEFAULT_FEATURES,
    custom: tuple[Resource, ...] = (),
) -> Document | None:
    """Returns the document at a path in the preferred form of the Accept header; None if there is none.

    `address` is the `host:port` under which callers reach this server.
    """
    resources = (*served(features), *custom)
    match path.strip("/").split("/"):
        case ["version"]:
            return Document(VERSION)
        case ["api" | "apis" as root]:
            version = _aggregated_version(accept)
            if version:
                content_type = f"{PLAIN};g={_AGGREGATED_GROUP};v={version};as={_AGGREGATED_KIND}"
                return Document(_aggregated(root == "api", version, resources), content_type, "public")
            return Document(_api_versions(address, resources) if root == "api" else _group_list(resources))
        case ["api", version]:
            return _resource_list("", version, resources)
        case ["apis", group]:
            return (
                Document({"kind": "APIGroup", "apiVersion": "v1", **_group(group, resources)})
                if group in _groups(resources)
                else None
            )
        case ["apis", group, version]:
            return _resource_list(group, version, resources)
    return None


def _aggregated_version(accept: str) -> str:
    """Returns the version of the aggregated form that the caller prefers; empty if it prefers the plain form."""
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        if media_type not in (PLAIN, "application/*", "*/*"):
            continue
        accepted = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if accepted.get("as") is None:
            return ""
        if (accepted.get("g"), accepted["as"]) == (_AGGREGATED_GROUP, _AGGREGATED_KIND) and accepted.get(
            "v"
        ) in _AGGREGATED_VERSIONS:
            return accepted["v"]
    return ""


def _groups(resources: _Resources) -> list[str]:
    """Returns the named groups in upstream's order of preference."""
    return list(dict.fromkeys(resource.group for resource in resources if resource.group))


def _versions(group: str, resources: _Resources) -> list[str]:
    return list(dict.fromkeys(resource.version for resource in resources if resource.group == group))


def _of_version(group: str, version: str, resources: _Resources) -> list[Resource]:
    matching = (resource for resource in resources if (resource.group, resource.version) == (group, version))
    return sorted(matching, key=lambda resource: resource.plural)


# --- the plain form


def _api_versions(address: str, resources: _Resources) -> Object:
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": _versions("", resources), "serverAddressByClientCIDRs": where}


@lru_cache(maxsize=_DOCUMENTS)
def _group_list(resources: _Resources) -> Object:
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group, resources) for group in _groups(resources)],
    }


def _group(name: str, resources: _Resources) -> Object:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(name, resources)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


@lru_cache(maxsize=_DOCUMENTS)
def _resource_list(group: str, version: str, resources: _Resources) -> Document | None:
    matching = _of_version(group, version, resources)
    if not matching:
        return None
    # Upstream's oldest document has no apiVersion.
    of_list = {"apiVersion": "v1"} if group else {}
    entries = [entry for resource in matching for entry in _entries(resource)]
    return Document(
        {"kind": "APIResourceList", **of_list, "groupVersion": matching[0].api_version, "resources": entries}
    )


def _entries(resource: Resource) -> Iterator[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    entry |= _names(resource)
    if resource.is_stored:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    yield entry
    for subresource in _subresources(resource):
        entry = {"name": f"{resource.plural}/{subresource.name}", "singularName": "", "namespaced": resource.namespaced}
        if subresource.group:
            entry |= {"group": subresource.group, "version": subresource.version}
        yield entry | {"kind": subresource.kind, "verbs": list(subresource.verbs)}


def _names(resource: Resource) -> Object:
    names: dict[str, Sequence[str]] = {"shortNames": resource.short_names, "categories": resource.categories}
    return {key: list(values) for key, values in names.items() if values}


def _subresources(resource: Resource) -> list[Subresource]:
    return sorted(resource.subresources, key=lambda subresource: subresource.name)


def _storage_version_hash(resource: Resource) -> str:
    """Returns a hash of the form in which a resource is stored. Upstream: discovery/storageversionhash.go."""
    stored = next((other for other in RESOURCES if other.stored_as == resource.stored_as), resource)
    digest = hashlib.sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


# --- the aggregated form


@lru_cache(maxsize=_DOCUMENTS)
def _aggregated(is_core: bool, version: str, resources: _Resources) -> Object:
    groups = [""] if is_core else _groups(resources)
    return {
        "kind": _AGGREGATED_KIND,
        "apiVersion": f"{_AGGREGATED_GROUP}/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [_whole(group, v, resources) for v in _versions(group, resources)],
            }
            for group in groups
        ],
    }


def _whole(group: str, version: str, resources: _Resources) -> Object:
    discovered = [_discovered(resource) for resource in _of_version(group, version, resources)]
    return {"version": version, "resources": discovered, "freshness": "Current"}


def _discovered(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind("", "", resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    entry |= _names(resource)
    below: list[dict[str, Any]] = [
        {
            "subresource": subresource.name,
            "responseKind": _kind(subresource.group, subresource.version, subresource.kind),
            "verbs": list(subresource.verbs),
        }
        for subresource in _subresources(resource)
    ]
    return entry | {"subresources": below} if below else entry


def _kind(group: str, version: str, kind: str) -> Object:
    # Upstream leaves the group and version of the resource itself out.
    return {"group": group, "version": version, "kind": kind}
