"""TrialRegistry: what the API server would say of manifests, tried on a registry that is thrown away afterwards."""

import copy
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, final

from extender.cluster import statuses
from extender.cluster.api_resources import RESOURCE_CLAIM_TEMPLATES, Object, of_kind, stored_kind
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.cluster.schema import api_types
from extender.cluster.seeding import seed
from extender.cluster.store.object_store import ObjectStore
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.golang.json import JsonError
from extender.values.golang.schema import read_as

TemplateOf = Callable[[str, str], Object | None]
"""(namespace, name) -> the ResourceClaimTemplate of a cluster, if there is one."""

_CREATED_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The creation time of all objects; no answer shows it."""

_POD_TEMPLATES: Final = {
    ("apps/v1", "DaemonSet"): ("spec", "template"),
    ("batch/v1", "Job"): ("spec", "template"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""Of these kinds only the pods matter to an answer: the path to their template."""


def no_template(namespace: str, name: str) -> Object | None:
    """Returns None: nothing is known of a cluster's ResourceClaimTemplates."""
    return None


def templates_among(objects: Iterable[Mapping[str, Any]]) -> TemplateOf:
    """Returns what finds the ResourceClaimTemplates of a cluster in a file."""
    found = {}
    for obj in objects:
        metadata = obj.get("metadata")
        if (
            obj.get("kind") == RESOURCE_CLAIM_TEMPLATES.kind
            and isinstance(metadata, Mapping)
            and isinstance(obj.get("spec"), Mapping)
        ):
            found[str(metadata.get("namespace") or "default"), str(metadata.get("name"))] = obj

    def template_of(namespace: str, name: str) -> Object | None:
        obj = found.get((namespace, name))
        # A caller may complete its copy.
        return None if obj is None else copy.deepcopy(dict(obj))

    return template_of


@final
class TrialRegistry:
    """An empty registry for the objects of one question, which completes or refuses them in the API server's words.

    Arguments:
        template_of: finds the ResourceClaimTemplates of the cluster of the question; no scheduler knows of them.
        seed: of UIDs and names that are drawn.
    """

    def __init__(
        self, template_of: TemplateOf = no_template, features: FeatureGates = DEFAULT_FEATURES, seed: int = 0
    ) -> None:
        self._template_of = template_of
        self._registry = ObjectRegistry(
            ObjectStore(), now=lambda: _CREATED_AT, rng=random.Random(seed), features=features
        )

    def api_version_of(self, kind: str) -> str | None:
        """Returns the apiVersion under which objects of this kind are kept; None if they are not."""
        resource = stored_kind(kind)
        return None if resource is None else resource.api_version

    def is_namespaced(self, api_version: str, kind: str) -> bool | None:
        """Returns whether objects of this kind are in namespaces; None if they are not kept here."""
        resource = of_kind(api_version, kind)
        return None if resource is None or not resource.is_stored else resource.namespaced

    def why_undecodable(self, obj: Object) -> str:
        """Returns how a strict API server refuses an object with fields that it does not know; empty if it does not.

        An object that was read from a server is never refused: a newer one has more fields.
        """
        metadata = obj["metadata"]
        if metadata.get("resourceVersion") or (metadata.get("uid") and metadata.get("creationTimestamp")):
            return ""
        api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
        group, _, version = api_version.rpartition("/")
        known = api_types.find(group, version, kind)
        if known is None:
            return ""
        try:
            _, problems = read_as(known, _only(obj, _POD_TEMPLATES.get((api_version, kind), ())))
        except JsonError:
            return ""  # refused where it is created
        why = f"strict decoding error: {', '.join(problems)}"
        return str(statuses.undecodable(obj["kind"], version, why)) if problems else ""

    def create(self, objects: Iterable[Object]) -> Sequence[str]:
        """Keeps the objects, namespaces and classes first, and returns the refusals: `Pod default/web: why`.

        They have kind and apiVersion, and belong to the registry afterwards; what they say of themselves counts.
        """
        report = seed(self._registry, objects)
        return [f"{refusal.kind} {refusal.name}: {refusal.why}" for refusal in report.refused]

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Returns the object as it is kept, or a ResourceClaimTemplate of the cluster; None if there is none."""
        resource = stored_kind(kind)
        if resource is None:
            return None
        if self._registry.store.get(resource, namespace, name) is not None:
            return self._registry.get(resource, namespace, name)
        return self._template_of(namespace, name) if resource is RESOURCE_CLAIM_TEMPLATES else None


def _only(obj: Any, path: tuple[str, ...]) -> Any:
    """The object with nothing in it but what is at the end of the path."""
    if not path:
        return obj
    member = obj.get(path[0]) if isinstance(obj, Mapping) else None
    return {} if member is None else {path[0]: _only(member, path[1:])}
