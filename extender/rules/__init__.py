"""The rules of the Kubernetes API: kinds, schemas, defaults, admission and validation; without store and server.

The registry of the embedded cluster and the trials of manifests both call `admit`, and store objects in their own ways.

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
    """Returns an empty registry for the objects of one question. The first call loads the rules."""
    from extender.rules.trial_registry import TrialRegistry  # noqa: PLC0415 - most questions create nothing
    from extender.values.config.feature_gates import DEFAULT_FEATURES  # noqa: PLC0415

    return TrialRegistry(template_of, features or DEFAULT_FEATURES, seed)
