"""Defaults: values of fields that were left out, and of fields that repeat others.

A rule belongs to a type and holds wherever the type occurs, parents before children, as upstream's SetDefaults do.

Upstream: pkg/apis/core/v1, defaults.go, conversion.go; defaults.go of pkg/apis/apps/v1, scheduling/v1, storage/v1,
resource/v1; pkg/util/parsers/parsers.go, ParseImageName.
"""

import base64
import copy
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types
from extender.values.golang.schema import Field, GoType, ListOf, MapOf, Presence, Struct
from extender.values.objects import decoding
from extender.values.objects.pod import Pod, PodSpec
from extender.values.objects.quantity import MILLI, quantity_of
from extender.values.objects.resource_amounts import sum_limits, sum_requests
from extender.values.objects.resource_names import CPU, HUGEPAGES_PREFIX, MEMORY, is_pod_level_resource

_DEFAULT_GRACE_SECONDS: Final = 30
_SESSION_AFFINITY_SECONDS: Final = 10800


def set_defaults(resource: Resource, obj: Object) -> None:
    """Fills in the defaults of an object that `api_types.read` returned, in place."""
    _fill_struct(api_types.type_of(resource), obj)


def _fill(type_: GoType, value: Any) -> None:
    if value is None:
        return
    if isinstance(type_, Struct):
        _fill_struct(type_, value)
    elif isinstance(type_, ListOf):
        for item in value:
            _fill(type_.item, item)
    elif _is_resource_list(type_):
        _round_up(value)
    elif isinstance(type_, MapOf):
        for item in value.values():
            _fill(type_.value, item)


def _fill_struct(struct: Struct, obj: Object) -> None:
    rule = _RULES.get(struct.name)
    if rule is not None:
        rule(obj)
    for name, field in _concerned(struct):
        if field.default is not None and obj.get(name) in (None, ""):
            # An empty default has no effect on a field that is left out when it is empty.
            if field.default or field.presence is not Presence.OMIT:
                obj[name] = field.default
        elif name in obj:
            _fill(field.type, obj[name])


@cache
def _concerned(struct: Struct) -> tuple[tuple[str, Field], ...]:
    """Returns the fields that have a default, or contain fields that have one."""
    return tuple(
        (name, field) for name, field in struct.fields.items() if field.default is not None or _is_concerned(field.type)
    )


def _is_concerned(type_: GoType) -> bool:
    if _is_resource_list(type_):
        return True
    if isinstance(type_, Struct):
        return type_.name in _RULES or bool(_concerned(type_))
    if isinstance(type_, ListOf):
        return _is_concerned(type_.item)
    return isinstance(type_, MapOf) and _is_concerned(type_.value)


def _is_resource_list(type_: GoType) -> bool:
    return isinstance(type_, MapOf) and type_.go_type == "v1.ResourceList"


def _round_up(amounts: Object) -> None:
    """Rounds amounts up to thousandths. Upstream: SetDefaults_ResourceList."""
    for name, amount in amounts.items():
        if amount[-1:] in "nu" or "e" in amount:
            amounts[name] = str(quantity_of(amount).round_up(MILLI)[0])


def _filled(**values: Any) -> Callable[[Object], None]:
    def rule(obj: Object) -> None:
        for name, value in values.items():
            obj.setdefault(name, copy.copy(value))

    return rule


# Pods


def _pod(pod: Object) -> None:
    spec = pod["spec"]
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        # An object from a dump may lack the empty one.
        limits = (container.get("resources") or {}).get("limits")
        if limits:
            container["resources"]["requests"] = limits | container["resources"].get("requests", {})
        if spec.get("hostNetwork"):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port["containerPort"])
    spec.setdefault("enableServiceLinks", True)
    if spec.get("resources"):
        _pod_level(spec)


def _pod_level(spec: Object) -> None:
    """Completes the pod's own resources from its containers (defaultHugePagePodLimits, defaultPodRequests)."""
    resources = spec["resources"]
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    pod = containers_alone(spec)
    for name, total in sum_limits(pod, quantity_of).items():
        if name.startswith(HUGEPAGES_PREFIX) and name not in requests:
            limits.setdefault(name, str(total))
    if limits:
        resources["limits"] = limits
        for name, total in sum_requests(pod, quantity_of).items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, str(total))
        requests = {name: limit for name, limit in limits.items() if is_pod_level_resource(name)} | requests
    if requests:
        resources["requests"] = requests


def containers_alone(spec: Object) -> Pod:
    """Returns a pod with the containers alone, for the sum of their requests."""
    containers = {name: spec.get(name) or [] for name in ("containers", "initContainers")}
    return Pod(spec=decoding.convert(PodSpec, containers))


def _pod_spec(spec: Object) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    spec.setdefault("schedulerName", "default-scheduler")


def _pod_status(status: Object) -> None:
    first = status["podIPs"][0].get("ip") if status.get("podIPs") else None
    if first:
        status.setdefault("podIP", first)
    elif status.get("podIP"):
        status["podIPs"] = [{"ip": status["podIP"]}]


def _container(container: Object) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")


def _volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None:
        image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))


# Nodes, namespaces, services, volumes


def _node_spec(spec: Object) -> None:
    if spec.get("podCIDRs"):
        spec.setdefault("podCIDR", spec["podCIDRs"][0])
    elif spec.get("podCIDR"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def _node_status(status: Object) -> None:
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _namespace(namespace: Object) -> None:
    if namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = namespace["metadata"]["name"]
    namespace["status"].setdefault("phase", "Active")


def _service(service: Object) -> None:
    spec = service["spec"]
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (
        affinity == "ClientIP"
        and ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") is None
    ):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _SESSION_AFFINITY_SECONDS}}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        if port.get("targetPort", 0) in (0, ""):
            port["targetPort"] = port["port"]
    is_external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if is_external:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _persistent_volume(volume: Object) -> None:
    volume["status"].setdefault("phase", "Pending")
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")


# Workloads


def _replication_controller(controller: Object) -> None:
    labels = ((controller["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not controller["spec"].get("selector"):
            controller["spec"]["selector"] = dict(labels)
        if not controller["metadata"].get("labels"):
            controller["metadata"]["labels"] = dict(labels)


def _deployment(deployment: Object) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    if spec["strategy"].setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = spec["strategy"].setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _stateful_set(stateful_set: Object) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for template in spec.get("volumeClaimTemplates", ()):
        template |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


def _daemon_set(daemon_set: Object) -> None:
    spec = daemon_set["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _job(job: Object) -> None:
    spec, labels = job["spec"], ((job["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    for name, value in {**defaults, "podReplacementPolicy": policy, "manualSelector": False}.items():
        spec.setdefault(name, value)


# Secrets, devices


def _secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    for name, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()


def _device_request(request: Object) -> None:
    if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)


def _device(device: Object) -> None:
    for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
        mapping.setdefault("allocationMultiplier", "1")


_file_mode: Final = _filled(defaultMode=0o644)

_RULES: Final[Mapping[str, Callable[[Object], None]]] = {
    "io.k8s.api.core.v1.Pod": _pod,
    "io.k8s.api.core.v1.PodSpec": _pod_spec,
    "io.k8s.api.core.v1.PodStatus": _pod_status,
    "io.k8s.api.core.v1.Container": _container,
    "io.k8s.api.core.v1.EphemeralContainer": _container,
    "io.k8s.api.core.v1.Probe": _filled(timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3),
    "io.k8s.api.core.v1.HTTPGetAction": _filled(path="/", scheme="HTTP"),
    "io.k8s.api.core.v1.Volume": _volume,
    "io.k8s.api.core.v1.SecretVolumeSource": _file_mode,
    "io.k8s.api.core.v1.ConfigMapVolumeSource": _file_mode,
    "io.k8s.api.core.v1.DownwardApiVolumeSource": _file_mode,
    "io.k8s.api.core.v1.ProjectedVolumeSource": _file_mode,
    "io.k8s.api.core.v1.ServiceAccountTokenProjection": _filled(expirationSeconds=3600),
    "io.k8s.api.core.v1.HostPathVolumeSource": _filled(type=""),
    "io.k8s.api.core.v1.ObjectFieldSelector": _filled(apiVersion="v1"),
    "io.k8s.api.core.v1.NodeSpec": _node_spec,
    "io.k8s.api.core.v1.NodeStatus": _node_status,
    "io.k8s.api.core.v1.Namespace": _namespace,
    "io.k8s.api.core.v1.Service": _service,
    "io.k8s.api.core.v1.ReplicationController": _replication_controller,
    "io.k8s.api.core.v1.PersistentVolume": _persistent_volume,
    "io.k8s.api.core.v1.PersistentVolumeClaimStatus": _filled(phase="Pending"),
    "io.k8s.api.core.v1.PersistentVolumeClaimSpec": _filled(volumeMode="Filesystem"),
    "io.k8s.api.core.v1.Secret": _secret,
    "io.k8s.api.apps.v1.DaemonSet": _daemon_set,
    "io.k8s.api.apps.v1.Deployment": _deployment,
    "io.k8s.api.apps.v1.ReplicaSetSpec": _filled(replicas=1),
    "io.k8s.api.apps.v1.StatefulSet": _stateful_set,
    "io.k8s.api.batch.v1.CronJobSpec": _filled(
        concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1
    ),
    "io.k8s.api.batch.v1.Job": _job,
    "io.k8s.api.scheduling.v1.PriorityClass": _filled(preemptionPolicy="PreemptLowerPriority"),
    "io.k8s.api.storage.v1.StorageClass": _filled(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "io.k8s.api.storage.v1.CSIDriverSpec": _filled(
        attachRequired=True,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        podInfoOnMount=False,
        storageCapacity=False,
        requiresRepublish=False,
        seLinuxMount=False,
    ),
    "io.k8s.api.resource.v1.ExactDeviceRequest": _device_request,
    "io.k8s.api.resource.v1.DeviceSubRequest": _device_request,
    "io.k8s.api.resource.v1.Device": _device,
}


_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST: Final = (
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?))*|\[[a-fA-F0-9:]+\]"
)
_REFERENCE: Final = re.compile(
    rf"(?:(?:{_HOST})(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """Returns `Always` for the tag `latest`, written or implied, else `IfNotPresent`."""
    reference = _REFERENCE.fullmatch(image)
    if reference is None:
        return "IfNotPresent"
    implied = reference["tag"] is None and reference["digest"] is None
    return "Always" if implied or reference["tag"] == "latest" else "IfNotPresent"
