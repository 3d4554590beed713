"""What hangs on the kinds that may not be listed, and plugins that say so instead of deciding without them.

A plugin that reads such a kind skips the pods to which it matters. The other Filters still refuse nodes, and what they
refuse is certain: fewer pods on a node never make less room. Of a node that passes them all it is not known whether the
pod fits, which the Filter `NotKnown` says, as the last one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from extender.answers.phrases import NOT_KNOWN, all_of
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Rows, Snapshot
from extender.values.objects.pod import Pod, Volume
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import is_extended_resource_name
from reprieve.sources.listing import Gap, Gaps, in_words

NAME: Final = "NotKnown"


@final
@dataclass(frozen=True, slots=True)
class Evidence:
    """What the listed part of a cluster says about the missing part."""

    gaps: Gaps
    offered: frozenset[str]
    """Resources that some node offers."""
    selects_namespaces: bool
    """Whether a pod repels pods of namespaces selected by labels."""

    @staticmethod
    def of(gaps: Gaps, cluster: Cluster) -> "Evidence":
        nominated = [pod for pod in cluster.pending.values() if pod.status.nominated_node_name]
        pods = [*cluster.cache.pods, *nominated] if "namespaces" in gaps else []
        return Evidence(
            gaps,
            frozenset(name for node in cluster.nodes.values() for name in node.status.allocatable),
            any(_selects_namespaces(pod, is_own=False) for pod in pods),
        )


Concerns = Callable[[Pod, Evidence], bool]
"""Returns whether the missing kinds matter to where the pod fits."""


def _all(pod: Pod, evidence: Evidence) -> bool:
    return True


def _none(pod: Pod, evidence: Evidence) -> bool:
    return False


def _with_volumes(pod: Pod, evidence: Evidence) -> bool:
    return any(volume != Volume(name=volume.name) for volume in pod.spec.volumes)


def _with_devices(pod: Pod, evidence: Evidence) -> bool:
    """Includes pods with an extended resource that no node offers: a DeviceClass may stand for it."""
    if pod.spec.resource_claims or "deviceclasses" not in evidence.gaps:
        return bool(pod.spec.resource_claims)
    return any(is_extended_resource_name(name) for name in requested_amounts(pod).keys() - evidence.offered)


def _in_groups(pod: Pod, evidence: Evidence) -> bool:
    return pod.spec.scheduling_group is not None


def _with_selected_namespaces(pod: Pod, evidence: Evidence) -> bool:
    return evidence.selects_namespaces or _selects_namespaces(pod)


def _selects_namespaces(pod: Pod, *, is_own: bool = True) -> bool:
    """Returns whether the pod has such a term; of a pod that `is_own`, terms of its affinity count, too."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    stanzas = (affinity.pod_anti_affinity, affinity.pod_affinity if is_own else None)
    return any(term.namespace_selector is not None for stanza in stanzas if stanza for term in stanza.required)


@final
@dataclass(frozen=True, slots=True)
class Dependants:
    """What hangs on certain kinds."""

    what: str
    """A part of a sentence for people."""
    plurals: tuple[str, ...]
    plugins: frozenset[str] = frozenset()
    """Plugins that skip the pods concerned."""
    concerns: Concerns = _none

    def missing(self, gaps: Gaps) -> list[Gap]:
        return [gaps[plural] for plural in self.plurals if plural in gaps]

    def since(self, gaps: Gaps) -> str:
        """Returns why it is not known."""
        return in_words(self.missing(gaps))

    def reason(self, gaps: Gaps) -> str:
        """Returns the reason for a node that cannot be judged."""
        return f"{NOT_KNOWN}, since {self.since(gaps)}"

    def note(self, gaps: Gaps) -> str:
        """Returns a sentence that names the missing rights."""
        gaps_here = self.missing(gaps)
        kinds = [f"{gap.kind.plural}{' of all namespaces' if gap.namespaces else ''}" for gap in gaps_here]
        return f"{NOT_KNOWN}: {self.what}; the right to list {all_of(kinds)} would show it"


NODES: Final = Dependants("which nodes there are", ("nodes",), concerns=_all)
ROOM: Final = Dependants(
    "how much room other pods leave, which pods their anti-affinity excludes, and which evictions would help",
    ("pods",), frozenset(("InterPodAffinity",)), _all,
)  # fmt: skip
BUDGETS: Final = Dependants("which pods would be evicted", ("poddisruptionbudgets",))
NO_CLASSES: Final = Dependants("which priority a new pod gets from its class", ("priorityclasses",))
BEST: Final = Dependants(
    "which of several nodes is the best", ("services", "replicationcontrollers", "replicasets", "statefulsets")
)

VOLUMES: Final = Dependants(
    "where pods with volumes fit",
    (
        "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "csidrivers",
        "csistoragecapacities", "volumeattachments",
    ),
    frozenset(("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")), _with_volumes,
)  # fmt: skip
DEVICES: Final = Dependants(
    "where pods with devices fit",
    ("resourceclaims", "deviceclasses", "resourceslices", "devicetaintrules"),
    frozenset(("DynamicResources", "NodeResourcesFit")),
    _with_devices,
)
NAMESPACES: Final = Dependants(
    "which nodes affinity to pods of namespaces with certain labels excludes",
    ("namespaces",),
    frozenset(("InterPodAffinity",)),
    _with_selected_namespaces,
)
GROUPS: Final = Dependants("where pod groups fit", ("podgroups",), concerns=_in_groups)

DEPENDANTS: Final = (NODES, ROOM, VOLUMES, DEVICES, NAMESPACES, GROUPS, BUDGETS, BEST, NO_CLASSES)
"""The most important first."""


@final
class Narrowing:
    """Narrows the frameworks that answer about a cluster to what is known of it."""

    def __init__(self, gaps: Gaps, cluster: Cluster) -> None:
        self.gaps: Final = gaps
        self._evidence = Evidence.of(gaps, cluster)

    def __call__(self, frameworks: Iterable[Framework]) -> None:
        if not self.gaps:
            return
        for framework in frameworks:
            plugins = framework.plugins
            not_known = NotKnown(self)
            framework.plugins = replace(
                plugins,
                pre_filter=tuple(_Skipping(plugin, self) for plugin in plugins.pre_filter),
                filter=(*plugins.filter, (NAME, not_known)),
                post_filter=tuple(_Cautious(plugin, self) for plugin in plugins.post_filter),
            )

    def concerning(self, pod: Pod) -> list[Dependants]:
        """Returns the unknowns that hide where the pod fits."""
        return [
            unknown for unknown in DEPENDANTS if unknown.missing(self.gaps) and unknown.concerns(pod, self._evidence)
        ]

    def skips(self, pod: Pod, plugin: str) -> bool:
        """Returns whether the plugin's verdict on the pod would be worth nothing."""
        pods = self.gaps.get("pods")
        if plugin == "PodTopologySpread":  # which counts pods of the pod's own namespace
            return pods is not None and pod.namespace not in pods.namespaces
        return any(plugin in unknown.plugins for unknown in self.concerning(pod))


@final
class NotKnown(fwk.FilterPlugin):
    """Refuses nodes that no other plugin refuses, where too little is known to accept them."""

    def __init__(self, narrowing: Narrowing) -> None:
        super().__init__()
        self._narrowing = narrowing

    def filter(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
        everywhere, unknowns = np.ones(len(rows), np.bool_), self._narrowing.concerning(pod)
        if not unknowns:
            return fwk.accept(len(rows))
        reasons = tuple((unknown.reason(self._narrowing.gaps), everywhere) for unknown in unknowns)
        return fwk.Verdicts(np.full(len(rows), fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, np.int8), reasons)


@final
class _Skipping(fwk.PreFilterPlugin):
    """A PreFilter that switches its plugin off for pods about which too little is known."""

    def __init__(self, plugin: fwk.PreFilterPlugin, narrowing: Narrowing) -> None:
        super().__init__()
        self.name = plugin.name  # type: ignore[misc]
        self._plugin, self._narrowing = plugin, narrowing

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return self._plugin.events_to_register()

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        if self._narrowing.skips(pod, self.name):
            return fwk.PreFilterResult(fwk.SKIP)
        return self._plugin.pre_filter(state, pod, snapshot)


@final
class _Cautious(fwk.PostFilterPlugin):
    """A PostFilter whose outcome counts only where nothing that is missing could change it."""

    def __init__(self, plugin: fwk.PostFilterPlugin, narrowing: Narrowing) -> None:
        super().__init__()
        self.name = plugin.name  # type: ignore[misc]
        self.chooses_candidates = plugin.chooses_candidates  # type: ignore[misc]
        self.preemption_rules = plugin.preemption_rules
        self._plugin, self._narrowing = plugin, narrowing

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        result = await self._plugin.post_filter(state, pod, statuses)
        outcome, gaps = result.preemption, self._narrowing.gaps
        unknowns = self._narrowing.concerning(pod)
        if outcome is None or outcome.why_not_eligible:
            return result
        if not outcome.num_potential and not any(_is_not_known(status) for status in statuses.explicit.values()):
            return result  # evicting pods helps on no node
        if not unknowns and outcome.chosen is not None and BUDGETS.missing(gaps):
            unknowns = [BUDGETS]
        if not unknowns:
            return result
        return fwk.PostFilterResult(
            fwk.unschedulable(f"preemption: {'; '.join(unknown.reason(gaps) for unknown in unknowns)}")
        )


def _is_not_known(status: fwk.Status) -> bool:
    return any(NOT_KNOWN in reason for reason in status.reasons)
