"""Claims of pods: creates them from templates and ephemeral volumes, and ends reservations and allocations.

Upstream: pkg/controller/resourceclaim/controller.go; volume/ephemeral/controller.go.
"""

from typing import Final, final

from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object
from extender.values.workloads.templates import POD_CLAIM_NAME, claims_without_object, resource_claim, volume_claims
from reprieve.cluster.controllers.controller_loop import Controller, ControllerContext, NotPossibleError, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, Update, without_finalizer
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod


@final
class ClaimsForPods(Controller):
    """Makes the claims for the templates and the ephemeral volumes of pods. Keys are those of pods."""

    name = "pod claims"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
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

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is not None and new.wants_objects and old is None:
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        pod = self.cluster.pods.get(key)
        if pod is None or not pod.is_active or not pod.wants_objects:
            return
        content = pod.content()
        for claim in volume_claims(content):
            yield from self._volume_claim(pod, claim)
        yield from self._resource_claims(pod, content)

    def _volume_claim(self, pod: ObservedPod, claim: Object) -> Steps:
        name = claim["metadata"]["name"]
        existing = self.cluster.get(PERSISTENT_VOLUME_CLAIMS, pod.namespace, name)
        if existing is None:
            yield Create(PERSISTENT_VOLUME_CLAIMS, pod.namespace, claim)
            return
        owner = existing.controller
        if owner is None or owner.uid != pod.uid:
            raise NotPossibleError(
                f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
            )

    def _resource_claims(self, pod: ObservedPod, content: Object) -> Steps:
        statuses = list((content.get("status") or {}).get("resourceClaimStatuses") or ())
        num_known = len(statuses)
        mine: dict[str, str] = {}
        for observed_claim in self.cluster.controlled(RESOURCE_CLAIMS, pod.uid):
            claim_name = (observed_claim.content()["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME)
            if claim_name and not observed_claim.deleted:
                mine.setdefault(claim_name, observed_claim.name)
        for claim in claims_without_object(content):
            if claim["name"] in mine:
                statuses.append({"name": claim["name"], "resourceClaimName": mine[claim["name"]]})
                continue
            # The claim comes back as a change, and its name is written into the status then.
            template = self.cluster.get(RESOURCE_CLAIM_TEMPLATES, pod.namespace, claim["resourceClaimTemplateName"])
            if template is None:
                raise NotPossibleError(f'resource claim template "{claim["resourceClaimTemplateName"]}" not found')
            yield Create(RESOURCE_CLAIMS, pod.namespace, resource_claim(content, claim, template.content()))
        if len(statuses) > num_known:
            status = {**(content.get("status") or {}), "resourceClaimStatuses": statuses}
            yield Update(pod, content | {"status": status}, "status")


FINALIZER: Final = "resource.kubernetes.io/delete-protection"


@final
class ResourceClaims(Controller):
    """Removes reservations of absent pods, and the allocation with the last reservation. Keys are those of claims."""

    name = "resource claim"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._users: dict[Key, dict[Key, None]] = {}
        """The pods that use a claim."""
        self._freed: set[Key] = set()
        """Claims that have lost their last user since the last look, and still have the finalizer."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.resource is RESOURCE_CLAIMS:
            self.queue.add(new.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for pod in (old, new):
            if pod is None or not pod.resource_claims:
                continue
            for name in pod.resource_claims:
                key = (pod.namespace, name)
                users = self._users.setdefault(key, {})
                if pod is new:
                    users[pod.key] = None
                else:
                    users.pop(pod.key, None)
                if not users:
                    del self._users[key]
                self.queue.add(key)

    def reconcile(self, key: Key) -> Steps:
        observed_claim = self.cluster.get(RESOURCE_CLAIMS, *key)
        freed = key in self._freed
        self._freed.discard(key)
        if observed_claim is None:
            return
        claim = observed_claim.content()
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        valid = [reservation for reservation in reserved if self._is_valid(observed_claim.namespace, reservation)]
        if len(valid) < len(reserved):
            if not valid and FINALIZER in observed_claim.finalizers:
                self._freed.add(key)
            yield Update(observed_claim, claim | {"status": _with_reservations(claim, valid)}, "status")
        elif observed_claim.deleted and FINALIZER in observed_claim.finalizers and not valid:
            if status.get("allocation") is not None:
                yield Update(observed_claim, claim | {"status": _with_reservations(claim, [])}, "status")
            else:
                yield without_finalizer(observed_claim, FINALIZER)
        elif freed and FINALIZER in observed_claim.finalizers and status.get("allocation") is None and not valid:
            # Only after a user has gone: a scheduler that allocates adds the finalizer before the allocation.
            yield without_finalizer(observed_claim, FINALIZER)
        elif not valid and not observed_claim.deleted and self._is_obsolete(observed_claim):
            yield Delete(observed_claim)
        elif status.get("allocation") is not None:
            reservations = self._missing_reservations(key, {reservation.get("uid") for reservation in valid})
            if reservations:
                yield Update(
                    observed_claim, claim | {"status": {**status, "reservedFor": [*reserved, *reservations]}}, "status"
                )

    def _is_valid(self, namespace: str, reservation: Object) -> bool:
        if reservation.get("apiGroup") or reservation.get("resource") != "pods":
            return True
        pod = self.cluster.pods.get((namespace, reservation.get("name", "")))
        return pod is not None and pod.uid == reservation.get("uid") and not _is_done(pod)

    def _is_obsolete(self, claim: Observed) -> bool:
        """Returns whether the claim's pod exists but will not run again; garbage collection sees to absent pods."""
        owner = claim.controller
        if owner is None or owner.kind != "Pod":
            return False
        pod = self.cluster.pods.get((claim.namespace, owner.name))
        return pod is not None and (pod.uid != owner.uid or _is_done(pod))

    def _missing_reservations(self, key: Key, reserved: set[str | None]) -> list[Object]:
        """Returns the missing reservations for pods that were bound without a scheduler (reserveForPod)."""
        pods = [self.cluster.pods.get(user) for user in self._users.get(key, ())]
        return [
            {"resource": "pods", "name": pod.name, "uid": pod.uid}
            for pod in pods
            if pod is not None and pod.node and pod.is_active and pod.uid not in reserved
        ]


def _is_done(pod: ObservedPod) -> bool:
    return pod.is_finished or bool(pod.deleted and not pod.node)


def _with_reservations(claim: Object, valid: list[Object]) -> Object:
    status = {name: value for name, value in (claim.get("status") or {}).items() if name != "reservedFor"}
    if valid:
        return status | {"reservedFor": valid}
    # With the last user the allocation goes, so that the next one may get other devices.
    if FINALIZER in (claim["metadata"].get("finalizers") or ()):
        status.pop("allocation", None)
    return status
