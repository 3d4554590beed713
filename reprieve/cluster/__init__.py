"""A Kubernetes API server in memory, and the controllers that keep a cluster moving; without HTTP server and scheduler.

The path of a request: `kube_api` reads it with `requests`; `registry` reads, changes and removes objects by the rules
of `extender.rules` and by `patches`, and keeps them in `store`; `responses` encodes them. `controllers` act on the
registry like any client. `in_memory` lets an httpx client reach the API without a socket.

Others import only the names below, which are loaded at first use, so that a command loads no more than it needs.
Tests of controllers use `own_cluster`; docs/library.md has an example.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reprieve.cluster.in_memory import OwnCluster, own_cluster
    from reprieve.cluster.kube_api import KubeApi
    from reprieve.cluster.requests.request_info import Request
    from reprieve.cluster.responses.response import Response, StreamResponse

__all__ = ["KubeApi", "OwnCluster", "Request", "Response", "StreamResponse", "own_cluster"]

_MODULES = {
    "OwnCluster": "in_memory",
    "own_cluster": "in_memory",
    "KubeApi": "kube_api",
    "Request": "requests.request_info",
    "Response": "responses.response",
    "StreamResponse": "responses.response",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
