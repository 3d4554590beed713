"""Names of pods, nodes, namespaces and contexts, as a shell completes them: soon after they were asked for, or none."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal

NameKind = Literal["pods", "nodes", "namespaces"]

SECONDS: Final = 0.6
"""The time in which a cluster, a service or a name server has to answer."""
_FILES: Final = ("dump", "kubeconfig")


def completed(kind: NameKind | Literal["contexts"], source: Callable[[], Any]) -> Callable[[Any, str], list[str]]:
    """Returns what completes such a name, by what the options before it say: fields of `source()`, the class Source of
    `sources`.
    """

    def names(ctx: Any, incomplete: str) -> list[str]:
        options = {
            name: Path(value) if name in _FILES else value for name, value in ctx.params.items() if value is not None
        }
        candidates: list[str] = []
        # A shell shows what is written to standard error in the middle of the line.
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere), suppress(Exception):
            candidates += _contexts(options) if kind == "contexts" else _names(kind, source(), options, incomplete)
        return [candidate for candidate in candidates if candidate.startswith(incomplete)]

    return names


def _contexts(options: dict[str, Any]) -> list[str]:
    from reprieve.sources.names import contexts  # noqa: PLC0415 - commands load nothing of this

    return contexts(options.get("kubeconfig"))


def _names(kind: NameKind, source_class: Any, options: dict[str, Any], incomplete: str) -> Iterator[str]:
    """Yields the names of a source, those of pods as NAMESPACE/NAME unless NAME would do."""
    namespace = incomplete.rpartition("/")[0]
    source = source_class(
        **{field.name: options[field.name] for field in fields(source_class) if field.name in options}
    )
    usual = "" if namespace else source.default_namespace
    asking = source.names(kind, namespace)
    # A thread that waits for a name server cannot be stopped; it ends with the process.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    names = asyncio.run(asking)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for its, name in names:
        if source.namespace in (None, its) or not its:
            yield name if its in ("", usual) else f"{its}/{name}"
