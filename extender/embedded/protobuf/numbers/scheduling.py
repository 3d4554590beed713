"""What pods ask of nodes and of each other, and how much they matter."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered

_REQUIRED_AND_PREFERRED: Final = numbered(
    requiredDuringSchedulingIgnoredDuringExecution=1, preferredDuringSchedulingIgnoredDuringExecution=2
)

SCHEDULING: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Affinity=numbered(nodeAffinity=1, podAffinity=2, podAntiAffinity=3),
    NodeAffinity=_REQUIRED_AND_PREFERRED,
    PodAffinity=_REQUIRED_AND_PREFERRED,
    PodAntiAffinity=_REQUIRED_AND_PREFERRED,
    PreferredSchedulingTerm=numbered(weight=1, preference=2),
    WeightedPodAffinityTerm=numbered(weight=1, podAffinityTerm=2),
    NodeSelector=numbered(nodeSelectorTerms=1),
    NodeSelectorTerm=numbered(matchExpressions=1, matchFields=2),
    NodeSelectorRequirement=numbered(key=1, operator=2, values=3),
    PodAffinityTerm=numbered(
        topologyKey=3, labelSelector=1, matchLabelKeys=5, mismatchLabelKeys=6, namespaces=2, namespaceSelector=4
    ),
    Toleration=numbered(key=1, operator=2, value=3, effect=4, tolerationSeconds=5),
    TopologySpreadConstraint=numbered(
        topologyKey=2, maxSkew=1, minDomains=5, whenUnsatisfiable=3, labelSelector=4, matchLabelKeys=8,
        nodeAffinityPolicy=6, nodeTaintsPolicy=7,
    ),
    PodSchedulingGate=numbered(name=1),
    PodSchedulingGroup=numbered(podGroupName=1),
) | in_package(
    "io.k8s.api.scheduling.v1",
    PriorityClass=numbered(metadata=1, value=2, globalDefault=3, preemptionPolicy=5, description=4),
)  # fmt: skip
