"""What a workload does with the pods that it has: which of them are too many, and which are of another template and are replaced.

Upstream: pkg/controller/deployment/rolling.go; pkg/controller/replicaset/replica_set.go, getPodsToDelete; pkg/controller/statefulset/
stateful_set_control.go (v1.36.2).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from extender.answers.templates import differences
from extender.objects.meta import Object
from extender.objects.pod import Pod
from extender.workloads.availability import fenceposts
from extender.workloads.deployments import hash_of
from extender.workloads.scale_down import DELETION_COST, deletion_rank
from extender.workloads.stateful_sets import REVISION_LABEL, ordinal_of, revision_name
from extender.workloads.templates import HASH_LABEL

_NAMED: Final = 4
"""Differences that are named."""


@final
@dataclass(frozen=True, slots=True)
class Rollout:
    """Pods of an old template give way to pods of the new one.

    Attributes:
        how: rolling: some new ones, then some old ones less, and so on; recreate: all old ones go first; ordered: one after the other,
            the highest ordinal first, each under the name of the one before.
        kept: pods that are of the new template already.
        old: the others; who goes first comes first.
        in_turn: of ordered ones: nothing moves before all have a place.
    """

    name: str
    how: Literal["rolling", "recreate", "ordered"]
    replicas: int
    kept: tuple[Pod, ...]
    old: tuple[Pod, ...]
    surge: int = 0
    unavailable: int = 0
    in_turn: bool = True


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of the pods that a workload has."""

    going: tuple[Pod, ...] = ()
    """There are too many of them."""
    rollout: Rollout | None = None
    notes: tuple[str, ...] = ()
    """What was taken for granted."""

    @property
    def leaving(self) -> tuple[Pod, ...]:
        """All who go sooner or later."""
        return (*self.going, *(self.rollout.old if self.rollout is not None else ()))


def plan_of(workload: Object, owned: Sequence[Pod]) -> Plan:
    """What the workload, as it is written now, does with the pods that it has."""
    kind = workload["kind"]
    if not owned:
        return Plan()
    if kind == "StatefulSet":
        return _of_stateful_set(workload, owned)
    if kind == "Job":
        spec = workload.get("spec") or {}
        parallelism = 0 if spec.get("suspend") else spec.get("parallelism", 1)
        return Plan(tuple(first_to_go(owned)[: max(len(owned) - parallelism, 0)]))
    if kind in ("Deployment", "ReplicaSet", "ReplicationController"):
        return _of_replicas(workload, owned)
    if kind == "DaemonSet":
        _, notes = _of_another_template(workload, owned)
        return Plan(notes=notes and (*notes, f"{_name(workload)}: an update of its pods is not followed here; they are taken as they are"))
    return Plan()


def _of_replicas(workload: Object, owned: Sequence[Pod]) -> Plan:
    spec = workload["spec"]
    replicas = spec.get("replicas", 1)
    old, notes = _of_another_template(workload, owned)
    in_order = first_to_go(owned)
    surplus = tuple(in_order[: max(len(owned) - replicas, 0)])
    if not old:
        return Plan(surplus, notes=notes)
    if workload["kind"] != "Deployment" or spec.get("paused"):
        why = "it is paused" if spec.get("paused") else f"a {workload['kind']} does not change pods that it has"
        return Plan(surplus, notes=(*notes, f"{_name(workload)}: these pods stay as they are: {why}"))
    how: Literal["rolling", "recreate"] = "recreate" if (spec.get("strategy") or {}).get("type") == "Recreate" else "rolling"
    surge, unavailable = fenceposts(spec)
    kept = tuple(pod for pod in in_order if pod.uid not in old)
    going = tuple(pod for pod in in_order if pod.uid in old)
    return Plan((), Rollout(_name(workload), how, replicas, kept, going, surge, unavailable), notes)


def _of_stateful_set(workload: Object, owned: Sequence[Pod]) -> Plan:
    spec, name = workload["spec"], workload["metadata"]["name"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    by_ordinal = {ordinal: pod for pod in owned if (ordinal := ordinal_of(pod.name, name)) is not None}
    wanted = range(first, first + spec.get("replicas", 1))
    going = tuple(by_ordinal[each] for each in sorted(by_ordinal, reverse=True) if each not in wanted)
    stays = {ordinal: pod for ordinal, pod in by_ordinal.items() if ordinal in wanted}
    old, notes = _of_another_template(workload, list(stays.values()))
    strategy = spec.get("updateStrategy") or {}
    from_here = max((strategy.get("rollingUpdate") or {}).get("partition", 0), 0)
    waits = [pod for ordinal, pod in stays.items() if pod.uid in old and (strategy.get("type") == "OnDelete" or ordinal < from_here)]
    if waits:
        why = "its updateStrategy is OnDelete" if strategy.get("type") == "OnDelete" else f"its partition is {from_here}"
        notes = (*notes, f"{_name(workload)}: {_some(waits)} as {_it(waits)} until somebody deletes {_them(waits)}: {why}")
    leaves = {pod.uid for pod in waits}
    replaced = tuple(stays[each] for each in sorted(stays, reverse=True) if stays[each].uid in old and stays[each].uid not in leaves)
    if not replaced:
        return Plan(going, notes=notes)
    gone = {pod.uid for pod in replaced}
    kept = tuple(pod for pod in stays.values() if pod.uid not in gone)
    in_turn = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
    return Plan(going, Rollout(_name(workload), "ordered", len(wanted), kept, replaced, in_turn=in_turn), notes)


def _of_another_template(workload: Object, owned: Sequence[Pod]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The UIDs of the pods that the template does not make, and what has to be said of that."""
    template, kind = workload["spec"].get("template") or {}, workload["kind"]
    # Those of our own controllers; another cluster's have other numbers.
    label = None
    if kind == "Deployment":
        label = HASH_LABEL, hash_of(workload)
    elif kind == "StatefulSet":
        label = REVISION_LABEL, revision_name(workload)
    old: set[str] = set()
    changed: dict[str, None] = {}
    added: dict[str, None] = {}
    for pod in owned:
        if label is not None and pod.labels.get(label[0]) == label[1]:
            continue
        found = differences(template, pod, is_pinned=kind == "DaemonSet")
        added.update(dict.fromkeys(_not_claims(workload, found.added)))
        if found.changed:
            old.add(pod.uid)
            changed.update(dict.fromkeys(found.changed))
    notes = []
    if changed:
        few = f"{len(old)} of its {len(owned)} pods" if len(owned) > 1 else "its pod"
        notes.append(f"{_name(workload)}: {few} {_are(old)} not of this template ({_listed(changed)})")
    if added:
        notes.append(f"{_name(workload)}: what its pods have besides the template is taken as added on admission ({_listed(added)})")
    return frozenset(old), tuple(notes)


def _not_claims(workload: Object, parts: Iterable[str]) -> list[str]:
    mine = {f"volume {(each.get('metadata') or {}).get('name')}" for each in workload["spec"].get("volumeClaimTemplates") or ()}
    return [part for part in parts if part not in mine]


def first_to_go(pods: Sequence[Pod]) -> list[Pod]:
    """The pods in the order in which a ReplicaSet does without them.

    Ages count as they are and not by their order of magnitude, for what time it is nobody says here; restarts do not count.
    """
    crowd = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    by_age = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
    return sorted(
        by_age,
        key=lambda pod: deletion_rank(
            node=pod.spec.node_name,
            phase=pod.status.phase,
            is_ready=any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions),
            cost=pod.annotations.get(DELETION_COST, "0"),
            neighbours=crowd[pod.spec.node_name],
        ),
    )


def _name(workload: Object) -> str:
    return f"{workload['kind']} {workload['metadata'].get('namespace') or 'default'}/{workload['metadata']['name']}"


def _listed(parts: Mapping[str, None]) -> str:
    names = list(parts)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _are(pods: Iterable[object]) -> str:
    return "is" if len(list(pods)) == 1 else "are"


def _some(pods: Sequence[Pod]) -> str:
    return f"{pods[0].key} stays" if len(pods) == 1 else f"{len(pods)} of these pods stay"


def _it(pods: Sequence[Pod]) -> str:
    return "it is" if len(pods) == 1 else "they are"


def _them(pods: Sequence[Pod]) -> str:
    return "it" if len(pods) == 1 else "them"
