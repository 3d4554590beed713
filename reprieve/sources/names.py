"""Names that a shell offers: those of a kubeconfig, of a cluster that answers at once, and of a dump in JSON."""

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from reprieve.sources.reaching import target_of

Kind = Literal["pods", "nodes", "namespaces"]
Name = tuple[str, str]
"""(namespace, name); the namespace is empty for nodes and namespaces."""

_MOST: Final = "500"


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Names(msgspec.Struct):
    items: list[_Named] = []


def contexts(kubeconfig: Path | None) -> list[str]:
    """Returns the contexts of the kubeconfig, or of those that kubectl would read. Raises CredentialsError."""
    from extender.client.credentials.kubeconfig_files import read_files  # noqa: PLC0415 - YAML takes a while to load

    listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(":") if name]
    files = [kubeconfig] if kubeconfig is not None else listed or [Path.home() / ".kube" / "config"]
    return [*read_files([file for file in files if file.exists()]).contexts]


def names_in_cluster(
    kubeconfig: Path | None, context: str | None, kind: Kind, namespace: str
) -> Coroutine[Any, Any, list[Name]]:
    """Asks the API server for its first names. Raises StartUpError at the call if a kubeconfig cannot be used."""
    from extender.client.client import Client  # noqa: PLC0415 - contexts and dumps need none

    client = Client(target_of(kubeconfig, context))
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if kind == "pods" else f"/api/v1/{kind}"

    async def listed() -> list[Name]:
        async with aclosing(client):
            names = msgspec.json.decode(await client.get(path, params={"limit": _MOST}), type=_Names)
        return [(obj.metadata.namespace, obj.metadata.name) for obj in names.items]

    return listed()


async def names_in_dump(dump: Path, kind: Kind) -> list[Name]:
    """Returns the names in a file that holds one List, as kubectl get -o json prints it. Raises DecodeError."""
    objects = msgspec.json.decode(await asyncio.to_thread(dump.read_bytes), type=_Names).items
    return list(dict.fromkeys(_names_among(objects, kind)))


def _names_among(objects: list[_Named], kind: Kind) -> Iterator[Name]:
    for obj in objects:
        if kind == "namespaces" and obj.kind == "Pod":
            yield "", obj.metadata.namespace or "default"
        elif f"{obj.kind.lower()}s" == kind:
            yield (obj.metadata.namespace or "default") if kind == "pods" else "", obj.metadata.name
