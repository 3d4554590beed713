"""Where pods may and would rather run: selectors of nodes, affinity, taints, tolerations, spreading, gates.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.declaring import keep, named, null, omit, zero
from extender.embedded.schema.meta import LABEL_SELECTOR
from extender.embedded.schema.types import INT32, INT64, STRING, STRINGS, TIME, ListOf, Struct

_TAINT_EFFECT: Final = named("v1.TaintEffect", "NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_INCLUSION: Final = named("v1.NodeInclusionPolicy", "Honor", "Ignore")

# Nodes

NODE_SELECTOR_REQUIREMENT: Final = Struct(
    "io.k8s.api.core.v1.NodeSelectorRequirement",
    {
        "key": zero(STRING, "The label or field.", required=True),
        "operator": zero(
            named("v1.NodeSelectorOperator", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
            "How the value relates to the values.",
            required=True,
        ),
        "values": omit(STRINGS, "At least one for In and NotIn, none for Exists and DoesNotExist, a number for Gt and Lt."),
    },
    "A condition on one label or field of a node.",
)

NODE_SELECTOR_TERM: Final = Struct(
    "io.k8s.api.core.v1.NodeSelectorTerm",
    {
        "matchExpressions": omit(ListOf(NODE_SELECTOR_REQUIREMENT), "On labels."),
        "matchFields": omit(ListOf(NODE_SELECTOR_REQUIREMENT), "On fields, of which metadata.name is the one."),
    },
    "Conditions that must all hold. Without any, no node is selected.",
    atomic=True,
)

NODE_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.NodeSelector",
    {"nodeSelectorTerms": null(ListOf(NODE_SELECTOR_TERM), "One of them must hold.", required=True)},
    "Selects nodes.",
    atomic=True,
)

PREFERRED_SCHEDULING_TERM: Final = Struct(
    "io.k8s.api.core.v1.PreferredSchedulingTerm",
    {
        "weight": zero(INT32, "From 1 to 100.", required=True),
        "preference": zero(NODE_SELECTOR_TERM, required=True),
    },
    "Nodes that are better than others.",
)

NODE_AFFINITY: Final = Struct(
    "io.k8s.api.core.v1.NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": keep(NODE_SELECTOR, "Nodes on which the pod may be placed."),
        "preferredDuringSchedulingIgnoredDuringExecution": omit(
            ListOf(PREFERRED_SCHEDULING_TERM), "Nodes on which the pod is better placed."
        ),
    },
    "Which nodes suit the pod.",
)

VOLUME_NODE_AFFINITY: Final = Struct(
    "io.k8s.api.core.v1.VolumeNodeAffinity",
    {"required": keep(NODE_SELECTOR, "Nodes from which the volume can be reached.")},
    "Which nodes a volume is for.",
)

# Pods near and far from each other

POD_AFFINITY_TERM: Final = Struct(
    "io.k8s.api.core.v1.PodAffinityTerm",
    {
        "labelSelector": keep(LABEL_SELECTOR, "Which pods. Absent: none."),
        "namespaces": omit(STRINGS, "In which namespaces. Absent, with namespaceSelector: in the pod's own."),
        "topologyKey": zero(STRING, "Nodes with one value of this label are one place.", required=True),
        "namespaceSelector": keep(LABEL_SELECTOR, "In which namespaces besides, by label."),
        "matchLabelKeys": omit(STRINGS, "Labels of which those pods must have the pod's own value."),
        "mismatchLabelKeys": omit(STRINGS, "Labels of which those pods must not have the pod's own value."),
    },
    "Places where certain pods run.",
)

WEIGHTED_POD_AFFINITY_TERM: Final = Struct(
    "io.k8s.api.core.v1.WeightedPodAffinityTerm",
    {
        "weight": zero(INT32, "From 1 to 100.", required=True),
        "podAffinityTerm": zero(POD_AFFINITY_TERM, required=True),
    },
    "Places that are better, or worse, than others.",
)

POD_AFFINITY: Final = Struct(
    "io.k8s.api.core.v1.PodAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": omit(ListOf(POD_AFFINITY_TERM), "The pod is placed where all of these pods run."),
        "preferredDuringSchedulingIgnoredDuringExecution": omit(
            ListOf(WEIGHTED_POD_AFFINITY_TERM), "The pod is better placed where these pods run."
        ),
    },
    "Which pods the pod runs near to.",
)

POD_ANTI_AFFINITY: Final = Struct(
    "io.k8s.api.core.v1.PodAntiAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": omit(
            ListOf(POD_AFFINITY_TERM), "The pod is placed where none of these pods runs."
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": omit(
            ListOf(WEIGHTED_POD_AFFINITY_TERM), "The pod is better placed where these pods do not run."
        ),
    },
    "Which pods the pod keeps away from.",
)

AFFINITY: Final = Struct(
    "io.k8s.api.core.v1.Affinity",
    {
        "nodeAffinity": keep(NODE_AFFINITY),
        "podAffinity": keep(POD_AFFINITY),
        "podAntiAffinity": keep(POD_ANTI_AFFINITY),
    },
    "What the pod wants to be near to and far from.",
)

TOPOLOGY_SPREAD_CONSTRAINT: Final = Struct(
    "io.k8s.api.core.v1.TopologySpreadConstraint",
    {
        "maxSkew": zero(INT32, "How many more pods than the emptiest a place may have.", required=True),
        "topologyKey": zero(STRING, "Nodes with one value of this label are one place.", required=True),
        "whenUnsatisfiable": zero(
            named("v1.UnsatisfiableConstraintAction", "DoNotSchedule", "ScheduleAnyway"),
            "Whether a pod that would break this waits or is placed where it does least harm.",
            required=True,
        ),
        "labelSelector": keep(LABEL_SELECTOR, "Which pods count."),
        "minDomains": keep(INT32, "With fewer places than this the emptiest is taken to have no pods."),
        "nodeAffinityPolicy": keep(_NODE_INCLUSION, "Whether only nodes count that suit the pod. Absent: Honor."),
        "nodeTaintsPolicy": keep(_NODE_INCLUSION, "Whether only nodes count whose taints the pod tolerates. Absent: Ignore."),
        "matchLabelKeys": omit(STRINGS, "Labels of which the pods that count must have the pod's own value."),
    },
    "How evenly pods are spread.",
)

# Taints and gates

TAINT: Final = Struct(
    "io.k8s.api.core.v1.Taint",
    {
        "key": zero(STRING, required=True),
        "value": omit(STRING),
        "effect": zero(_TAINT_EFFECT, "What becomes of pods that do not tolerate it.", required=True),
        "timeAdded": keep(TIME),
    },
    "Keeps pods off a node unless they tolerate it.",
)

TOLERATION: Final = Struct(
    "io.k8s.api.core.v1.Toleration",
    {
        "key": omit(STRING, "Of which taint. Empty, with Exists: of all."),
        "operator": omit(
            named("v1.TolerationOperator", "Exists", "Equal", "Lt", "Gt"), "How the value relates to that of the taint. Empty: Equal."
        ),
        "value": omit(STRING),
        "effect": omit(_TAINT_EFFECT, "Against which effect. Empty: against all."),
        "tolerationSeconds": keep(INT64, "For how long a NoExecute taint is tolerated. Absent: for ever."),
    },
    "Lets a pod onto nodes with matching taints.",
)

POD_SCHEDULING_GATE: Final = Struct(
    "io.k8s.api.core.v1.PodSchedulingGate",
    {"name": zero(STRING, required=True)},
    "Keeps the pod from being scheduled until it is removed.",
)
