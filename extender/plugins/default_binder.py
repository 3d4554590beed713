"""DefaultBinder: writes the decision to the API server."""

from typing import Final, final

from extender import framework as fwk

NO_API_SERVER: Final = "there is no API server to bind through"


@final
class DefaultBinder(fwk.BindPlugin):
    """Binds pods with the API server's binding subresource.

    Upstream: framework/plugins/defaultbinder/default_binder.go (v1.36.2).
    """

    async def bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Error while no API client is connected: saying Success would claim a binding that does not exist."""
        return fwk.error(f"binding pod {pod.key} to node {node}: {NO_API_SERVER}")
