"""Namespaces: those that always exist, and the deletion of the others with everything in them.

Upstream: pkg/controlplane/controller/systemnamespaces; pkg/controller/namespace/deletion (v1.36.2).
"""

from itertools import islice
from typing import Final, final

from extender.cluster.api_resources import EVENTS, NAMESPACES
from extender.cluster.controllers.controller_loop import BURST, SETTLING, Controller, ControllerContext, Steps
from extender.cluster.controllers.controller_writes import Create, Delete, DeleteAll, RequeueAfter, Update
from extender.cluster.controllers.observed_objects import Key, Observed, ObservedPod

SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
FINALIZER: Final = "kubernetes"


@final
class Namespaces(Controller):
    """Controls namespaces. Keys are ("", namespace)."""

    name = "namespace"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._ending: set[str] = set()
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        seen = new or old
        if seen is None:
            return
        if seen.resource is NAMESPACES:
            if new is not None and new.deleted:
                self._ending.add(new.name)
                self.queue.add(new.key)
            elif new is None:
                self._ending.discard(seen.name)
                if seen.name in SYSTEM_NAMESPACES:
                    self.queue.add(seen.key)
        elif seen.namespace in self._ending:
            self.queue.add_after(("", seen.namespace), SETTLING)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        seen = new or old
        if seen is not None and seen.namespace in self._ending:
            self.queue.add_after(("", seen.namespace), SETTLING)

    def reconcile(self, key: Key) -> Steps:
        name = key[1]
        namespace = self.cluster.get(NAMESPACES, "", name)
        if namespace is None:
            if name in SYSTEM_NAMESPACES:
                yield Create(NAMESPACES, "", {"metadata": {"name": name}})
            return
        if not namespace.deleted:
            return
        contents = self.cluster.in_namespace(name)
        doomed = list(islice((seen for seen in contents.values() if not seen.deleted), BURST))
        for seen in doomed:
            yield Delete(seen)
        if doomed:
            yield RequeueAfter(0)
        if contents:
            return
        yield DeleteAll(EVENTS, name)
        content = namespace.content()
        finalizers = content["spec"].get("finalizers") or []
        if FINALIZER in finalizers:
            content["spec"]["finalizers"] = [each for each in finalizers if each != FINALIZER]
            yield Update(namespace, content, "finalize")
