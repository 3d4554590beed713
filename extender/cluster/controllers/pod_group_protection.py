"""The protection of pod groups: one that is deleted stays while pods that may still run are in it.

Upstream: pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go (v1.36.2).
"""

from typing import final

from extender.cluster.admission.admission_plugins import GROUP_FINALIZER
from extender.cluster.api_resources import POD_GROUPS
from extender.cluster.controllers.controller_loop import Controller, ControllerContext, Steps
from extender.cluster.controllers.controller_writes import Update
from extender.cluster.controllers.observed_objects import Key, Observed, ObservedPod


@final
class PodGroupProtection(Controller):
    """Takes the finalizer from deleted groups. State: the unfinished pods of each group."""

    name = "pod group protection"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._members: dict[Key, set[Key]] = {}

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.resource is POD_GROUPS and new.deleted:
            self.queue.add(new.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for pod in (old, new):
            if pod is None or not pod.group:
                continue
            key = (pod.namespace, pod.group)
            members = self._members.setdefault(key, set())
            if pod is new and not pod.is_finished:
                members.add(pod.key)
            else:
                members.discard(pod.key)
            if not members:
                del self._members[key]
                self.queue.add(key)

    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(POD_GROUPS, *key)
        if seen is None or not seen.deleted or GROUP_FINALIZER not in seen.finalizers or key in self._members:
            return
        group = seen.content()
        finalizers = [each for each in group["metadata"].get("finalizers") or () if each != GROUP_FINALIZER]
        yield Update(seen, {**group, "metadata": {**group["metadata"], "finalizers": finalizers}})
