"""How many of a pod fit, one after the other, without evictions: the scheduler decides until one copy fails."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, final

import msgspec
import numpy as np

from extender.answers.explain.advice import depends_on_node_alone
from extender.answers.profiles import stand_in_notes
from extender.answers.trial import Trial
from extender.answers.types import Capacity, NodeRoom, QuestionError
from extender.answers.what_if.admission import Admits
from extender.answers.what_if.group_outcomes import gangs_in
from extender.answers.what_if.manifests import ManifestError, apply_manifests
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import status_out_of_play
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaimStatus
from extender.values.objects.meta import Object, OwnerReference
from extender.values.objects.pod import Pod, PodResourceClaimStatus, PodStatus
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import validate_requests
from extender.values.workloads.expansion import WORKLOADS

_STEPS_KEPT: Final = 32
"""Hypotheses that are built on each other before they are written as one, so that not all of them stay in memory."""
_FIRST_PLACED: Final = 1_000
"""The copies that are placed one by one where no limit is given: it takes about a second."""
_SAMPLE_NAME: Final = "one-more"
"""The name of a sample pod, before its number."""
_LEFT_OUT: Final = ("uid", "deletionTimestamp", "generateName")
"""Metadata that a sample pod does not have."""
_KINDS: Final = frozenset(kind for _, kind in WORKLOADS)


# The pod.


@final
@dataclass(frozen=True, slots=True)
class SamplePod:
    """A pod of which copies are to be counted."""

    pod: Object
    """It has a name that is free."""
    written_name: str
    """The name of the object that it was made of; empty if it has none."""
    notes: tuple[str, ...] = ()

    def with_written_name(self, message: str) -> str:
        """Returns a message about the pod as one about the object that it was made of."""
        return message.replace(self.pod["metadata"]["name"], self.written_name)


def with_others(obj: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """Returns the pod or workload, and what is beside it in a List. Raises QuestionError if that has not just one."""
    if obj.get("kind") != "List":
        return obj, ()
    items = obj.get("items")
    members = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    pods_or_workloads = [item for item in members if item.get("kind", "Pod") in ("Pod", *_KINDS)]
    if len(pods_or_workloads) != 1:
        raise QuestionError(f"the List has {len(pods_or_workloads)} pods or workloads; give one")
    return pods_or_workloads[0], [item for item in members if item is not pods_or_workloads[0]]


def sample_pod(obj: Mapping[str, Any], cluster: Cluster) -> SamplePod:
    """Returns the pod, or one that a workload makes, as it would be created now. Raises QuestionError."""
    kind, name = obj.get("kind", "Pod"), _member(obj, "metadata").get("name")
    written_name = name if isinstance(name, str) else ""
    notes: tuple[str, ...] = ()
    if kind in _KINDS:
        notes = (f"pods of the template of {kind} {written_name} are counted; its number of replicas does not matter",)
        if _member(obj, "spec").get("volumeClaimTemplates"):
            notes = (*notes, "the volumes that it claims for each of them are ignored")
        obj = _pod_of(obj, kind)
    elif kind != "Pod":
        raise QuestionError(f"pods are counted, not objects of kind {kind!r:.100}")
    taken_names = {pod.name for pods in (cluster.pending.values(), cluster.cache.pods) for pod in pods}
    name = next(name for number in count() if (name := f"{_SAMPLE_NAME}-{number}") not in taken_names)
    metadata = {key: value for key, value in _member(obj, "metadata").items() if key not in _LEFT_OUT}
    spec = obj.get("spec")
    pod_spec = {key: value for key, value in spec.items() if key != "nodeName"} if isinstance(spec, Mapping) else spec
    pod = {"kind": "Pod", "metadata": {**metadata, "name": name}, "spec": pod_spec, "status": {}}
    return SamplePod({"apiVersion": "v1", **obj, **pod}, written_name, notes)


def _pod_of(workload: Mapping[str, Any], kind: str) -> Object:
    """The pod template, in the workload's namespace. Volumes that a StatefulSet would claim are empty here."""
    spec = _member(workload, "spec")
    if kind == "CronJob":
        spec = _member(_member(spec, "jobTemplate"), "spec")
    template, namespace = _member(spec, "template"), _member(workload, "metadata").get("namespace")
    metadata = {key: value for key, value in _member(template, "metadata").items() if key in ("labels", "annotations")}
    pod_spec = template.get("spec")
    claims = spec.get("volumeClaimTemplates")
    if isinstance(pod_spec, Mapping) and isinstance(claims, list):
        names = [_member(claim, "metadata").get("name") for claim in claims if isinstance(claim, dict)]
        empty: list[Object] = [{"name": name, "emptyDir": {}} for name in names]
        pod_spec = {**pod_spec, "volumes": [*(pod_spec.get("volumes") or ()), *empty]}
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), "spec": pod_spec}


def _member(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    member = obj.get(name)
    return member if isinstance(member, Mapping) else {}


def capacity_of(trial: Trial, obj: Mapping[str, Any], admits: Admits, limit: int | None) -> Capacity:
    """Returns how many of such a pod, or of a workload's pods, would fit, whatever its name. Raises QuestionError."""
    pod, companions = with_others(obj)
    sample = sample_pod(pod, trial.cluster)
    try:
        applied = apply_manifests(trial, [*companions, sample.pod], admits, keeps_priorities=True)
    except ManifestError as exc:
        raise QuestionError(sample.with_written_name(str(exc))) from exc
    (created,) = applied.pods
    answer, node_name = capacity_with_gangs(trial, created, limit), _member(pod, "spec").get("nodeName")
    notes = [*sample.notes, *answer.notes, *applied.notes]
    notes += (
        f"ResourceClaimTemplate {template} is not known here, so no claim is created from it: whatif takes it in the "
        "same file"
        for template in applied.missing_templates
    )
    if node_name:
        notes.append(f"spec.nodeName ({node_name}) is ignored: the count is of pods that the scheduler would place")
    return msgspec.structs.replace(answer, notes=tuple(notes))


def capacity_with_gangs(trial: Trial, pod: Pod, limit: int | None) -> Capacity:
    """Returns how many of a pod fit, with gangs and notes; see `capacity`."""
    answer, framework = capacity(trial, pod, limit), trial.frameworks.get(pod.scheduler_name)
    answer = answer if framework is None else gangs_in(trial.cluster, framework, pod, answer)
    return msgspec.structs.replace(answer, notes=(*stand_in_notes(trial.frameworks), *answer.notes))


# One copy after the other.


def capacity(trial: Trial, pod: Pod, limit: int | None) -> Capacity:
    """Places copies of the pod until one fits nowhere; what each needs is reserved where it would go.

    Copies are new pods: they have no node, no nomination and no scheduling gates, and claims of their own where
    controllers have made claims for the pod. Where Filters look at one node only, all nodes are filled up at once
    instead, which counts the same; where more fit than a limit above a thousand, they are filled evenly, and not as the
    scheduler would. Otherwise counting stops at 20,000 copies, whatever the limit, and the answer says so. Without a
    limit it stops at 100,000, or 1,000 where they are placed one by one. Copies that are placed stay in the trial.
    """
    if trial.frameworks.get(pod.scheduler_name) is None:
        return _stopped(Counter(), f'no profile here for schedulerName "{pod.scheduler_name}"')
    try:
        validate_requests(pod)
        copy = _copy(pod, 0)
        slot = trial.cluster.cache.nominate(copy)
        try:
            answer = _fill_up(trial.cycle(copy), slot, limits.COPIES_COUNTED if limit is None else limit)
        finally:
            trial.cluster.cache.unnominate(copy.uid)
    except (QuantityError, PluginError) as exc:
        return _stopped(Counter(), str(exc))
    if answer is not None:
        return answer
    by_node: Counter[str] = Counter()
    max_copies = _FIRST_PLACED if limit is None else min(limit, limits.COPIES_PLACED)
    while True:
        copy = _with_claims(trial, pod, _copy(pod, by_node.total()))
        trial.changed(None, copy)
        attempt = trial.schedule(copy)
        if not attempt.node:
            return _stopped(by_node, attempt.message)
        trial.commit()
        if (fits := by_node.total()) >= max_copies:
            why = (
                "the maximum of pods that are placed one by one"
                if limit is not None
                else "because they are placed one by one; a higher limit continues the count"
            )
            notes = () if fits == limit else (f"counting ends at {fits}, {why}",)
            return Capacity(fits=fits, by_node=_sorted_by_node(by_node), stopped_by="", is_limit=True, notes=notes)
        by_node[attempt.node] += 1


def _copy(pod: Pod, number: int) -> Pod:
    # Only names differ, so that a verdict that is kept for one copy holds for the next.
    return replaced(
        pod,
        metadata=replaced(
            pod.metadata,
            name=f"{pod.name}-{number}",
            uid=f"{pod.uid or pod.key}/copy-{number}",
            deletion_timestamp=None,
        ),
        spec=replaced(pod.spec, node_name="", scheduling_gates=[]),
        status=PodStatus(),
    )


def _with_claims(trial: Trial, pod: Pod, copy: Pod) -> Pod:
    """The copy with claims as controllers made them for the pod's claim templates and ephemeral volumes."""
    objects, statuses = trial.cluster.cache.objects, []
    owner = OwnerReference(api_version="v1", kind="Pod", name=copy.name, uid=copy.uid, controller=True)
    names_from_templates = {claim.name for claim in pod.spec.resource_claims if claim.resource_claim_template_name}
    for status in pod.status.resource_claim_statuses:
        claim = objects.resource_claims.get((pod.namespace, status.resource_claim_name or ""))
        if claim is None or status.name not in names_from_templates:
            continue
        name, uid = f"{copy.name}-{status.name}-1", f"{copy.uid}/{status.name}"
        meta = replaced(claim.metadata, name=name, uid=uid, owner_references=[owner])
        trial.changed(None, replaced(claim, metadata=meta, status=ResourceClaimStatus()))
        statuses.append(PodResourceClaimStatus(name=status.name, resource_claim_name=meta.name))
    for volume in pod.spec.volumes:
        volume_claim = objects.pvcs.get((pod.namespace, f"{pod.name}-{volume.name}"))
        if volume.ephemeral is not None and volume_claim is not None and not volume_claim.spec.volume_name:
            name, uid = f"{copy.name}-{volume.name}", f"{copy.uid}/{volume.name}"
            meta = replaced(volume_claim.metadata, name=name, uid=uid, owner_references=[owner])
            trial.changed(None, replaced(volume_claim, metadata=meta))
    return replaced(copy, status=PodStatus(resource_claim_statuses=statuses)) if statuses else copy


def _stopped(by_node: Counter[str], why: str) -> Capacity:
    return Capacity(fits=by_node.total(), by_node=_sorted_by_node(by_node), stopped_by=why)


def _sorted_by_node(by_node: Counter[str]) -> tuple[NodeRoom, ...]:
    in_order = sorted(by_node.items(), key=lambda item: (-item[1], item[0]))
    return tuple(NodeRoom(node=node, pods=pods) for node, pods in in_order)


# All nodes at once.


def _fill_up(cycle: Cycle, slot: int, limit: int) -> Capacity | None:
    """Fills every node with copies of the pod, one more on all nodes at a time.

    Where all Filters look at a node and its pods only, it makes no difference which node a scheduler would choose
    first: each is filled up in the end. A row with so many copies is a hypothesis, so that nothing has to be placed.

    None where copies have to be placed one by one, since Filters look at other nodes or plugins reserve something;
    where PreFilter refuses the pod; and where more fit than a limit that is soon reached. Raises PluginError.
    """
    snapshot = cycle.snapshot
    outcome = cycle.run_pre_filter_plugins()
    if not len(snapshot.nodes) or not outcome.status.is_success or not depends_on_node_alone(cycle):
        return None
    rows = Rows.of(snapshot, cycle.within)
    by_node: dict[str, int] = {}
    explicit: dict[str, fwk.Status] = {}
    copies = total = 0
    while len(rows):
        verdicts = cycle.run_filters_with_nominated_pods(rows, only_pods_changed=copies > 0)
        full = np.flatnonzero(~verdicts.ok)
        names = rows.take(full).names
        explicit.update(zip(names, verdicts.statuses_of(full), strict=True))
        by_node.update(dict.fromkeys(names, copies))
        rows = rows.take(verdicts.ok)
        copies, total = copies + 1, total + len(rows)
        if total > limit:
            return None if limit <= _FIRST_PLACED else _filled_evenly(by_node, rows, copies, limit)
        rows = _with_one_more(rows, slot) if copies % _STEPS_KEPT else _with_copies(snapshot, rows.node, slot, copies)
    message = fwk.fit_error_message(
        len(snapshot.nodes), fwk.Diagnosis(fwk.NodeStatuses(explicit, status_out_of_play(cycle)))
    )
    return _stopped(Counter({name: number for name, number in by_node.items() if number}), message)


def _filled_evenly(by_node: Mapping[str, int], rows: Rows, copies: int, limit: int) -> Capacity:
    """Returns the answer if all nodes have had their share: some are full, `rows` take so many copies each."""
    rest = limit - sum(by_node.values()) - len(rows) * (copies - 1)
    shares = {name: copies if place < rest else copies - 1 for place, name in enumerate(rows.names)}
    note = f"counting ends at {limit}; the nodes are filled evenly up to there, not in the scheduler's order"
    return Capacity(
        fits=limit,
        by_node=_sorted_by_node(Counter(by_node) + Counter(shares)),
        stopped_by="",
        is_limit=True,
        notes=(note,),
    )


def _with_one_more(rows: Rows, slot: int) -> Rows:
    number = len(rows)
    return rows.changed(
        PodChanges(np.arange(number), np.full(number, slot), np.ones(number, np.int64), rows_are_distinct=True)
    )


def _with_copies(snapshot: Snapshot, nodes: Index, slot: int, copies: int) -> Rows:
    number = len(nodes) * copies
    row = np.repeat(np.arange(len(nodes)), copies)
    return Rows.of(snapshot, nodes).changed(PodChanges(row, np.full(number, slot), np.ones(number, np.int64)))
