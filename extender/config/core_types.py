"""How the parts of `extender.objects` that a configuration may hold look in JSON.

Upstream: k8s.io/api/core/v1, types.go; apimachinery, meta/v1, types.go.
"""

from typing import Final

from extender.config.kinds import INT32, MAP_OF_STRINGS, STRING, Scalar
from extender.config.wire import ListOf, ListOrNull, Member, Struct, written_list
from extender.objects.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.pod import NodeAffinity, PreferredSchedulingTerm, TopologySpreadConstraint

_STRINGS: Final = ListOf(STRING, written_list, [])

_LABEL_SELECTOR_REQUIREMENT: Final = Struct(
    "v1.LabelSelectorRequirement",
    [
        Member("key", "key", STRING),
        Member("operator", "operator", Scalar("v1.LabelSelectorOperator", str)),
        Member("values", "values", _STRINGS, omit_empty=True),
    ],
    LabelSelectorRequirement,
)
_LABEL_SELECTOR: Final = Struct(
    "v1.LabelSelector",
    [
        Member("matchLabels", "match_labels", MAP_OF_STRINGS, omit_empty=True),
        Member("matchExpressions", "match_expressions", ListOf(_LABEL_SELECTOR_REQUIREMENT, list, []), omit_empty=True),
    ],
    LabelSelector,
)
_NODE_SELECTOR_REQUIREMENT: Final = Struct(
    "v1.NodeSelectorRequirement",
    [
        Member("key", "key", STRING),
        Member("operator", "operator", Scalar("v1.NodeSelectorOperator", str)),
        Member("values", "values", _STRINGS, omit_empty=True),
    ],
    NodeSelectorRequirement,
)
_REQUIREMENTS: Final = ListOf(_NODE_SELECTOR_REQUIREMENT, list, [])
_NODE_SELECTOR_TERM: Final = Struct(
    "v1.NodeSelectorTerm",
    [
        Member("matchExpressions", "match_expressions", _REQUIREMENTS, omit_empty=True),
        Member("matchFields", "match_fields", _REQUIREMENTS, omit_empty=True),
    ],
    NodeSelectorTerm,
)
_NODE_SELECTOR: Final = Struct(
    "v1.NodeSelector",
    [Member("nodeSelectorTerms", "node_selector_terms", ListOrNull(_NODE_SELECTOR_TERM, written_list, []))],
    NodeSelector,
)
_PREFERRED_TERM: Final = Struct(
    "v1.PreferredSchedulingTerm",
    [Member("weight", "weight", INT32), Member("preference", "preference", _NODE_SELECTOR_TERM)],
    PreferredSchedulingTerm,
)

NODE_AFFINITY: Final = Struct(
    "v1.NodeAffinity",
    [
        Member("requiredDuringSchedulingIgnoredDuringExecution", "required", _NODE_SELECTOR, omit_none=True),
        Member(
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
        Member("maxSkew", "max_skew", INT32),
        Member("topologyKey", "topology_key", STRING),
        Member("whenUnsatisfiable", "when_unsatisfiable", Scalar("v1.UnsatisfiableConstraintAction", str)),
        Member("labelSelector", "label_selector", _LABEL_SELECTOR, omit_none=True),
        Member("minDomains", "min_domains", INT32, omit_none=True),
        Member("nodeAffinityPolicy", "node_affinity_policy", Scalar("v1.NodeInclusionPolicy", str), omit_none=True),
        Member("nodeTaintsPolicy", "node_taints_policy", Scalar("v1.NodeInclusionPolicy", str), omit_none=True),
        Member("matchLabelKeys", "match_label_keys", ListOf(STRING, list, []), omit_empty=True),
    ],
    TopologySpreadConstraint,
)
