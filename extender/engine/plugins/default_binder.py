"""DefaultBinder: binds the pod through the API server."""

from typing import Final, final

from extender.engine import framework as fwk
from extender.values.klog.logger import Logger

NO_API_SERVER: Final = "there is no API server to bind through"

_LOG: Final = Logger(__name__)


@final
class DefaultBinder(fwk.BindPlugin):
    """Binds pods with the API server's binding subresource.

    Upstream: framework/plugins/defaultbinder/default_binder.go.
    """

    async def bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Returns Error if the API server refuses, or if there is none and Success would be untrue."""
        dispatcher = self._handle.dispatcher if self._handle is not None else None
        if dispatcher is None:
            return fwk.error(f"binding pod {pod.key} to node {node}: {NO_API_SERVER}")
        _LOG.info(3, "Attempting to bind pod to node", pod=pod, node=node)
        try:
            await dispatcher.perform(fwk.BindPod.of(pod, node, state.find(fwk.BINDING_ANNOTATIONS)))
        except fwk.CallError as exc:
            return fwk.error(str(exc))
        return fwk.SUCCESS
