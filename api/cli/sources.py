"""Where a command gets its answer: from a Reprieve service, from a cluster through its API server, or from a dump in a file."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, final

import typer

from api.cli.signatures import Options
from api.fatal_errors import StartUpError
from extender.answers.types import Capacity, Explanation, WhatIf, WhatIfRequest

DEFAULT_SERVER: Final = "http://127.0.0.1:8888"

DEFAULT_NAMESPACE: Final = "default"


class Answers(Protocol):
    """Answers questions. `extender.answers.questions.Questions` describes the methods."""

    async def explain(self, namespace: str, name: str, *, picture: bool = False) -> Explanation | None:
        """None if there is no such pod."""
        ...

    async def what_if(self, request: WhatIfRequest) -> WhatIf: ...

    async def capacity_of(self, pod: dict[str, Any], limit: int) -> Capacity: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The options that say where an answer comes from, in the order in which help shows them."""

    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of objects that name none (that of the kubeconfig's context, else default)."),
    ] = None
    server: Annotated[
        str | None, typer.Option(help=f"Address of a Reprieve service (REPRIEVE_SERVER, or {DEFAULT_SERVER}).", envvar="REPRIEVE_SERVER")
    ] = None
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Ask about the cluster of this kubeconfig; nothing has to be installed in it.")
    ] = None
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig (its current one).")] = None
    dump: Annotated[
        Path | None,
        typer.Option(
            help="Ask about the cluster in this file, a List as kubectl get -o json prints it, or a recording; - reads standard input."
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(help="The moment of a recording, as 2026-11-23T05:00:00Z, or as a time after its beginning, 90s (its end)."),
    ] = None
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration that decides, with --kubeconfig or --dump.")] = None
    token: Annotated[
        str | None, typer.Option(help="Bearer token of the cluster, for a service that reviews access.", envvar="REPRIEVE_TOKEN")
    ] = None

    @property
    def default_namespace(self) -> str:
        """The namespace of objects that name none.

        Raises:
            StartUpError: the kubeconfig cannot be used.
        """
        if self.namespace or self.kubeconfig is None:
            return self.namespace or DEFAULT_NAMESPACE
        from api.cli.local_answers import target_of  # noqa: PLC0415

        return target_of(self.kubeconfig, self.context).namespace

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Answers]:
        """Yields the answers of the source, until the end of the block.

        Raises:
            StartUpError: no source can be asked; the message says what to do.
        """
        if self.dump is not None and self.kubeconfig is not None:
            raise StartUpError("--dump and --kubeconfig are two clusters: give one of them")
        if self.at is not None and self.dump is None:
            raise StartUpError("--at is a moment of a recording: give one with --dump")
        async with self._opened() as asked:
            yield asked

    def _opened(self) -> AbstractAsyncContextManager[Answers]:
        # What only one of the sources needs is imported for it alone: asking a service takes no engine.
        if self.dump is not None:
            from api.cli.local_answers import about_dump  # noqa: PLC0415

            return about_dump(self.dump, self.config, self.at)
        if self.kubeconfig is not None:
            from api.cli.local_answers import about_cluster  # noqa: PLC0415

            return about_cluster(self.kubeconfig, self.context, self.config)
        from api.cli.service_answers import from_service  # noqa: PLC0415

        return from_service(self.server, DEFAULT_SERVER, self.token)


SourceOptions = Annotated[Source, Options.of(Source)]
"""A parameter that stands for all options of `Source`."""
