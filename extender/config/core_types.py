"""How the parts of `extender.objects` that a configuration may hold look in JSON.

Upstream: k8s.io/api/core/v1, types.go; apimachinery, meta/v1, types.go.
"""

from typing import Final

from extender.golang.schema import INT32, MAP_OF_STRINGS, STRING, Field, ListOf, ListOrNull, Scalar, Struct, written_list
from extender.objects.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.pod import NodeAffinity, PreferredSchedulingTerm, TopologySpreadConstraint

_STRINGS: Final = ListOf(STRING, written_list, [])

_LABEL_SELECTOR_REQUIREMENT: Final = Struct(
    "v1.LabelSelectorRequirement",
    [
        Field("key", "key", STRING),
        Field("operator", "operator", Scalar("v1.LabelSelectorOperator", str)),
        Field("values", "values", _STRINGS, omit_empty=True),
    ],
    LabelSelectorRequirement,
)
_LABEL_SELECTOR: Final = Struct(
    "v1.LabelSelector",
    [
        Field("matchLabels", "match_labels", MAP_OF_STRINGS, omit_empty=True),
        Field("matchExpressions", "match_expressions", ListOf(_LABEL_SELECTOR_REQUIREMENT, list, []), omit_empty=True),
    ],
    LabelSelector,
)
_NODE_SELECTOR_REQUIREMENT: Final = Struct(
    "v1.NodeSelectorRequirement",
    [
        Field("key", "key", STRING),
        Field("operator", "operator", Scalar("v1.NodeSelectorOperator", str)),
        Field("values", "values", _STRINGS, omit_empty=True),
    ],
    NodeSelectorRequirement,
)
_REQUIREMENTS: Final = ListOf(_NODE_SELECTOR_REQUIREMENT, list, [])
_NODE_SELECTOR_TERM: Final = Struct(
    "v1.NodeSelectorTerm",
    [
        Field("matchExpressions", "match_expressions", _REQUIREMENTS, omit_empty=True),
        Field("matchFields", "match_fields", _REQUIREMENTS, omit_empty=True),
    ],
    NodeSelectorTerm,
)
_NODE_SELECTOR: Final = Struct(
    "v1.NodeSelector",
    [Field("nodeSelectorTerms", "node_selector_terms", ListOrNull(_NODE_SELECTOR_TERM))],
    NodeSelector,
)
_PREFERRED_TERM: Final = Struct(
    "v1.PreferredSchedulingTerm",
    [Field("weight", "weight", INT32), Field("preference", "preference", _NODE_SELECTOR_TERM)],
    PreferredSchedulingTerm,
)

NODE_AFFINITY: Final = Struct(
    "v1.NodeAffinity",
    [
        Field("requiredDuringSchedulingIgnoredDuringExecution", "required", _NODE_SELECTOR, omit_none=True),
        Field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            "preferred",
            ListOf(_PREFERRED_TERM, list, []),
            omit_none=True,
            omit_empty=True,
        ),
    ],
    NodeAffinity,
)

TOPOLOGY_SPREAD_CONSTRAINT: Final = Struct(
    "v1.TopologySpreadConstraint",
    [
        Field("maxSkew", "max_skew", INT32),
        Field("topologyKey", "topology_key", STRING),
        Field("whenUnsatisfiable", "when_unsatisfiable", Scalar("v1.UnsatisfiableConstraintAction", str)),
        Field("labelSelector", "label_selector", _LABEL_SELECTOR, omit_none=True),
        Field("minDomains", "min_domains", INT32, omit_none=True),
        Field("nodeAffinityPolicy", "node_affinity_policy", Scalar("v1.NodeInclusionPolicy", str), omit_none=True),
        Field("nodeTaintsPolicy", "node_taints_policy", Scalar("v1.NodeInclusionPolicy", str), omit_none=True),
        Field("matchLabelKeys", "match_label_keys", ListOf(STRING, list, []), omit_empty=True),
    ],
    TopologySpreadConstraint,
)
