"""Reprieve as a library: `from reprieve import Cluster`; and the start of `reprieve` and `kubectl-reprieve`.

A name of the library is loaded when it is asked for.

The packages `api` and `extender` that are found have to be ours. Both names are common: where another package of one of
them comes first, the command says so, and what to do. The library needs `extender` alone, and says the same of it.
"""

import os
import shlex
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TYPE_CHECKING = False  # as a type checker knows it; importing it from typing would double the time of the import
if TYPE_CHECKING:
    from reprieve.charts import Chart
    from reprieve.library import (
        Capacity,
        Cluster,
        Explanation,
        Follower,
        NodeArrays,
        Placement,
        Plugin,
        PreemptionAnswer,
        ReprieveError,
        Trial,
    )

__all__ = [
    "Capacity", "Chart", "Cluster", "Explanation", "Follower", "NodeArrays", "Placement", "Plugin", "PreemptionAnswer",
    "ReprieveError", "Trial",
]  # fmt: skip

_PACKAGES = ("extender", "api")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if why_not_ours := _why_not_ours("extender"):
        raise ImportError(why_not_ours)
    return getattr(import_module("reprieve.charts" if name == "Chart" else "reprieve.library"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def main() -> None:
    """Runs the command line."""
    _check_packages()
    try:
        from api.cli import main as run_command_line  # noqa: PLC0415 - nothing of ours is imported before it is known to be ours
    except ImportError as exc:
        sys.exit(f"reprieve: {_words_about(exc)}")
    run_command_line()


def schedule() -> None:
    """Runs `reprieve serve` as a manifest has kube-scheduler: it schedules, and answers by HTTPS on kube-scheduler's
    port.

    Upstream: cmd/kube-scheduler/app/options/options.go, NewOptions.
    """
    sys.argv[1:1] = ["serve", "--schedule", "--bind-address=0.0.0.0", "--secure-port=10259"]
    main()


def complete_for_kubectl() -> None:
    """Prints what may follow `kubectl reprieve ...`: kubectl runs `kubectl_complete-reprieve` with the words so far.

    Upstream: staging/src/k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go.
    """
    _check_packages()
    from api.cli import main as run_command_line  # noqa: PLC0415

    *words, begun = sys.argv[1:] or [""]
    line = f"{shlex.join(['reprieve', *words])} {shlex.quote(begun) if begun else ''}"
    # For each candidate kubectl expects what fish does: a line with the word, a tab and its help.
    os.environ |= {
        "_REPRIEVE_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": line,
    }
    sys.argv = ["reprieve"]
    with suppress(SystemExit):
        run_command_line()
    print(":0")  # noqa: T201 - names of files are offered where there is no candidate


def _check_packages() -> None:
    """Ends the process in words if one of the packages is not that beside this one."""
    if why_not_ours := _why_not_ours(*_PACKAGES):
        sys.exit(f"reprieve: {why_not_ours}")


def _why_not_ours(*names: str) -> str:
    for name in names:
        spec = find_spec(name)
        origin = Path(spec.origin) if spec is not None and spec.origin is not None else None
        ours = Path(__file__).resolve().parents[1] / name / "__init__.py"
        if origin is None:
            return f"its package {name!r} is incomplete: {ours} is missing; {_INSTALL_AGAIN}"
        if origin.resolve() != ours:
            return (
                f"another package named {name!r} comes before its own: {origin.parent}; take that folder out of "
                "PYTHONPATH, or install reprieve in a separate environment"
            )
    return ""


_INSTALL_AGAIN = "install it again in a separate environment: another distribution may have a package of that name"


def _words_about(exc: ImportError) -> str:
    """Returns why the command line cannot be imported: a package of ours was overwritten, or one that it needs is
    missing.
    """
    package = (exc.name or "").partition(".")[0]
    if package in _PACKAGES:
        return f"its package {package!r} is incomplete: {exc}; {_INSTALL_AGAIN}"
    return f"{exc}; install it again, with everything that it needs"
