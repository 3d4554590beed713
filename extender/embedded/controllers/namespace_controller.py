"""Namespaces: the ones that always exist, and the end of those that are deleted.

Upstream: pkg/controlplane/controller/systemnamespaces; pkg/controller/namespace/deletion/namespaced_resources_deleter.go (v1.36.2).
"""

from collections.abc import Callable
from datetime import datetime
from itertools import islice
from random import Random
from typing import Final, final

from extender.embedded.api_resources import EVENTS, NAMESPACES
from extender.embedded.controllers.cluster_view import ClusterView
from extender.embedded.controllers.controller_loop import SETTLING, Controller, Steps
from extender.embedded.controllers.controller_writes import Create, Delete, DeleteAll, LookAgain, Update
from extender.embedded.controllers.seen_objects import Key, Seen, SeenPod

SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
FINALIZER: Final = "kubernetes"
_AT_ONCE: Final = 200


@final
class Namespaces(Controller):
    """Keys are ("", namespace)."""

    name = "namespace"

    def __init__(self, cluster: ClusterView, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._ending: set[str] = set()
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Namespaces that end, and what is in them."""
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

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Pods of namespaces that end."""
        seen = new or old
        if seen is not None and seen.namespace in self._ending:
            self.queue.add_after(("", seen.namespace), SETTLING)

    def reconcile(self, key: Key) -> Steps:
        """Make it, or empty it and let it go."""
        name = key[1]
        namespace = self.cluster.get(NAMESPACES, "", name)
        if namespace is None:
            if name in SYSTEM_NAMESPACES:
                yield Create(NAMESPACES, "", {"metadata": {"name": name}})
            return
        if not namespace.deleted:
            return
        contents = self.cluster.in_namespace(name)
        doomed = list(islice((seen for seen in contents.values() if not seen.deleted), _AT_ONCE))
        for seen in doomed:
            yield Delete(seen)
        if doomed:
            yield LookAgain(0)
        if contents:
            return
        yield DeleteAll(EVENTS, name)
        content = namespace.content()
        finalizers = content["spec"].get("finalizers") or []
        if FINALIZER in finalizers:
            content["spec"]["finalizers"] = [each for each in finalizers if each != FINALIZER]
            yield Update(namespace, content, "finalize")
