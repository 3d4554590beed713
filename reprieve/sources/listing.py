"""The objects of a cluster as they are once: each kind is listed, and none is watched.

What may not be listed is a gap and no error. Namespaced kinds are listed namespace by namespace then.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from extender.answers.phrases import all_of
from extender.client.client import Client
from extender.client.errors import ApiError, Forbidden, NotFound, NotServed, Unauthorized
from extender.client.informers.listing import PAGE_SIZE, Lister, Listing
from extender.client.informers.reading import DoubtfulAnswerError, ObjectReader
from extender.engine.cache.cluster import Cluster
from extender.values.objects.cluster import Key
from extender.values.objects.kinds import WatchedKind

FINAL: Final = (Forbidden, NotFound, NotServed, Unauthorized)
"""Errors that come again if the list is repeated."""
PAUSE: Final = 0.3
"""Seconds before a list is repeated, unless the server wants more."""


class UnlistedError(Exception):
    """A list has failed, and not for want of rights."""

    def __init__(self, kind: WatchedKind[Any], why: ApiError | DoubtfulAnswerError) -> None:
        super().__init__(f"{kind.resource} cannot be listed: {type(why).__name__}: {why}")


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """A kind that may not be listed in the whole cluster."""

    kind: WatchedKind[Any]
    why: str
    """What the API server said."""
    namespaces: frozenset[str] = frozenset()
    """Where it could be listed."""

    @property
    def is_total(self) -> bool:
        return not self.namespaces


def in_words(gaps: Iterable[Gap]) -> str:
    """Returns what can be listed, as a part of a sentence; kinds with equal gaps are together."""
    kinds: dict[frozenset[str], list[str]] = {}
    for gap in gaps:
        kinds.setdefault(gap.namespaces, []).append(gap.kind.plural)
    clauses = []
    for namespaces, plurals in kinds.items():
        where = f"can be listed in {', '.join(sorted(namespaces))} alone" if namespaces else "cannot be listed"
        clauses.append(f"{all_of(plurals)} {where}")
    return all_of(clauses)


Gaps = Mapping[str, Gap]
"""Plural of a kind -> its gap."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """What could be listed of a cluster."""

    cluster: Cluster
    gaps: Gaps
    unreadable: Mapping[Key, str]
    """Objects that exist and are left out, with the reason."""


async def list_cluster(
    client: Client,
    kinds: Sequence[WatchedKind[Any]],
    namespaces: Collection[str],
    patience: float,
    show: Callable[[str], None],
) -> Listed:
    """Returns the cluster once every kind was listed; a list may fail for `patience` seconds.

    Arguments:
        namespaces: those in which namespaced kinds are listed that may not be listed in all.
        show: called with the kinds that are still missing.

    Raises:
        UnlistedError: a list has failed; one of an ExceptionGroup if several have.
    """
    unlisted = {kind.resource: None for kind in kinds}

    async def list_kind(kind: WatchedKind[Any]) -> tuple[Listing[Any], Gap | None]:
        outcome = await _listed(client, kind, namespaces, patience)
        del unlisted[kind.resource]
        if unlisted:
            show(f"listing {', '.join(unlisted)}")
        return outcome

    show(f"listing {', '.join(unlisted)}")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(list_kind(kind), name=f"list of {kind.resource}") for kind in kinds]
    cluster, unreadable = Cluster(), dict[Key, str]()
    for listing, _ in (task.result() for task in tasks):
        unreadable |= listing.unreadable
        for item in listing.objects.values():
            cluster.changed(None, item)
    gaps = {gap.kind.plural: gap for _, gap in (task.result() for task in tasks) if gap is not None}
    return Listed(cluster, gaps, unreadable)


async def _listed(
    client: Client, kind: WatchedKind[Any], namespaces: Iterable[str], patience: float
) -> tuple[Listing[Any], Gap | None]:
    try:
        return await _all_of(client, kind, None, patience), None
    except Forbidden as exc:
        refused = exc
    listing, may = Listing[Any](), set[str]()
    for namespace in namespaces if kind.is_namespaced else ():
        try:
            part = await _all_of(client, kind, namespace, patience)
        except Forbidden:
            continue
        may.add(namespace)
        listing.objects |= part.objects
        listing.unreadable |= part.unreadable
    return listing, Gap(kind, refused.message, frozenset(may))


async def _all_of(client: Client, kind: WatchedKind[Any], namespace: str | None, patience: float) -> Listing[Any]:
    """Returns the newest list of a kind, which is empty if the server does not have it. Raises Forbidden."""
    served = kind
    while True:
        try:
            return await _repeated(Lister(client, served, ObjectReader(served), namespace), served, patience)
        except (NotFound, NotServed) as exc:
            if not kind.may_be_unknown:
                raise UnlistedError(kind, exc) from exc
            if served is not kind or not kind.other_api_version:
                return Listing()
            served = replace(kind, api_version=kind.other_api_version, other_api_version="")


async def _repeated(lister: Lister[Any], kind: WatchedKind[Any], patience: float) -> Listing[Any]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + patience
    while True:
        try:
            return await lister.list("", page_size=PAGE_SIZE)
        except (Forbidden, NotFound, NotServed):
            raise
        except (ApiError, DoubtfulAnswerError) as exc:
            pause = max(PAUSE, (exc.retry_after or 0.0) if isinstance(exc, ApiError) else 0.0)
            if isinstance(exc, Unauthorized) or loop.time() + pause > ends:
                raise UnlistedError(kind, exc) from exc
            await asyncio.sleep(pause)
