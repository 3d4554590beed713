"""Objects as people write them, taken into a cluster: completed, refused in words, and workloads with the pods that
they make.
"""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from extender.answers.trial import Trial
from extender.answers.what_if.manifests import ManifestError, apply_manifests
from extender.engine.cache.cluster import Cluster
from extender.rules.claim_templates import ClaimTemplates
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_node, make_pod
from extender.values.objects.claims import is_fully_bound
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import SYSTEM_CLASSES, Namespace, PriorityClass, ReplicaSet
from extender.values.objects.meta import ObjectMeta, OwnerReference
from extender.values.objects.pod import Pod
from tests.kit import objects
from tests.kit.cluster import cluster_of
from tests.kit.objects import priority_class
from tests.kit.owners import owned_by
from tests.kit.storage_objects import storage_class
from tests.kit.tables import cases

CONTAINER = {"name": "c", "image": "registry.example/app:1"}
POD_SPEC = {"containers": [CONTAINER]}
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ONE_GPU = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {"spec": {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu"}, "name": "r"}]}}},
}
WANTS_ONE_GPU: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}


def cluster(*nodes: str, pods: tuple[Pod, ...] = (), **objects: Any) -> Cluster:
    builders = [make_node(name).capacity(cpu=4, pods=10).label({"kubernetes.io/hostname": name}) for name in nodes]
    return cluster_of(*builders, pods=pods, **objects)


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    return objects.obj("Pod", name=name, spec=POD_SPEC | spec)


def volume_claim(name: str = "data", **spec: Any) -> dict[str, Any]:
    return objects.obj("PersistentVolumeClaim", name=name, spec=STORAGE | spec)


def workload(kind: str, name: str = "web", pod_spec: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return objects.workload(kind, name, {"spec": pod_spec or POD_SPEC}, **spec)


def made_of_template(name: str, label: str, kind: str, owner: str) -> Pod:
    """A pod on node n as the templates here say."""
    metadata = {"ownerReferences": [objects.owner(kind, owner)]}
    return convert(Pod, objects.pod(name, labels={"app": label}, metadata=metadata, on="n", containers=[CONTAINER]))


def pods_of(about: Cluster, objects: list[dict[str, Any]]) -> list[Pod]:
    """The pods that come of the objects, and have no node."""
    return list(apply_manifests(Trial(about, {}), objects, TrialRegistry).pods)


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


# What is filled in.


def test_limits_are_requests_where_none_are_given() -> None:
    limited = {**CONTAINER, "resources": {"limits": {"cpu": "2"}}}

    (new_pod,) = pods_of(cluster(), [pod(containers=[limited])])

    assert new_pod.spec.containers[0].resources.requests == {"cpu": "2"}


def test_a_pod_is_in_the_default_namespace_and_for_the_default_scheduler() -> None:
    (new_pod,) = pods_of(cluster(), [pod()])

    assert (new_pod.key, new_pod.scheduler_name) == ("default/web", "default-scheduler")
    assert (new_pod.priority, new_pod.status.phase) == (0, "Pending")
    assert new_pod.uid


def test_a_node_can_give_what_it_has() -> None:
    about = cluster()
    pods_of(
        about, [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8"}}}]
    )

    assert about.nodes["n"].status.allocatable == {"cpu": "8"}


def test_a_claim_gets_the_default_class_of_the_cluster() -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    about = cluster()
    pods_of(about, [storage_class("fast", annotations=marked)])
    pods_of(about, [volume_claim()])

    assert about.cache.objects.pvcs["default", "data"].spec.storage_class_name == "fast"


@cases(
    "mode, provisioner, volume",
    ("made at once", "Immediate", "example.com/disks", True),
    ("made for its pod", "WaitForFirstConsumer", "example.com/disks", False),
    ("no provisioner", "Immediate", "kubernetes.io/no-provisioner", False),
)
def test_a_claim_has_its_volume_where_that_is_made_at_once(mode: str, provisioner: str, volume: bool) -> None:
    about = cluster()
    pods_of(about, [storage_class("disks", mode, provisioner=provisioner), volume_claim(storageClassName="disks")])

    claim = about.cache.objects.pvcs["default", "data"]
    assert is_fully_bound(claim) is volume
    assert list(about.cache.objects.pvs) == ([claim.spec.volume_name] if volume else [])


@cases(
    "spec, allowed",
    ("all but one", {"minAvailable": 1}, 2),
    ("the smaller half", {"minAvailable": "50%"}, 1),
    ("one", {"maxUnavailable": 1}, 1),
    ("more wanted than there are", {"minAvailable": 5}, 0),
    ("of all pods", {"minAvailable": 1, "selector": {}}, 3),
    (
        "of pods without labels",
        {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
        0,
    ),
)
def test_new_budget_allows_as_many_disruptions_as_its_pods_permit(spec: dict[str, Any], allowed: int) -> None:
    pods = tuple(make_pod(f"db-{number}").label(app="db").node("n").obj() for number in range(3))
    about = cluster("n", pods=(*pods, make_pod("bare").node("n").obj()))
    budget = {"selector": {"matchLabels": {"app": "db"}}, **spec}
    pods_of(
        about, [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget}]
    )

    assert about.cache.objects.pdbs["default", "b"].status.disruptions_allowed == allowed


# Priority classes.


SYSTEM = [priority_class(name, value) for name, value in SYSTEM_CLASSES.items()]
DEFAULT = priority_class("ordinary", 100, globalDefault=True)
POLITE = priority_class("polite", 5000, preemptionPolicy="Never")


def with_classes(*classes: dict[str, Any], pods: tuple[Pod, ...] = ()) -> Cluster:
    return cluster("n", pods=pods, priority_classes=[convert(PriorityClass, item) for item in classes])


@cases(
    "classes, brought, spec, admitted",
    ("no classes are known", [], [], {}, (0, "", "PreemptLowerPriority")),
    ("the default class", [*SYSTEM, DEFAULT], [], {}, (100, "ordinary", "PreemptLowerPriority")),
    (
        "a class that no pod has",
        [*SYSTEM, DEFAULT, POLITE],
        [],
        {"priorityClassName": "polite"},
        (5000, "polite", "Never"),
    ),
    (
        "a class that comes with the pod where none is known",
        [],
        [priority_class("own", 7)],
        {"priorityClassName": "own"},
        (7, "own", "PreemptLowerPriority"),
    ),
    (
        "a class of every cluster where none is known",
        [],
        [],
        {"priorityClassName": "system-node-critical"},
        (2_000_001_000, "system-node-critical", "PreemptLowerPriority"),
    ),
    ("a default class that comes with the pod", [*SYSTEM], [DEFAULT], {}, (100, "ordinary", "PreemptLowerPriority")),
    (
        "a class that comes with the pod in place of the cluster's",
        [*SYSTEM, DEFAULT],
        [priority_class("ordinary", 7, globalDefault=True)],
        {},
        (7, "ordinary", "PreemptLowerPriority"),
    ),
    (
        "a class of every cluster",
        [*SYSTEM, DEFAULT],
        [],
        {"priorityClassName": "system-node-critical"},
        (2_000_001_000, "system-node-critical", "PreemptLowerPriority"),
    ),
    ("known only by a pod", [], [], {"priorityClassName": "of-a-pod"}, (77, "of-a-pod", "PreemptLowerPriority")),
    ("a bare priority, of a dump by hand", [], [], {"priority": 100_000}, (100_000, "", "PreemptLowerPriority")),
    (
        "a bare priority as of the class",
        [*SYSTEM, DEFAULT],
        [],
        {"priority": 100},
        (100, "ordinary", "PreemptLowerPriority"),
    ),
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_a_pod_has_the_priority_that_admission_gives_it(
    kind: str,
    classes: list[dict[str, Any]],
    brought: list[dict[str, Any]],
    spec: dict[str, Any],
    admitted: tuple[int, str, str],
) -> None:
    has_class = make_pod("has").node("n").priority(77).obj()
    has_class = replaced(has_class, spec=replaced(has_class.spec, priority_class_name="of-a-pod"))
    manifest = pod(**spec) if kind == "Pod" else workload(kind, pod_spec={**POD_SPEC, **spec}, replicas=1)

    (new_pod,) = pods_of(with_classes(*classes, pods=(has_class,)), [*brought, manifest])

    assert (new_pod.priority, new_pod.spec.priority_class_name, new_pod.spec.preemption_policy) == admitted


@cases(
    "spec, why",
    ("a class that is gone", {"priorityClassName": "of-a-pod"}, "no PriorityClass with name of-a-pod was found"),
    (
        "a bare priority",
        {"priority": 100_000},
        "the integer value of priority (100000) must not be provided in pod spec; "
        "priority admission controller computed 100 from the given PriorityClass name",
    ),
)
def test_admission_refuses_an_unknown_class_where_the_classes_are_known(spec: dict[str, Any], why: str) -> None:
    has_class = make_pod("has").node("n").priority(77).obj()
    has_class = replaced(has_class, spec=replaced(has_class.spec, priority_class_name="of-a-pod"))

    with pytest.raises(ManifestError) as refusal:
        pods_of(with_classes(*SYSTEM, DEFAULT, pods=(has_class,)), [pod(**spec)])

    assert str(refusal.value) == f'Pod default/web: pods "web" is forbidden: {why}'


# What is refused, and what is passed over.


@pytest.mark.parametrize(
    ("custom", "kinds"),
    [
        ([("monitoring.coreos.com/v1", "ServiceMonitor")], "ServiceMonitor (monitoring.coreos.com/v1)"),
        ([("serving.knative.dev/v1", "Service")], "Service (serving.knative.dev/v1)"),
        ([("gateway.networking.k8s.io/v1", "HTTPRoute")] * 2, "HTTPRoute (gateway.networking.k8s.io/v1)"),
        (
            [("cert-manager.io/v1", "Certificate"), ("snapshot.storage.k8s.io/v1", "VolumeSnapshot")],
            "Certificate (cert-manager.io/v1), VolumeSnapshot (snapshot.storage.k8s.io/v1)",
        ),
    ],
)
def test_custom_resources_are_left_out_and_named(custom: list[tuple[str, str]], kinds: str) -> None:
    objects = [{"apiVersion": version, "kind": kind, "metadata": {"name": "x"}} for version, kind in custom]

    applied = apply_manifests(Trial(cluster("n"), {}), [*objects, workload("Deployment", replicas=2)], TrialRegistry)

    assert (len(applied.pods), applied.notes) == (2, (f"left out, since no pods are known to come of them: {kinds}",))


def test_objects_of_which_all_are_custom_are_named_too() -> None:
    monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "x"}}

    applied = apply_manifests(Trial(cluster("n"), {}), [monitor], TrialRegistry)

    assert not applied.pods
    assert "ServiceMonitor" in applied.notes[0]


@cases(
    "manifest, why",
    ("no kind", {"metadata": {"name": "x"}}, "an object has no kind"),
    ("no metadata", {"kind": "Pod"}, "Pod: an object needs an apiVersion and metadata"),
    ("a list of something else", {"kind": "List", "items": [7]}, "List: an item is no object"),
    (
        "an unknown kind",
        {"apiVersion": "apps/v1", "kind": "Whatever", "metadata": {"name": "x"}},
        "Whatever x: objects of kind Whatever (apps/v1) are not known here",
    ),
    (
        "a version that is not there",
        {"apiVersion": "resource.k8s.io/v1alpha9", "kind": "ResourceClaim", "metadata": {"name": "x"}},
        "ResourceClaim x: objects of kind ResourceClaim (resource.k8s.io/v1alpha9) are not known here",
    ),
    (
        "another version of what makes pods",
        {"apiVersion": "jobset.x-k8s.io/v1alpha1", "kind": "JobSet", "metadata": {"name": "x"}},
        "JobSet x: objects of kind JobSet (jobset.x-k8s.io/v1alpha1) are not known here",
    ),
    (
        "an unknown priority class",
        pod(priorityClassName="nobody"),
        'Pod default/web: pods "web" is forbidden: no PriorityClass with name nobody was found, '
        "among the objects or on a pod of the cluster",
    ),
    (
        "a Job of the wrong form",
        workload("Job", parallelism="many"),
        'Job default/web: Job in version "v1" cannot be handled as a Job: json: cannot unmarshal string into '
        "Go struct field JobSpec.spec.parallelism of type int32",
    ),
    (
        "a JobSet of the wrong form",
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "x"},
            "spec": {"replicatedJobs": 7},
        },
        "JobSet x: Expected `array`, got `int` - at `$.spec.replicatedJobs`",
    ),
    (
        "too many Jobs",
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "x"},
            "spec": {"replicatedJobs": [{"name": "a", "replicas": 10**9}]},
        },
        "JobSet x: more than 5000 Jobs cannot be created at a time",
    ),
    (
        "a template of the wrong form",
        workload("DaemonSet", pod_spec={"containers": 7}),
        'DaemonSet default/web: DaemonSet in version "v1" cannot be handled as a DaemonSet: json: cannot unmarshal '
        "number into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
    ),
    (
        "too many pods",
        workload("Deployment", replicas=100_000),
        "Deployment default/web: more than 5000 pods cannot be created at a time",
    ),
)
def test_malformed_manifest_is_refused_with_the_reason(manifest: dict[str, Any], why: str) -> None:
    with pytest.raises(ManifestError) as refusal:
        pods_of(cluster("n"), [manifest])

    assert str(refusal.value) == why


def test_a_pod_that_runs_cannot_be_created_again() -> None:
    with pytest.raises(ManifestError, match='Pod default/web: pods "web" already exists'):
        pods_of(cluster("n", pods=(make_pod("web").node("n").obj(),)), [pod("web")])


def test_a_pod_that_waits_is_replaced_by_what_is_written_now() -> None:
    about = cluster("n", pods=(make_pod("web").req(cpu=9).obj(),))

    (new_pod,) = pods_of(about, [pod("web")])

    assert [*about.pending.values()] == [new_pod]
    assert new_pod.spec.containers[0].resources.requests == {}


def test_kinds_that_mean_nothing_to_a_scheduler_are_passed_over() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}

    assert names(pods_of(cluster(), [settings, pod()])) == ["web"]


def test_lists_are_what_is_in_them() -> None:
    listed = {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [{"metadata": {"name": name}, "spec": POD_SPEC} for name in "ab"],
    }

    objects = [{"apiVersion": "v1", "kind": "List", "items": [listed, pod("c")]}]
    assert names(pods_of(cluster(), objects)) == ["a", "b", "c"]


@pytest.mark.parametrize("manifest", [pod(), workload("Deployment"), workload("DaemonSet")])
def test_a_namespace_that_does_not_exist_is_refused_as_the_api_server_does(manifest: dict[str, Any]) -> None:
    """Where namespaces are known at all: a dump may be without them, or with those of its labels alone."""
    lost = {**manifest, "metadata": {**manifest["metadata"], "namespace": "nowhere"}}
    about = cluster("n", namespaces=[Namespace(metadata=ObjectMeta(name="default"))])
    asked_for = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}}

    with pytest.raises(ManifestError, match=f'{manifest["kind"]} nowhere/web: namespaces "nowhere" not found'):
        apply_manifests(Trial(about, {}), [lost], TrialRegistry)
    apply_manifests(Trial(about, {}), [lost, asked_for], TrialRegistry)
    apply_manifests(Trial(cluster("n"), {}), [lost], TrialRegistry)
    apply_manifests(
        Trial(cluster("n", namespaces=[Namespace(metadata=ObjectMeta(name="labelled"))]), {}), [lost], TrialRegistry
    )


def test_no_object_is_taken_when_one_of_them_is_wrong() -> None:
    about = cluster("n")
    with pytest.raises(ManifestError):
        pods_of(about, [pod("fine"), {"apiVersion": "apps/v1", "kind": "Whatever", "metadata": {"name": "x"}}])

    assert not about.pending


# Workloads.


def test_a_deployment_makes_pods_through_a_replica_set() -> None:
    about = cluster()

    pods = pods_of(about, [workload("Deployment", replicas=2)])

    assert names(pods) == ["web-1", "web-2"]
    ((_, name),) = about.cache.objects.replica_sets
    assert [(pod.metadata.owner_references[0].kind, pod.metadata.owner_references[0].name) for pod in pods] == [
        ("ReplicaSet", name)
    ] * 2
    selector = about.cache.objects.replica_sets["default", name].spec.selector
    assert selector is not None
    assert selector.match_labels.items() <= pods[0].labels.items()


def test_a_deployment_keeps_the_pods_that_it_has() -> None:
    """Only the difference is made up for: with two of three there, one comes."""
    owner = OwnerReference(kind="Deployment", name="web", controller=True)
    replica_set = ReplicaSet(metadata=ObjectMeta(name="web-abc", namespace="default", owner_references=[owner]))
    pods = tuple(made_of_template(f"web-{number}", "web", "ReplicaSet", "web-abc") for number in (1, 3))

    new_pods = pods_of(cluster("n", pods=pods, replica_sets=(replica_set,)), [workload("Deployment", replicas=3)])

    assert names(new_pods) == ["web-2"]


def test_a_stateful_set_makes_the_ordinals_that_are_missing_and_their_claims() -> None:
    about = cluster("n", pods=(made_of_template("db-0", "db", "StatefulSet", "db"),))

    pods = pods_of(
        about,
        [
            workload(
                "StatefulSet", "db", replicas=3, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": STORAGE}]
            )
        ],
    )

    assert names(pods) == ["db-1", "db-2"]
    assert list(about.cache.objects.pvcs) == [("default", "data-db-1"), ("default", "data-db-2")]
    volume = pods[0].spec.volumes[0].persistent_volume_claim
    assert volume is not None
    assert volume.claim_name == "data-db-1"
    assert pods[0].labels["apps.kubernetes.io/pod-index"] == "1"


def test_a_daemon_set_makes_a_pod_for_each_node_that_lets_it() -> None:
    """Not on one that has it, not on one that its selector leaves out, not on one with a taint that it minds; but on a
    cordoned one.
    """
    tainted = make_node("tainted").label({"kubernetes.io/hostname": "tainted"}).taint("dedicated", "db").obj()
    about = cluster("a", "b", "has")
    about.changed(None, tainted)
    about.changed(None, make_node("cordoned").label({"kubernetes.io/hostname": "cordoned"}).unschedulable().obj())
    about.changed(None, make_node("other").label({"kubernetes.io/hostname": "other"}).obj())
    about.changed(None, owned_by(make_pod("agent-has").node("has").obj(), "DaemonSet", "agent"))
    values = ["a", "b", "has", "tainted", "cordoned"]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    pods = pods_of(about, [workload("DaemonSet", "agent", pod_spec={**POD_SPEC, "affinity": affinity})])

    assert names(pods) == ["agent-a", "agent-b", "agent-cordoned"]
    affinity_of_it = pods[0].spec.affinity
    assert affinity_of_it is not None
    assert affinity_of_it.node_affinity is not None
    pinned = affinity_of_it.node_affinity.required
    assert pinned is not None
    assert [field.values for node_term in pinned.node_selector_terms for field in node_term.match_fields] == [["a"]]


@cases(
    "spec, pods",
    ("one at a time", {}, 1),
    ("three at a time", {"parallelism": 3}, 3),
    ("no more than are to complete", {"parallelism": 3, "completions": 2}, 2),
    ("suspended", {"parallelism": 3, "suspend": True}, 0),
)
def test_a_job_makes_as_many_pods_as_run_at_a_time(spec: dict[str, Any], pods: int) -> None:
    once = {**POD_SPEC, "restartPolicy": "Never"}

    new_pods = pods_of(cluster(), [workload("Job", "sum", pod_spec=once, **spec)])

    assert names(new_pods) == [f"sum-{number}" for number in range(1, pods + 1)]
    assert all(pod.labels["job-name"] == "sum" for pod in new_pods)


def job_set(name: str = "train", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def replicated(name: str, replicas: Any = 1, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"role": name}}, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": template, **spec}}}


def test_a_job_set_makes_the_pods_of_all_its_jobs() -> None:
    pods = pods_of(cluster(), [job_set(replicatedJobs=[replicated("leader"), replicated("worker", 2, parallelism=2)])])

    assert names(pods) == ["train-leader-0-1", *(f"train-worker-{job}-{pod}" for job in (0, 1) for pod in (1, 2))]
    assert [pod.labels["jobset.sigs.k8s.io/replicatedjob-name"] for pod in pods] == ["leader", *["worker"] * 4]
    assert {pod.labels["role"] for pod in pods} == {"leader", "worker"}
    assert not pods_of(cluster(), [job_set(suspend=True, replicatedJobs=[replicated("worker")])])


def test_a_cron_job_runs_once() -> None:
    once = {
        "spec": {"template": {"metadata": {"labels": {"app": "tidy"}}, "spec": {**POD_SPEC, "restartPolicy": "Never"}}}
    }
    spec = {"schedule": "0 3 * * *", "jobTemplate": once}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tidy"}, "spec": spec}

    assert names(pods_of(cluster(), [cron])) == ["tidy-1"]


# What pods only describe.


def test_an_ephemeral_volume_gets_its_claim() -> None:
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": STORAGE}}}
    about = cluster()

    (new_pod,) = pods_of(about, [pod(volumes=[scratch])])

    claim = about.cache.objects.pvcs["default", "web-scratch"]
    assert [(owner.kind, owner.uid, owner.controller) for owner in claim.metadata.owner_references] == [
        ("Pod", new_pod.uid, True)
    ]


def test_a_resource_claim_is_made_of_its_template() -> None:
    about = cluster()

    (new_pod,) = pods_of(about, [ONE_GPU, pod(**WANTS_ONE_GPU)])

    assert [status.resource_claim_name for status in new_pod.status.resource_claim_statuses] == ["web-gpu-1"]
    claim = about.cache.objects.resource_claims["default", "web-gpu-1"]
    assert claim.spec.devices.requests[0].exactly is not None
    assert [owner.uid for owner in claim.metadata.owner_references] == [new_pod.uid]


def test_a_template_of_the_cluster_will_do_and_one_that_is_not_known_is_named() -> None:
    before, wants = deepcopy(ONE_GPU), pod(**WANTS_ONE_GPU)
    about = cluster()

    applied = apply_manifests(Trial(about, {}), [wants], partial(TrialRegistry, ClaimTemplates([ONE_GPU])))

    assert [status.resource_claim_name for status in applied.pods[0].status.resource_claim_statuses] == ["web-gpu-1"]
    assert ("default", "web-gpu-1") in about.cache.objects.resource_claims
    assert applied.missing_templates == ()
    assert apply_manifests(Trial(cluster(), {}), [wants], TrialRegistry).missing_templates == ("default/one-gpu",)
    assert before == ONE_GPU


def test_a_claim_that_is_there_is_used_as_it_is() -> None:
    about = cluster()
    pods_of(about, [volume_claim("data-db-0", volumeName="disk")])
    pods_of(
        about,
        [
            workload(
                "StatefulSet", "db", replicas=1, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": STORAGE}]
            )
        ],
    )

    assert about.cache.objects.pvcs["default", "data-db-0"].spec.volume_name == "disk"
