"""Objects that a pod's spec only describes: a ResourceClaim for each template it names, a PersistentVolumeClaim for each ephemeral volume.

Upstream: pkg/controller/resourceclaim/controller.go, handleClaim; pkg/controller/volume/ephemeral/controller.go (v1.36.2).
"""

from typing import final

from extender.embedded.controllers.controller import Controller, NotPossibleError, Steps
from extender.embedded.controllers.seen import Key, Seen, SeenPod
from extender.embedded.controllers.writes import Create, Update
from extender.embedded.resources import PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object
from extender.workloads.pod_claims import POD_CLAIM_NAME, claims_without_object, resource_claim, volume_claims


@final
class PodClaims(Controller):
    """Keys are those of pods."""

    name = "pod claims"

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Claims of pods that have come, and templates that pods may be waiting for."""
        if new is None or new.resource not in (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES):
            return
        if new.resource is RESOURCE_CLAIM_TEMPLATES:
            for pods in self.cluster.pods_in(new.namespace).values():
                for pod in pods.values():
                    if pod.wants_objects:
                        self.queue.add(pod.key)
            return
        owner = new.controller
        if owner is not None and owner.kind == "Pod":
            self.queue.add((new.namespace, owner.name))

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Pods that want objects made for them."""
        if new is not None and new.wants_objects and old is None:
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        """Make what is missing, and write down the names."""
        pod = self.cluster.pods.get(key)
        if pod is None or not pod.is_active or not pod.wants_objects:
            return
        content = pod.content()
        for claim in volume_claims(content):
            yield from self._volume_claim(pod, claim)
        yield from self._resource_claims(pod, content)

    def _volume_claim(self, pod: SeenPod, claim: Object) -> Steps:
        name = claim["metadata"]["name"]
        existing = self.cluster.get(PERSISTENT_VOLUME_CLAIMS, pod.namespace, name)
        if existing is None:
            yield Create(PERSISTENT_VOLUME_CLAIMS, pod.namespace, claim)
            return
        owner = existing.controller
        if owner is None or owner.uid != pod.uid:
            raise NotPossibleError(f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)")

    def _resource_claims(self, pod: SeenPod, content: Object) -> Steps:
        statuses = list((content.get("status") or {}).get("resourceClaimStatuses") or ())
        num_known = len(statuses)
        mine: dict[str, str] = {}
        for seen in self.cluster.controlled(RESOURCE_CLAIMS, pod.uid):
            claim_name = (seen.content()["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME)
            if claim_name and not seen.deleted:
                mine.setdefault(claim_name, seen.name)
        for claim in claims_without_object(content):
            if claim["name"] in mine:
                statuses.append({"name": claim["name"], "resourceClaimName": mine[claim["name"]]})
                continue
            # The claim comes back as a change, and its name is written down then.
            template = self.cluster.get(RESOURCE_CLAIM_TEMPLATES, pod.namespace, claim["resourceClaimTemplateName"])
            if template is None:
                raise NotPossibleError(f'resource claim template "{claim["resourceClaimTemplateName"]}" not found')
            yield Create(RESOURCE_CLAIMS, pod.namespace, resource_claim(content, claim, template.content()))
        if len(statuses) > num_known:
            status = {**(content.get("status") or {}), "resourceClaimStatuses": statuses}
            yield Update(pod, content | {"status": status}, "status")
