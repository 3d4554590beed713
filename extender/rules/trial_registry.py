"""TrialRegistry: completes and refuses manifests as an API server would, without one."""

import copy
import random
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, final

from extender.rules import statuses
from extender.rules.admission.defaults import set_defaults
from extender.rules.api_resources import RESOURCE_CLAIM_TEMPLATES, Object, Resource, of_kind, stored_kind
from extender.rules.claim_templates import TemplateOf, no_template
from extender.rules.creation import admit
from extender.rules.schema import api_types
from extender.rules.seeding import seed
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.golang.json import JsonError
from extender.values.golang.schema import read_as
from extender.values.golang.times import rfc3339

_CREATED_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The creation time of all objects; no answer shows it."""

_POD_TEMPLATES: Final = {
    ("apps/v1", "DaemonSet"): ("spec", "template"),
    ("batch/v1", "Job"): ("spec", "template"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""The paths to the pod templates of kinds of which only the pods matter to an answer."""


@final
class TrialRegistry:
    """An empty registry for the objects of one question, which completes or refuses them in the API server's words.

    Arguments:
        template_of: finds the ResourceClaimTemplates of the question's cluster, which no scheduler watches.
        seed: for random UIDs and names.
    """

    def __init__(
        self, template_of: TemplateOf = no_template, features: FeatureGates = DEFAULT_FEATURES, seed: int = 0
    ) -> None:
        self._template_of = template_of
        self._objects = _TriedObjects(random.Random(seed), features)

    def api_version_of(self, kind: str) -> str | None:
        """Returns the apiVersion under which objects of this kind are stored; None if they are not."""
        resource = stored_kind(kind)
        return None if resource is None else resource.api_version

    def is_namespaced(self, api_version: str, kind: str) -> bool | None:
        """Returns whether objects of this kind are in namespaces; None if they are not stored here."""
        resource = of_kind(api_version, kind)
        return None if resource is None or not resource.is_stored else resource.namespaced

    def why_undecodable(self, obj: Object) -> str:
        """Returns a strict API server's refusal of an object with unknown fields; empty if it accepts the object.

        An object that was read from a server is never refused, since a newer server has more fields.
        """
        metadata = obj["metadata"]
        if metadata.get("resourceVersion") or (metadata.get("uid") and metadata.get("creationTimestamp")):
            return ""
        api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
        group, _, version = api_version.rpartition("/")
        type_ = api_types.find(group, version, kind)
        if type_ is None:
            return ""
        try:
            _, problems = read_as(type_, _only(obj, _POD_TEMPLATES.get((api_version, kind), ())))
        except JsonError:
            return ""  # refused where it is created
        why = f"strict decoding error: {', '.join(problems)}"
        return str(statuses.undecodable(obj["kind"], version, why)) if problems else ""

    def create(self, objects: Iterable[Object]) -> Sequence[str]:
        """Stores the objects, namespaces and classes first, and returns the refusals: `Pod default/web: why`.

        They have kind and apiVersion, keep their own values, and belong to the registry afterwards.
        """
        report = seed(self._objects, objects)
        return [f"{refusal.kind} {refusal.name}: {refusal.why}" for refusal in report.refused]

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Returns the object as it is stored, or a ResourceClaimTemplate of the cluster; None if there is none."""
        resource = stored_kind(kind)
        if resource is None:
            return None
        obj = self._objects.find(resource, namespace, name)
        if obj is not None:
            return {"kind": resource.kind, "apiVersion": resource.api_version, **copy.deepcopy(obj)}
        return self._template_of(namespace, name) if resource is RESOURCE_CLAIM_TEMPLATES else None


@final
class _TriedObjects:
    """The objects of one question, as `SeededCluster`."""

    def __init__(self, rng: random.Random, features: FeatureGates) -> None:
        self._rng: Final = rng
        self._features: Final = features
        self._kept: Final[defaultdict[str, dict[tuple[str, str], Object]]] = defaultdict(dict)
        """Objects by the name under which their resource is stored, then by namespace and name."""

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self._kept[resource.stored_as].get((namespace if resource.namespaced else "", name))

    def objects(self, resource: Resource) -> Iterable[Object]:
        objects = self._kept[resource.stored_as]
        return [objects[key] for key in sorted(objects)]

    def keep(self, resource: Resource, namespace: str, name: str, obj: Object) -> None:
        content = {part: value for part, value in obj.items() if part not in ("kind", "apiVersion")}
        self._kept[resource.stored_as][namespace if resource.namespaced else "", name] = content

    def create(self, resource: Resource, namespace: str, obj: Object) -> None:
        new, _ = api_types.read(resource, obj)
        set_defaults(resource, new)

        def identify(metadata: Object) -> None:
            metadata["uid"] = self.new_uid()
            metadata["creationTimestamp"] = rfc3339(_CREATED_AT)

        admit(self, resource, namespace, new, self._features, identify)
        self.keep(resource, namespace, new["metadata"]["name"], new)

    def custom_resources(self) -> Sequence[Resource]:
        return ()  # what they define makes no pods

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def now(self) -> datetime:
        return _CREATED_AT


def _only(obj: Any, path: tuple[str, ...]) -> Any:
    """Returns the object with only the member at the end of the path."""
    if not path:
        return obj
    member = obj.get(path[0]) if isinstance(obj, Mapping) else None
    return {} if member is None else {path[0]: _only(member, path[1:])}
