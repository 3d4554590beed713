"""Manifests: objects as people write them, applied to a cluster as its API server and its controllers would. A
manifest's status and node are kept.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, final

from extender.answers.trial import Trial
from extender.answers.types import QuestionError
from extender.answers.what_if.admission import Admission, Admits, Inventory, classes, knows_classes
from extender.answers.what_if.pinned_pods import daemon_pods
from extender.answers.what_if.rollouts import Plan, Rollout, plan_of
from extender.engine.cache.cluster import Cluster
from extender.values import limits
from extender.values.objects import decoding
from extender.values.objects.claims import NO_PROVISIONER
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import Object
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodResourceClaimStatus
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.values.workloads.custom_kinds import is_custom, left_out
from extender.values.workloads.deployments import desired_healthy
from extender.values.workloads.expansion import JOB_SET, WORKLOADS, Surroundings, jobs_of, objects_of
from extender.values.workloads.templates import claims_without_object, resource_claim, volume_claims
from extender.values.workloads.volumes import bound_claim, class_of, provisioned, waits_for_consumer

IGNORED_KINDS: Final = frozenset(
    (
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "Endpoints", "EndpointSlice", "Event",
        "HorizontalPodAutoscaler", "Ingress", "IngressClass", "Lease", "MutatingWebhookConfiguration", "NetworkPolicy",
        "Role",
        "RoleBinding", "Secret", "ServiceAccount", "ValidatingWebhookConfiguration",
    )
)  # fmt: skip
"""Kinds that come with applications and mean nothing to a scheduler."""

_TYPE_OF: Final[Mapping[str, type[Any]]] = {kind.name: kind.type for kind in KINDS}


class ManifestError(QuestionError):
    """An object cannot be applied; the message says which one, and why."""


@final
@dataclass(frozen=True, slots=True)
class Applied:
    """What has become of the objects."""

    pods: Sequence[Pod] = ()
    """The new pods without a node, in the order in which they are created."""
    surplus: Sequence[Pod] = ()
    """Pods that their controllers delete."""
    rollouts: Sequence[tuple[Rollout, Sequence[Pod], Sequence[Pod]]] = ()
    """With the pods that replace others and are not created yet, and new pods that replace none."""
    on_named_nodes: Sequence[Pod] = ()
    """Pods that name their node, not created yet."""
    daemons: Sequence[Pod] = ()
    """Pods of the cluster's DaemonSets for new nodes; they are the first ones there."""
    missing_templates: Sequence[str] = ()
    """ResourceClaimTemplates that pods name and that are not known: namespace/name."""
    notes: tuple[str, ...] = ()

    @property
    def missing_notes(self) -> list[str]:
        advice = "is not known here: put it into the file as well"
        return [f"ResourceClaimTemplate {name} {advice}" for name in self.missing_templates]


def apply_manifests(
    trial: Trial,
    objects: Iterable[Mapping[str, Any]],
    admits: Admits,
    *,
    keeps_priorities: bool = False,
    most_pods: int = limits.PODS_CREATED,
) -> Applied:
    """Creates the objects in the trial's cluster; those that exist already are replaced.

    With `keeps_priorities`, and where the classes of the cluster are not known, a new pod may have another priority
    than its class, which an API server refuses. Custom resources are left out, with a note. Raises ManifestError if an
    object is wrong, of an unknown kind of Kubernetes', or a pod that runs already; then nothing has been applied.
    """
    # A cluster never has the same number of changes again, so that no two pods that are created get the same UID.
    admission = admits(seed=trial.cluster.changes)
    relevant_objects = [obj for obj in unrolled(objects, admission) if obj["kind"] not in IGNORED_KINDS]
    custom = left_out(obj for obj in relevant_objects if is_custom(obj, admission.api_version_of))
    manifests = [obj for obj in relevant_objects if not is_custom(obj, admission.api_version_of)]
    if len(manifests) > max(limits.OBJECTS_CREATED, most_pods):
        raise ManifestError(f"more than {limits.OBJECTS_CREATED} objects cannot be created at a time")
    if sum(obj["kind"] == "Pod" for obj in manifests) > most_pods:
        raise ManifestError(f"more than {most_pods} pods cannot be created at a time")
    notes = (custom,) if custom else ()
    if not manifests:
        return Applied(notes=notes)
    cluster = trial.cluster
    earlier_nodes = frozenset(cluster.nodes) if any(obj["kind"] == "Node" for obj in manifests) else None
    batch = _Batch(cluster, manifests, admission, checks_priorities=not keeps_priorities and knows_classes(cluster))
    try:
        batch.admit(manifests)
        batch.make_pods(most_pods)
        batch.make_claims()
        applied = batch.put_into(trial)
    except decoding.DecodeError as exc:
        raise ManifestError(str(exc)) from exc
    applied = dataclasses.replace(applied, notes=(*notes, *applied.notes))
    if earlier_nodes is None:
        return applied
    added = [node for name, node in cluster.nodes.items() if name not in earlier_nodes]
    daemons = daemon_pods(cluster, added, batch.daemon_sets)
    for pod in daemons:
        trial.changed(None, pod)
    if not daemons:
        return applied
    note = (
        "DaemonSets of the cluster are known by their pods alone: a node that is added gets one like those, where its "
        "selector allows"
    )
    return dataclasses.replace(applied, daemons=daemons, notes=(*applied.notes, note))


def unrolled(objects: Iterable[Mapping[str, Any]], admission: Admission) -> list[Object]:
    """Returns each object with its kind and apiVersion; Lists and JobSets are taken apart. Raises ManifestError."""
    other_objects: list[Object] = []
    jobs: list[Object] = []
    for obj in _unrolled(objects, admission):
        if (obj["apiVersion"], obj["kind"]) != JOB_SET:
            other_objects.append(obj)
            continue
        if not obj["metadata"].get("name"):
            raise ManifestError("JobSet: metadata.name: Required value: name is required")
        try:
            jobs += islice(jobs_of(obj), limits.PODS_CREATED + 1)
        except decoding.DecodeError as exc:
            raise ManifestError(f"JobSet {_name(obj)}: {exc}") from exc
        if len(jobs) > limits.PODS_CREATED:
            raise ManifestError(
                f"JobSet {_name(obj)}: more than {limits.PODS_CREATED} Jobs cannot be created at a time"
            )
    return [*other_objects, *jobs]


def _unrolled(objects: Iterable[Mapping[str, Any]], admission: Admission) -> Iterator[Object]:
    for obj in objects:
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not kind:
            raise ManifestError("an object has no kind")
        items = obj.get("items")
        if kind.endswith("List") and isinstance(items, list):
            item_defaults = {} if kind == "List" else {"kind": kind.removesuffix("List"), "apiVersion": api_version}
            if not all(isinstance(item, Mapping) for item in items):
                raise ManifestError(f"{kind}: an item is no object")
            yield from _unrolled(({**item_defaults, **item} for item in items), admission)
            continue
        api_version = api_version or admission.api_version_of(kind)
        metadata = obj.get("metadata")
        if not isinstance(api_version, str) or not isinstance(metadata, Mapping):
            raise ManifestError(f"{kind}: an object needs an apiVersion and metadata")
        if not metadata.get("name") and isinstance(metadata.get("generateName"), str):
            metadata = {**metadata, "name": f"{metadata['generateName']}1"}
        yield {**obj, "apiVersion": api_version, "kind": kind, "metadata": dict(metadata)}


class ObjectKey(NamedTuple):
    """Where an API server keeps an object; the namespace is empty where objects of the kind have none."""

    kind: str
    namespace: str
    name: str


@final
class _Batch:
    """The objects that are applied together. State: the API server that they pass, and the workloads among them."""

    def __init__(
        self, cluster: Cluster, objects: Sequence[Object], admission: Admission, *, checks_priorities: bool
    ) -> None:
        self._inventory = Inventory(cluster)
        self._knows_classes = knows_classes(cluster)
        self._checks_priorities = checks_priorities
        self._plans: list[tuple[Plan, list[ObjectKey]]] = []
        """What each workload does with the pods that it has, and the new pods that it makes."""
        self._missing_templates: dict[str, None] = {}
        """ResourceClaimTemplates that pods name and that are not known."""
        self._server = admission
        self._admitted: list[ObjectKey] = []
        self._workloads: list[Object] = []
        self._claim_statuses: dict[ObjectKey, Sequence[PodResourceClaimStatus]] = {}
        self._with_status: set[ObjectKey] = set()
        """PodDisruptionBudgets whose status says how many disruptions they allow."""
        admission.create(classes(cluster, objects))

    def admit(self, objects: Sequence[Object]) -> None:
        """Sends the objects through the API server, and finds the workloads among them."""
        served: list[tuple[ObjectKey, Object]] = []
        for obj in objects:
            is_namespaced = self._server.is_namespaced(obj["apiVersion"], obj["kind"])
            if is_namespaced is None:
                raise ManifestError(
                    f"{obj['kind']} {_name(obj)}: objects of kind {obj['kind']} ({obj['apiVersion']}) are not known "
                    "here"
                )
            if is_namespaced:
                obj["metadata"]["namespace"] = obj["metadata"].get("namespace") or "default"
            why = self._server.why_undecodable(obj)
            if why:
                raise ManifestError(f"{obj['kind']} {_name(obj)}: {why}")
            key = _key_of(obj, is_namespaced=is_namespaced)
            served.append((key, obj))
            status = obj.get("status")
            if isinstance(status, Mapping) and status.get("disruptionsAllowed") is not None:
                self._with_status.add(key)
        new_namespaces = {obj["metadata"]["name"] for _, obj in served if obj["kind"] == "Namespace"}
        for (_, namespace, _), obj in served:
            if namespace and namespace not in new_namespaces and self._inventory.lacks_namespace(namespace):
                raise ManifestError(f'{obj["kind"]} {_name(obj)}: namespaces "{namespace}" not found')
        # A workload that does not give its replicas keeps the number that it has: an autoscaler sets it.
        unscaled = {
            key for key, obj in served if isinstance(obj.get("spec"), Mapping) and obj["spec"].get("replicas") is None
        }
        self._store(served)
        for key in [key for key, obj in served if (obj["apiVersion"], obj["kind"]) in WORKLOADS]:
            workload = self._get(key)
            has = len(self._inventory.owned(*key))
            if key in unscaled and has:
                workload["spec"]["replicas"] = has
            self._workloads.append(workload)

    def make_pods(self, most_pods: int) -> None:
        """Expands the workloads into their pods."""
        if not self._workloads:
            return
        nodes = {node.name: node for node in self._inventory.nodes}
        nodes |= {key.name: decoding.convert(Node, self._get(key)) for key in self._admitted if key.kind == "Node"}
        around = Surroundings(list(nodes.values()), self._inventory.owned, self._inventory.has_pod)
        num_pods = sum(key.kind == "Pod" for key in self._admitted)
        for workload in self._workloads:
            new_objects: list[tuple[ObjectKey, Object]] = []
            owner = _key_of(workload)
            try:
                plan = plan_of(workload, self._inventory.owned(*owner))
            except ValueError as exc:
                raise ManifestError(f"{workload['kind']} {_name(workload)}: {exc}") from exc
            self._inventory.remove(*owner, plan.leaving)
            for obj in objects_of(workload, around):
                key = _key_of(obj)
                if key.kind == "Pod" or not self._exists(key):
                    new_objects.append((key, obj))
                num_pods += key.kind == "Pod"
                if num_pods > most_pods:
                    who = f"{workload['kind']} {_name(workload)}"
                    raise ManifestError(f"{who}: more than {most_pods} pods cannot be created at a time")
            self._store(new_objects)
            self._plans.append((plan, [key for key, _ in new_objects if key.kind == "Pod"]))

    @property
    def daemon_sets(self) -> frozenset[tuple[str, str]]:
        """(namespace, name) of the DaemonSets among the objects."""
        daemon_set_metadata = (workload["metadata"] for workload in self._workloads if workload["kind"] == "DaemonSet")
        return frozenset((metadata["namespace"], metadata["name"]) for metadata in daemon_set_metadata)

    def make_claims(self) -> None:
        """Creates the claims that the specs of pods without a node describe."""
        new_claims: list[tuple[ObjectKey, Object]] = []
        for pod_key in [pod_key for pod_key in self._admitted if pod_key.kind == "Pod"]:
            pod = self._get(pod_key)
            if pod["spec"].get("nodeName"):
                continue
            claims, self._claim_statuses[pod_key] = self._resource_claims(pod)
            for obj in (*volume_claims(pod), *claims):
                claim_key = _key_of(obj)
                if not self._exists(claim_key):
                    new_claims.append((claim_key, obj))
        self._store(new_claims)

    def _resource_claims(self, pod: Object) -> tuple[list[Object], list[PodResourceClaimStatus]]:
        """The claims of known templates that the pod names, and what its status says of them then."""
        claims, statuses = [], []
        for claim in claims_without_object(pod):
            namespace, template_name = pod["metadata"]["namespace"], claim["resourceClaimTemplateName"]
            template = self._server.get("ResourceClaimTemplate", namespace, template_name)
            if template is None:
                self._missing_templates.setdefault(f"{namespace}/{template_name}")
                continue
            obj = resource_claim(pod, claim, template)
            obj["metadata"]["name"] = name = f"{obj['metadata'].pop('generateName')}1"
            claims.append(obj)
            statuses.append(PodResourceClaimStatus(name=claim["name"], resource_claim_name=name))
        return claims, statuses

    def _exists(self, key: ObjectKey) -> bool:
        """Whether an object that controllers would make exists, as an earlier claim or ReplicaSet; it is used as is."""
        return self._server.get(*key) is not None or self._inventory.has(*key)

    def _get(self, key: ObjectKey) -> Object:
        obj = self._server.get(*key)
        if obj is None:
            raise LookupError(f"{key.kind} {key.namespace}/{key.name} was admitted and is not there")
        return obj

    def put_into(self, trial: Trial) -> Applied:
        """Hands all to the cluster: nodes and what pods refer to first, then the pods that are created at once."""
        pods_by_key: dict[ObjectKey, Pod] = {}
        for key in sorted(self._admitted, key=lambda key: key.kind == "Pod"):
            obj = self._get(key)
            kind = _TYPE_OF.get(obj["kind"])
            if kind is None:
                continue  # schedulers do not watch it: a Deployment
            item = decoding.convert(kind, obj)
            if isinstance(item, Pod):
                earlier_statuses = item.status.resource_claim_statuses
                claims = [*earlier_statuses, *self._claim_statuses.get(key, ())]
                status = decoding.replaced(item.status, resource_claim_statuses=claims)
                pods_by_key[key] = decoding.replaced(item, status=status)
            elif isinstance(item, PodDisruptionBudget) and key not in self._with_status:
                trial.changed(None, _with_disruptions_allowed(trial.cluster, item, obj["spec"]))
            elif isinstance(item, PersistentVolumeClaim) and (volume := self._provisioned(obj)) is not None:
                trial.changed(None, decoding.convert(PersistentVolume, volume))
                trial.changed(None, decoding.convert(PersistentVolumeClaim, bound_claim(obj, volume)))
            else:
                trial.changed(None, item)
        rollouts = [
            (plan.rollout, *_divided(plan.rollout, [pods_by_key[key] for key in keys]))
            for plan, keys in self._plans
            if plan.rollout
        ]
        later = {pod.uid for _, successors, _ in rollouts for pod in successors}
        pinned_pods = [pod for pod in pods_by_key.values() if pod.spec.node_name and not pod.is_terminal]
        for pod in pods_by_key.values():
            if pod.uid not in later and not pod.spec.node_name:
                trial.changed(self._inventory.pending(pod), pod)
            elif pod.uid not in later and (waits := self._inventory.pending(pod)) is not None:
                trial.changed(waits, None)
        return Applied(
            pods=[pod for pod in pods_by_key.values() if pod.uid in trial.cluster.pending],
            surplus=[pod for plan, _ in self._plans for pod in plan.surplus],
            rollouts=rollouts,
            on_named_nodes=pinned_pods,
            missing_templates=tuple(self._missing_templates),
            notes=tuple(note for plan, _ in self._plans for note in plan.notes),
        )

    def _provisioned(self, claim: Object) -> Object | None:
        """The volume provisioned for the claim at once; None if it has one, waits for its pod, or gets none."""
        storage_class = self._server.get("StorageClass", "", class_of(claim))
        if storage_class is None or waits_for_consumer(storage_class) or claim["spec"].get("volumeName"):
            return None
        is_made = storage_class.get("provisioner") != NO_PROVISIONER
        return provisioned(claim, storage_class, None, ()) if is_made else None

    def _store(self, objects: Sequence[tuple[ObjectKey, Object]]) -> None:
        for (kind, namespace, name), obj in objects:
            if kind != "Pod":
                continue
            if self._inventory.runs(namespace, name):
                raise ManifestError(f'Pod {namespace}/{name}: pods "{name}" already exists')
            if obj.get("spec") is None:
                raise ManifestError(f'Pod {namespace}/{name}: Pod "{name}" is invalid: spec.containers: Required value')
            self._inventory.add(namespace, name)
            uid = obj["metadata"].get("uid")
            if isinstance(uid, str) and not self._inventory.owns_uid(namespace, name, uid):
                del obj["metadata"]["uid"]  # a copy of another pod gets its own UID
        priorities = [
            (key, _priority_taken_out(obj)) for key, obj in objects if self._checks_priorities and key.kind == "Pod"
        ]
        refused = self._server.create([obj for _, obj in objects])
        for key, priority in priorities if not refused else ():
            admitted = self._get(key)["spec"].get("priority", 0)
            if priority not in (None, admitted):
                why = (
                    f"the integer value of priority ({priority}) must not be provided in pod spec; "
                    f"priority admission controller computed {admitted} from the given PriorityClass name"
                )
                raise ManifestError(f'Pod {key.namespace}/{key.name}: pods "{key.name}" is forbidden: {why}')
        if refused:
            raise ManifestError("; ".join(refused if self._knows_classes else map(_with_advice, refused)))
        self._admitted += [key for key, _ in objects]


def _priority_taken_out(pod: Object) -> object:
    """Takes the priority out of a pod not yet admitted, so that its class gives one; returns what it was."""
    metadata, spec = pod["metadata"], pod.get("spec")
    if metadata.get("resourceVersion") or metadata.get("creationTimestamp") or not isinstance(spec, dict):
        return None
    return spec.pop("priority", None)


def _divided(rollout: Rollout, new_pods: Sequence[Pod]) -> tuple[Sequence[Pod], Sequence[Pod]]:
    """(new pods that replace others, new pods that replace none)."""
    if rollout.how != "ordered":
        return new_pods, ()
    names = {pod.name for pod in rollout.old}
    return [pod for pod in new_pods if pod.name in names], [pod for pod in new_pods if pod.name not in names]


def _with_advice(refusal: str) -> str:
    # Classes of the cluster are known only by the pods that have them.
    is_about_class = refusal.endswith("was found") and "no PriorityClass" in refusal
    return f"{refusal}, among the objects or on a pod of the cluster" if is_about_class else refusal


def _key_of(obj: Object, *, is_namespaced: bool = True) -> ObjectKey:
    namespace = (obj["metadata"].get("namespace") or "default") if is_namespaced else ""
    return ObjectKey(obj["kind"], str(namespace), str(obj["metadata"].get("name")))


def _name(obj: Object) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{namespace}/{obj['metadata'].get('name')}" if namespace else str(obj["metadata"].get("name"))


def _with_disruptions_allowed(cluster: Cluster, budget: PodDisruptionBudget, spec: Object) -> PodDisruptionBudget:
    """Returns a new budget with the disruptions that its controller would allow as things are."""
    namespace, selector = budget.metadata.namespace or "default", budget.spec.parsed_selector
    healthy = sum(
        pod.namespace == namespace and not pod.is_terminating and selector.matches(pod.labels)
        for pod in cluster.cache.pods
    )
    waiting = sum(pod.namespace == namespace and selector.matches(pod.labels) for pod in cluster.pending.values())
    try:
        allowed = max(healthy - desired_healthy(spec, healthy + waiting), 0)
    except ValueError as exc:
        raise ManifestError(f"PodDisruptionBudget {namespace}/{budget.metadata.name}: {exc}") from exc
    return decoding.replaced(budget, status=decoding.replaced(budget.status, disruptions_allowed=allowed))
