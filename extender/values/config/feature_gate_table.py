"""The feature gates that a scheduler knows, by version of Kubernetes, and what each does here, for the docs as well.

Upstream: pkg/features/kube_features.go; pkg/scheduler/framework/plugins/feature/feature.go; component-base/featuregate
(v1.36.2, v1.37); test/compatibility_lifecycle/reference/versioned_feature_list.yaml; client-go/features (v1.33 to
v1.37); CHANGELOG/CHANGELOG-1.38.md (v1.38.0-alpha.2).
"""

import enum
from collections.abc import Mapping
from typing import Final, final

import msgspec

VERSIONS: Final = ("1.33", "1.34", "1.35", "1.36", "1.37", "1.38")
"""The versions of kube-scheduler that can be emulated."""

NOT_EMULATED: Final[Mapping[str, str]] = {
    "1.38": "feature gates are those of v1.38.0-alpha.2; pod groups are scheduled as in 1.36, without "
    "CompositePodGroup and claims of groups; see docs/newer-versions.md"
}
"""What of a version is not emulated, for the log."""

DEFAULT_VERSION: Final = "1.36"
"""The version whose decisions are made unless another one is asked for."""


@final
class Stage(enum.Enum):
    """How mature a feature is. The value is the label `stage` of the metric `kubernetes_feature_enabled`."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""


@final
class FeatureSpec(msgspec.Struct, frozen=True):
    """What a gate is from one version on. Upstream: featuregate.FeatureSpec."""

    since: tuple[int, int]
    stage: Stage
    default: bool
    locked: bool
    """Whether only the default may be given."""


@final
class Gate(msgspec.Struct, frozen=True):
    """A feature gate: its history, and what its value changes here.

    Attributes:
        only: the value that always holds here, so that the other one is refused; None if either is accepted.
        why: why the gate has one value, or no effect; empty if either value does what it does upstream.
        needs: gates that must be on where this one is.
        gone: the version that no longer knows the gate; None if all do.
        part_of: the gate that stands for this one once it is gone; empty if none does.
    """

    history: tuple[FeatureSpec, ...]
    only: bool | None = None
    why: str = ""
    needs: tuple[str, ...] = ()
    removed_in: tuple[int, int] | None = None
    part_of: str = ""

    def at(self, version: str) -> FeatureSpec | None:
        """Returns what the gate is in a version; None if that version does not know it."""
        if self.is_gone(version):
            return None
        specs = [spec for spec in self.history if spec.since <= number(version)]
        return specs[-1] if specs else None

    def is_gone(self, version: str) -> bool:
        return self.removed_in is not None and self.removed_in <= number(version)

    @property
    def is_always_locked(self) -> bool:
        """Whether no version of those that can be emulated lets the gate be switched."""
        return all(spec is None or spec.locked for spec in map(self.at, VERSIONS))


def number(version: str) -> tuple[int, int]:
    """Returns a version as numbers, which can be compared."""
    major, minor = version.split(".")
    return int(major), int(minor)


def _gate(history: str, *, only: bool | None = None, why: str = "", needs: str = "", part_of: str = "") -> Gate:
    """Returns a gate whose history reads like `1.32 alpha off, 1.33 beta on, 1.35 GA on locked, 1.38 gone`."""
    specs, removed_in = [], None
    for words in history.split(", "):
        if words.endswith(" gone"):
            removed_in = number(words.removesuffix(" gone"))
            continue
        since, stage, default, *locked = words.split(" ")
        specs.append(FeatureSpec(number(since), Stage[stage.upper()], default == "on", locked == ["locked"]))
    return Gate(tuple(specs), only, why, tuple(needs.split()), removed_in, part_of)


_DRA: Final = "DynamicResourceAllocation"
_POD_GROUPS: Final = "pod groups are those of 1.36"
_LOGGING: Final = "the options for logging are those of docs/flags.md"

GATES: Final[Mapping[str, Gate]] = {
    # How pods are queued, scheduled and bound.
    "SchedulerQueueingHints": _gate(
        "1.28 beta off, 1.32 beta on, 1.34 GA on locked, 1.37 gone", only=True, why="the queue is built on hints"
    ),
    "SchedulerPopFromBackoffQ": _gate("1.33 beta on"),
    "SchedulerAsyncPreemption": _gate("1.32 alpha off, 1.33 beta on"),
    "SchedulerAsyncAPICalls": _gate(
        "1.34 beta off", why="writes always go through the dispatcher, which merges those that are outdated"
    ),
    "SchedulerPreQueueingHints": _gate(
        "1.37 alpha off", why="an event is weighed for those pods alone that wait for it"
    ),
    "NominatedNodeNameForExpectation": _gate("1.34 alpha off, 1.35 beta on"),
    "ClearingNominatedNodeNameAfterBinding": _gate("1.34 alpha off, 1.35 beta on", why="the API server clears it"),
    "OpportunisticBatching": _gate(
        "1.35 beta on", why="every pod is ranked by itself, exactly; what equal pods have in common is computed once"
    ),
    "PodSchedulingReadiness": _gate("1.26 alpha off, 1.27 beta on, 1.30 GA on locked, 1.38 gone"),
    "PodObservedGenerationTracking": _gate("1.33 alpha off, 1.34 beta on, 1.35 GA on locked"),
    # Pod groups.
    "GenericWorkload": _gate("1.35 alpha off, 1.37 beta off"),
    "GangScheduling": _gate("1.35 alpha off, 1.37 gone", needs="GenericWorkload", part_of="GenericWorkload"),
    "TopologyAwareWorkloadScheduling": _gate("1.36 alpha off", needs="GenericWorkload"),
    "WorkloadAwarePreemption": _gate("1.36 alpha off, 1.37 gone", needs="GangScheduling", part_of="GenericWorkload"),
    "DRAWorkloadResourceClaims": _gate(
        "1.36 alpha off, 1.37 beta off", only=False, why=_POD_GROUPS, needs=f"{_DRA} GenericWorkload"
    ),
    "CompositePodGroup": _gate(
        "1.37 alpha off", only=False, why=_POD_GROUPS, needs="GenericWorkload TopologyAwareWorkloadScheduling"
    ),
    "PodGroupPreemptionPolicy": _gate("1.37 alpha off", only=False, why=_POD_GROUPS),
    # Resources, taints and topology.
    "SidecarContainers": _gate("1.28 alpha off, 1.29 beta on, 1.33 GA on locked, 1.37 gone"),
    "PodLevelResources": _gate(
        "1.32 alpha off, 1.34 beta on", only=True, why="resources of pods as a whole always count"
    ),
    "InPlacePodVerticalScaling": _gate(
        "1.27 alpha off, 1.33 beta on, 1.35 GA on locked", only=True, why="what a resized pod was given always counts"
    ),
    "InPlacePodLevelResourcesVerticalScaling": _gate(
        "1.35 alpha off, 1.36 beta on",
        only=True,
        why="what a resized pod was given always counts",
        needs="PodLevelResources InPlacePodVerticalScaling",
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": _gate("1.37 alpha off", only=False, why="resizes do not preempt"),
    "NodeDeclaredFeatures": _gate("1.35 alpha off, 1.36 beta on, 1.37 GA on locked"),
    "TaintTolerationComparisonOperators": _gate("1.35 alpha off"),
    "NodeInclusionPolicyInPodTopologySpread": _gate("1.25 alpha off, 1.26 beta on, 1.33 GA on locked"),
    "MatchLabelKeysInPodTopologySpread": _gate("1.25 alpha off, 1.27 beta on"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _gate("1.34 beta on", why="the API server merges the selectors"),
    "MatchLabelKeysInPodAffinity": _gate("1.29 alpha off, 1.31 beta on, 1.33 GA on locked, 1.38 gone"),
    "InterPodAffinityHostnameFastPath": _gate(
        "1.37 alpha off", why="terms are tallied by node, which is as fast for every topology key"
    ),
    # Volumes.
    "StorageCapacityScoring": _gate("1.33 alpha off, 1.37 beta on"),
    "VolumeLimitScaling": _gate("1.35 alpha off, 1.37 beta on"),
    "VolumeAttributesClass": _gate("1.29 alpha off, 1.31 beta off, 1.34 GA on, 1.36 GA on locked"),
    "ImageVolume": _gate(
        "1.31 alpha off, 1.33 beta off, 1.35 beta on, 1.36 GA on locked", why="ImageLocality always counts them"
    ),
    # Dynamic resource allocation.
    _DRA: _gate("1.26 alpha off, 1.32 beta off, 1.34 GA on, 1.35 GA on locked, 1.38 gone"),
    "DRAPrioritizedList": _gate("1.33 alpha off, 1.34 beta on, 1.36 GA on, 1.37 GA on locked", needs=_DRA),
    "DRAAdminAccess": _gate(
        "1.32 alpha off, 1.34 beta on, 1.36 GA on locked",
        only=True,
        why="admin access is always given where it is asked for",
        needs=_DRA,
    ),
    "DRAExtendedResource": _gate("1.34 alpha off, 1.36 beta on, 1.37 GA on locked", needs=_DRA),
    "DRAPartitionableDevices": _gate("1.33 alpha off, 1.36 beta on", needs=_DRA),
    "DRAConsumableCapacity": _gate(
        "1.34 alpha off, 1.36 beta on", only=True, why="capacity is always shared", needs=_DRA
    ),
    "DRADeviceBindingConditions": _gate("1.34 alpha off, 1.36 beta on", needs=f"{_DRA} DRAResourceClaimDeviceStatus"),
    "DRADeviceTaints": _gate("1.33 alpha off, 1.36 beta on, 1.37 GA on, 1.38 GA on locked", needs=_DRA),
    "DRADeviceTaintRules": _gate(
        "1.35 alpha off, 1.36 beta off, 1.37 GA on, 1.38 GA on locked", needs="DRADeviceTaints"
    ),
    "DRASchedulerFilterTimeout": _gate("1.34 beta on", needs=_DRA),
    "DRAResourceClaimDeviceStatus": _gate("1.32 alpha off, 1.33 beta on, 1.37 GA on locked"),
    "DRANodeAllocatableResources": _gate(
        "1.36 alpha off", only=False, why="devices stand for no node resources", needs=_DRA
    ),
    "DRAListTypeAttributes": _gate("1.36 alpha off", only=False, why="attributes are single values", needs=_DRA),
    "DRADerivedAttributes": _gate("1.37 alpha off", only=False, why="attributes are not derived"),
    "DRADeviceCompatibilityGroups": _gate(
        "1.37 alpha off", only=False, why="devices have no groups", needs="DRAPartitionableDevices"
    ),
    "DRAFractionalCapacityRange": _gate("1.37 beta on"),
    "DRAOptionalNodeOperations": _gate("1.37 alpha off", only=False, why="the field is not read"),
    # The process.
    "CoordinatedLeaderElection": _gate("1.31 alpha off, 1.33 beta off", why="replicas elect themselves by the lease"),
    "ComponentFlagz": _gate("1.32 alpha off, 1.36 beta on"),
    "ComponentStatusz": _gate("1.32 alpha off, 1.36 beta on"),
    "LoggingBetaOptions": _gate("1.24 beta on", why=_LOGGING),
    "LoggingAlphaOptions": _gate("1.24 alpha off", why=_LOGGING),
}

_NAMES: Final = """
APIResponseCompression APIServerIdentity APIServerTracing APIServingWithRoutine AggregatedDiscoveryRemoveBetaType
AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs AllowServiceLBStatusOnNonLB AllowUnsafeMalformedObjectDeletion
AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AtomicFIFO AuthorizeNodeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors BtreeWatchCache CBORServingAndStorage
CPUCFSQuotaPeriod CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CPUManagerPolicyOptions
CRDObservedGenerationTracking CRDValidationRatcheting CRIListStreaming CSIMigrationPortworx
CSIServiceAccountTokenSecrets CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCBOR ClientsPreferCBOR
CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ClusterTrustBundle
ClusterTrustBundleProjection ComponentSLIs ConcurrentWatchObjectDecode ConsistentListFromCache
ConsistentListFromCacheSkipTimeoutFallback ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules
ContainerStopSignals ContextualLogging ControllerManagerReleaseLeaderElectionLockOnExit CronJobsScheduledAnnotation
CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod CustomResourceFieldSelectors
DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DeclarativeValidation DeclarativeValidationBeta
DeclarativeValidationTakeover DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DevicePluginCDIDevices
DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion EnvFiles EtcdRangeStream
EventedPLEG ExecProbeTimeout ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner GitRepoVolumeDriver
GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAGeneration HPAScaleToZero
HonorPVReclaimPolicy HostnameOverride ImageMaximumGCAge ImageVolumeWithDigest InOrderInformers
InPlacePodVerticalScalingAllocatedStatus InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScalingInitContainers InTreePluginPortworxUnregister InformerResourceVersion JobBackoffLimitPerIndex
JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KMSv1 KubeProxyIPVS KubeletCgroupDriverFromCRI
KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring ManifestBasedAdmissionControlConfig
MaxUnavailableStatefulSet MemoryManager MemoryQoS MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
MutatingAdmissionPolicy NFTablesProxyMode NativeHistograms NodeControllerLeaseCircuitBreaker NodeLogQuery NodeSwap
OpenAPIEnums PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodCertificateRequest
PodDeletionCost PodLevelResourceManagers PodLogsQuerySplitStreams PodReadyToStartContainersCondition
PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets PreferSameTrafficDistribution PreventStaticPodAPIReferences
ProcMountType QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts ReduceDefaultCrashLoopBackOffDecay
RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation ReloadKubeletClientCAFile
ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
RestartAllContainersOnContainerExits RotateKubeletServerCertificate RuntimeClassInImageCriApi SELinuxChangePolicy
SELinuxMount SELinuxMountReadWriteOncePod SeparateCacheWatchRPC SeparateTaintEvictionController
ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo ServiceCIDRStatusFieldWiping ShardedListAndWatch
SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA
StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
StatefulSetSemanticRevisionComparison StorageNamespaceIndex StorageVersionAPI StorageVersionHash StorageVersionMigrator
StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics SupplementalGroupsPolicy SystemdWatchdog
TokenRequestServiceAccountUIDValidation TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
TopologyManagerPolicyOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport UserNamespacesSupport
WatchCacheInitializationPostStartHook WatchList WatchListClient WatchListCompression WebhookRoundTripLoadBalancing
WinDSR WinOverlay WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadWithJob
"""

OTHER_GATES: Final = frozenset(_NAMES.split())
"""The gates that no scheduler reads. kube-scheduler accepts them, because the parts of Kubernetes share one list of
gates, and operators give all parts the same flag.
"""
