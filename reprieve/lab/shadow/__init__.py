"""The shadow: what this configuration would decide beside the scheduler that decides. Nothing in here writes to the API
server. The names below are loaded when they are asked for: most services have no shadow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reprieve.lab.shadow.recorded import agreement_over
    from reprieve.lab.shadow.shadow import Shadow

_MODULES = {"Shadow": "shadow", "agreement_over": "recorded"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
