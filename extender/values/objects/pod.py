"""Pod: its spec and status as far as the scheduler reads them."""

import msgspec

from extender.values.golang.times import moment_of
from extender.values.objects.decoding import DecodeError
from extender.values.objects.meta import (
    ApiObject,
    Condition,
    Int32,
    LabelSelector,
    Namespaced,
    NodeSelector,
    NodeSelectorTerm,
)
from extender.values.objects.node import ResourceList

DEFAULT_SCHEDULER_NAME = "default-scheduler"
STARTED_NOW = 2**63 - 1
"""Start time of a pod without status.startTime: upstream takes "now" for it, later than every real time."""


class ResourceClaimRef(ApiObject, frozen=True):
    """v1.ResourceClaim inside container resources: a claim of the pod that the container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiObject, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[ResourceClaimRef] = []


class ContainerPort(ApiObject, frozen=True):
    """v1.ContainerPort; `host_port` 0 means that no host port is asked for."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class RestartPolicyRule(ApiObject, frozen=True):
    """v1.ContainerRestartRule; only its presence matters."""

    action: str = ""


class Container(ApiObject, frozen=True):
    """v1.Container. An init container with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[RestartPolicyRule] = []

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"


class Toleration(ApiObject, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PreferredSchedulingTerm(ApiObject, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(ApiObject, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(ApiObject, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(ApiObject, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(ApiObject, frozen=True):
    """v1.PodAffinity and v1.PodAntiAffinity: they have the same shape."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(ApiObject, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiObject, frozen=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class PersistentVolumeClaimVolumeSource(ApiObject, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiObject, frozen=True):
    """v1.EphemeralVolumeSource: the claim is called `<pod name>-<volume name>`."""


class GCEPersistentDisk(ApiObject, frozen=True):
    """v1.GCEPersistentDiskVolumeSource."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStore(ApiObject, frozen=True):
    """v1.AWSElasticBlockStoreVolumeSource."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(ApiObject, frozen=True):
    """v1.AzureDiskVolumeSource."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class CinderVolume(ApiObject, frozen=True):
    """v1.CinderVolumeSource."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(ApiObject, frozen=True):
    """v1.PortworxVolumeSource."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVolume(ApiObject, frozen=True):
    """v1.VsphereVirtualDiskVolumeSource."""

    volume_path: str = ""


class AzureFile(ApiObject, frozen=True):
    """v1.AzureFileVolumeSource."""

    secret_name: str = ""
    share_name: str = ""


class ISCSIVolume(ApiObject, frozen=True):
    """v1.ISCSIVolumeSource."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDVolume(ApiObject, frozen=True):
    """v1.RBDVolumeSource."""

    monitors: list[str] = []
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ImageVolume(ApiObject, frozen=True):
    """v1.ImageVolumeSource."""

    reference: str = ""


class CSIVolume(ApiObject, frozen=True):
    """v1.CSIVolumeSource: an inline ephemeral CSI volume."""

    driver: str = ""


class Volume(ApiObject, frozen=True):
    """v1.Volume: exactly one of the sources is set; kinds that scheduling ignores are left out."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    image: ImageVolume | None = None
    csi: CSIVolume | None = None


class PodSchedulingGate(ApiObject, frozen=True):
    name: str = ""


class PodResourceClaim(ApiObject, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiObject, frozen=True):
    """v1.PodSchedulingGroup: the PodGroup that the pod is in."""

    pod_group_name: str = ""


class PodSpec(ApiObject, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[PodSchedulingGate] = []
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    host_network: bool = False
    host_users: bool | None = None
    scheduling_group: PodSchedulingGroup | None = None


class ContainerStatus(ApiObject, frozen=True):
    """v1.ContainerStatus, for in-place resize."""

    name: str = ""
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(ApiObject, frozen=True):
    """v1.PodResourceClaimStatus: which claim was generated for a template; None when none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiObject, frozen=True):
    """v1.ContainerExtendedResourceRequest: which request of the claim stands for a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiObject, frozen=True):
    """v1.PodExtendedResourceClaimStatus: the claim that was made for extended resources which device classes serve."""

    request_mappings: list[ContainerExtendedResourceRequest] = []
    resource_claim_name: str = ""


class PodStatus(ApiObject, frozen=True):
    phase: str = ""
    conditions: list[Condition] = []
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Namespaced, frozen=True):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def priority(self) -> int:
        """spec.priority; missing counts as 0. Upstream: corev1helpers.PodPriority."""
        return self.spec.priority or 0

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or DEFAULT_SCHEDULER_NAME

    @property
    def is_terminating(self) -> bool:
        """True once deletion was asked for; the pod still occupies its node."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminal(self) -> bool:
        """True in phase Succeeded or Failed: the scheduler never sees such a pod."""
        return self.status.phase in ("Succeeded", "Failed")


def start_time(pod: Pod) -> int:
    """status.startTime in seconds since 1970; STARTED_NOW if there is none. Raises DecodeError."""
    text = pod.status.start_time
    if text is None:
        return STARTED_NOW
    moment = moment_of(text)
    if moment is None:
        raise DecodeError("status.startTime: not a time as RFC 3339 writes it")
    return int(moment.timestamp())
