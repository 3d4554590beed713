"""The answer to a what-if as a page shows it: which nodes change and how, and where evicted pods land. And links to
what-ifs: the fields of the form in the fragment of an address, which a browser sends to nobody; and the same as a
command.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from shlex import quote as quoted
from typing import Final, Generic, TypeVar, final
from urllib.parse import quote, urlencode

import msgspec

from api.ui.changes import NodeChange
from api.ui.wording import requested
from extender.answers.overviews import NodeOnMap, PodOnNode
from extender.answers.parts import PodName
from extender.answers.types import Eviction, Fix, Placement, WhatIf, WhatIfRequest
from reprieve.sources.manifest_text import written

T = TypeVar("T")
_NOBODY: Final = PodName(namespace="", name="")
_OWN_PART: Final = re.compile(r"-[a-z0-9]{1,5}$")
"""What a controller appends to the names of its pods."""


@final
@dataclass(frozen=True, slots=True)
class Move:
    """A pod that moves to another node: an arrow on the map."""

    start: str
    end: str
    words: str


@final
@dataclass(frozen=True, slots=True)
class Alike(Generic[T]):
    """Rows that differ only in the name of their pod: the first of them, and the names of all."""

    row: T
    pods: tuple[PodName, ...]


def placements_alike(placements: Iterable[Placement]) -> list[Alike[Placement]]:
    return _grouped_rows(placements, lambda row: row.pod, lambda row: msgspec.structs.replace(row, pod=_NOBODY))


def evictions_alike(evictions: Iterable[Eviction]) -> list[Alike[Eviction]]:
    """Returns the evictions, those that say the same of several pods once; their order tells what follows from what."""
    groups: list[Alike[Eviction]] = []
    for _, same_evictions in groupby(evictions, lambda row: (row.node, row.why, row.by, row.depth)):
        groups += _grouped_rows(
            same_evictions,
            lambda row: row.victim.pod,
            lambda row: msgspec.structs.replace(
                row, victim=msgspec.structs.replace(row.victim, pod=_NOBODY, started=None)
            ),
        )
    return groups


def _grouped_rows(rows: Iterable[T], pod: Callable[[T], PodName], unnamed: Callable[[T], T]) -> list[Alike[T]]:
    together: dict[object, list[T]] = {}
    for row in rows:
        name = pod(row)
        together.setdefault(
            (name.namespace, _OWN_PART.sub("", name.name), name.priority, repr(unnamed(row))), []
        ).append(row)
    return [Alike(members[0], tuple(map(pod, members))) for members in together.values()]


def changed_nodes(answer: WhatIf) -> list[str]:
    """Returns the names of nodes that lose or get pods; those that lose most come first."""
    node_names = [placement.node for placement in answer.placements]
    node_names += [name for eviction in answer.evictions for name in (eviction.node, eviction.lands_on)]
    losses = Counter(eviction.node for eviction in answer.evictions)
    return sorted(filter(None, dict.fromkeys(node_names)), key=lambda name: -losses[name])


def node_changes(answer: WhatIf, nodes: Mapping[str, NodeOnMap]) -> list[NodeChange]:
    sizes = {pod.pod.uid: pod for node in nodes.values() for pod in node.pods}
    leaves: dict[str, set[str]] = defaultdict(set)
    arrives: dict[str, list[PodOnNode]] = defaultdict(list)
    landed = {_key(placement.pod) for placement in answer.placements if placement.cause == "evicted"}
    for eviction in answer.evictions:
        leaves[eviction.node].add(eviction.victim.pod.uid)
        if eviction.lands_on and _key(eviction.victim.pod) not in landed:
            arrives[eviction.lands_on].append(_as_new(eviction.victim.pod, sizes))
    for placement in answer.placements:
        if placement.node:
            cpu, memory = requested(placement.requests)
            new_pod = _as_new(placement.pod, sizes)
            arrives[placement.node].append(
                PodOnNode(pod=new_pod.pod, cpu=cpu or new_pod.cpu, memory=memory or new_pod.memory)
            )
    return [NodeChange(node, frozenset(leaves[name]), tuple(arrives[name])) for name, node in nodes.items()]


def moves(evictions: Iterable[Eviction]) -> list[Move]:
    return [
        Move(
            eviction.node,
            eviction.lands_on,
            f"{eviction.victim.pod.name or 'a pod'} moves from {eviction.node} to {eviction.lands_on}"
            + (", once its budget allows it" if eviction.waits_for else ""),
        )
        for eviction in evictions
        if eviction.lands_on and eviction.lands_on != eviction.node
    ]


def _as_new(pod: PodName, sizes: Mapping[str, PodOnNode]) -> PodOnNode:
    """The pod as it arrives on another node: under another UID than the pod that leaves."""
    current = sizes.get(pod.uid)
    new_name = msgspec.structs.replace(pod, uid=f"new {pod.uid or _key(pod)}")
    return PodOnNode(pod=new_name, cpu=current.cpu if current else 0, memory=current.memory if current else 0)


def _key(pod: PodName) -> str:
    return f"{pod.namespace}/{pod.name}"


SAMPLE: Final = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: sample
value: 100000
---
apiVersion: v1
kind: Pod
metadata:
  name: sample
spec:
  priorityClassName: sample
  containers:
  - name: main
    image: registry.example/app:1
    resources:
      requests: {cpu: "2", memory: 1Gi}
"""


def fix_href(fix: Fix) -> str:
    """Returns the address of a what-if that tries the change; empty if nothing can be tried."""
    if not fix.objects:
        return ""
    fields = {"manifest": written(fix.objects)}
    if fix.add_like:
        fields |= {"like": fix.add_like, "count": "1"}
    return f"/ui/what-if#{urlencode(fields, quote_via=quote)}"


def command(question: WhatIfRequest, manifest: str, configuration: str) -> str:
    """Returns the command that asks the same, with the pasted texts as files to be written before."""
    words = ["reprieve", "whatif", *_flags("--drain", question.drain_nodes), *_flags("--remove", question.remove_nodes)]
    for addition in question.add_nodes:
        words += ["--add-nodes", str(addition.count), "--like", quoted(addition.like)]
    if configuration.strip():
        words += ["--with-config", "config.yaml"]
    if question.include_pending:
        words.append("--pending")
    before = f"cat > config.yaml <<'END'\n{configuration.rstrip()}\nEND\n" if configuration.strip() else ""
    after = f" -f - <<'END'\n{manifest.rstrip()}\nEND" if manifest.strip() else ""
    return before + " ".join(words) + after


def _flags(option: str, names: Sequence[str]) -> list[str]:
    return [word for name in names for word in (option, quoted(name))]
