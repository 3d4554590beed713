"""kube-scheduler's feature gates, and which of them are on here. A gate may be given only the value that it has here.

Upstream: pkg/features/kube_features.go; component-base/featuregate, feature_gate.go, SetFromMap (v1.36.2).
"""

from collections.abc import Iterator
from typing import Final

ON: Final = frozenset((
    "SchedulerQueueingHints", "SchedulerPopFromBackoffQ", "SchedulerAsyncPreemption", "SchedulerAsyncAPICalls",
    "NominatedNodeNameForExpectation", "PodSchedulingReadiness", "DynamicResourceAllocation", "DRAPrioritizedList", "DRAAdminAccess",
    "DRAPartitionableDevices", "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints", "DRASchedulerFilterTimeout",
    "DRAResourceClaimDeviceStatus", "NodeDeclaredFeatures", "InPlacePodVerticalScaling", "PodLevelResources",
    "InPlacePodLevelResourcesVerticalScaling", "SidecarContainers", "NodeInclusionPolicyInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge", "MatchLabelKeysInPodAffinity",
    "PodObservedGenerationTracking", "ImageVolume", "ComponentFlagz", "ComponentStatusz", "AllBeta",
))  # fmt: skip

OFF: Final = frozenset((
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "DRAWorkloadResourceClaims",
    "DRAExtendedResource", "DRANodeAllocatableResources", "TaintTolerationComparisonOperators", "StorageCapacityScoring",
    "VolumeLimitScaling", "CoordinatedLeaderElection", "AllAlpha",
))  # fmt: skip

EITHER: Final = {
    "OpportunisticBatching": "every pod is ranked by itself, exactly; what equal pods have in common is computed once",
    "ClearingNominatedNodeNameAfterBinding": "the API server clears it",
    "LoggingBetaOptions": "the options for logging are those of docs/flags.md",
    "LoggingAlphaOptions": "the options for logging are those of docs/flags.md",
}
"""Gate -> why it makes no difference here. Either value is accepted."""

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


def parse_bool(text: str) -> bool:
    """Returns what Go's strconv.ParseBool makes of the text.

    Raises:
        ValueError: the text is neither true nor false; the message is Go's.
    """
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def check_feature_gates(text: str) -> None:
    """Checks that every gate has the value that is asked for.

    Arguments:
        text: `A=true,B=false`; a name may have `kube:` before it.

    Raises:
        ValueError: a gate is unknown or has another value here, or the text has another form.
    """
    for name, wanted in _pairs(text):
        if name not in (ON | OFF) and name not in EITHER:
            raise ValueError(f"unrecognized feature gate: {name}")
        if wanted and name in OFF:
            raise ValueError(f"{name} cannot be turned on here")
        if not wanted and name in ON:
            raise ValueError(f"{name} cannot be turned off here")


def gates_without_effect(text: str) -> Iterator[tuple[str, str]]:
    """Yields (gate, why) for the gates that are accepted with either value. The text has been checked."""
    for name, _ in _pairs(text):
        if name in EITHER:
            yield name, EITHER[name]


def _pairs(text: str) -> Iterator[tuple[str, bool]]:
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, has_value, value = pair.removeprefix("kube:").partition("=")
        if not has_value:
            raise ValueError(f"missing bool value for {name.strip()}")
        try:
            yield name.strip(), parse_bool(value.strip())
        except ValueError as exc:
            raise ValueError(f"invalid value of {name.strip()}={value.strip()}, err: {exc}") from exc
