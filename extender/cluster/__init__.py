"""A Kubernetes API server in memory, and the controllers that keep a cluster moving; without HTTP server and scheduler.

A request takes this way: `kube_api` asks `requests` what it says; `registry` reads, changes and removes objects by the
rules of `schema`, `admission`, `validation` and `patches`, and keeps them in `store`; `responses` shows them.
`controllers` act on the registry like anybody else. `state_file` reads and writes whole clusters, which `seeding` puts
into a registry; `in_memory` lets an httpx client reach the API without a socket.

Others import only the names below, which are loaded when they are asked for: a command loads no more than it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extender.cluster.api_resources import RESOURCES
    from extender.cluster.in_memory import OwnCluster, own_cluster
    from extender.cluster.kube_api import KubeApi
    from extender.cluster.requests.request_info import Request
    from extender.cluster.responses.response import Response, StreamResponse
    from extender.cluster.state_file import (
        HOW_TO_DUMP,
        StateFileError,
        load_state,
        read_state,
        state_form,
    )
    from extender.cluster.trial_registry import TrialRegistry, templates_among
else:
    _MODULES = {
        "RESOURCES": "api_resources",
        "HOW_TO_DUMP": "state_file",
        "StateFileError": "state_file",
        "load_state": "state_file",
        "read_state": "state_file",
        "state_form": "state_file",
        "OwnCluster": "in_memory",
        "own_cluster": "in_memory",
        "KubeApi": "kube_api",
        "Request": "requests.request_info",
        "Response": "responses.response",
        "StreamResponse": "responses.response",
        "TrialRegistry": "trial_registry",
        "templates_among": "trial_registry",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
