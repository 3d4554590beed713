"""The rules of the Kubernetes API: kinds, schemas, defaults, admission and validation; without store and server.

What an API server would say of an object is decided here. The registry of the cluster of its own and the trials of
manifests call `admit` alike; where they keep objects is theirs.

Upstream: apiserver/pkg/registry/rest; plugin/pkg/admission; pkg/apis.
"""

from typing import TYPE_CHECKING

from extender.rules.claim_templates import TemplateOf, no_template

if TYPE_CHECKING:
    from extender.rules.trial_registry import TrialRegistry
    from extender.values.config.feature_gates import FeatureGates


def trial(
    template_of: TemplateOf = no_template, features: "FeatureGates | None" = None, seed: int = 0
) -> "TrialRegistry":
    """Returns an empty registry for the objects of one question. The rules are loaded when it is called."""
    from extender.rules.trial_registry import TrialRegistry  # noqa: PLC0415 - most questions create nothing
    from extender.values.config.feature_gates import DEFAULT_FEATURES  # noqa: PLC0415

    return TrialRegistry(template_of, features or DEFAULT_FEATURES, seed)
