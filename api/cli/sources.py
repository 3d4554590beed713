"""Where a command gets its answer: from a Reprieve service, from a cluster through its API server, or from a dump in a
file.

What is given on the command line wins: a file, a service, a kubeconfig, a context, in this order. Then comes
REPRIEVE_SERVER, and then the cluster that kubectl would ask: that of KUBECONFIG, of the pod that the process runs in,
of ~/.kube/config. The service of this machine is asked if it follows that cluster, or if there is none.

And how commands take a pod's name: NAME, NAMESPACE/NAME, pod/NAME, with --namespace.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeVar, final

import msgspec
import typer
from rich.console import Console

from api.cli import Options
from api.cli.names import NameKind, completed
from api.cli.showing import WaitingLine, show, show_until_interrupted, sized, tell
from extender.answers.catalogue import Question
from extender.answers.phrases import plural
from extender.values.concurrency.process import collector_paused
from reprieve.errors import SourceAwayError, StartUpError

A = TypeVar("A")
S = TypeVar("S", bound=msgspec.Struct)

DEFAULT_SERVER: Final = "http://127.0.0.1:8888"

DEFAULT_NAMESPACE: Final = "default"

_SERVICE_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class Answers(Protocol):
    """Answers the questions of the catalogue."""

    @property
    def remembers(self) -> bool:
        """Whether it knows what was decided, as only a service does."""
        ...

    async def ask(self, question: Question[A]) -> A: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The options that say where an answer comes from, in the order in which help shows them."""

    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace to use if none is given (that of the kubeconfig's context, else default).",
            autocompletion=completed("namespaces", lambda: Source),
        ),
    ] = None
    server: Annotated[
        str | None,
        typer.Option(help="Ask the Reprieve service at this address (REPRIEVE_SERVER)."),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Ask the cluster of this kubeconfig (KUBECONFIG, ~/.kube/config); nothing has to be installed in it."
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            help="Ask the cluster of this kubeconfig context (the current one).",
            autocompletion=completed("contexts", lambda: Source),
        ),
    ] = None
    dump: Annotated[
        Path | None,
        typer.Option(
            help="Ask about the cluster in this file, a List as kubectl get -o json prints it, what kubectl "
            "cluster-info dump prints or its folder, or a recording; - reads standard input."
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            help="Moment of a recording: 2026-11-23T05:00:00Z, or the time since its beginning, such as 90s (its end)."
        ),
    ] = None
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration to decide with, if no service is asked.")
    ] = None
    token: Annotated[
        str | None,
        typer.Option(help="Bearer token of the cluster, if the service checks access.", envvar="REPRIEVE_TOKEN"),
    ] = None

    @property
    def default_namespace(self) -> str:
        """The namespace of objects that name none. Raises StartUpError if the kubeconfig cannot be used."""
        if self.namespace or not self._asks_cluster:
            return self.namespace or DEFAULT_NAMESPACE
        from reprieve.sources.reaching import target_of  # noqa: PLC0415

        return target_of(self.kubeconfig, self.context).namespace

    def names(self, kind: NameKind, namespace: str) -> Coroutine[Any, Any, list[tuple[str, str]]]:
        """Returns what asks for names that can be given here, each with its namespace: of pods in this one, if it is
        named. Raises StartUpError, as what is returned may raise anything.
        """
        from reprieve.sources.names import names_in_cluster, names_in_dump  # noqa: PLC0415

        chosen_namespace = namespace or self.namespace or ""
        if self.dump is not None:
            return names_in_dump(self.dump, kind)
        if self._asks_cluster:
            return names_in_cluster(self.kubeconfig, self.context, kind, chosen_namespace or self.default_namespace)
        from reprieve.sources.service_answers import names_in_service  # noqa: PLC0415

        return names_in_service(
            self.server or os.environ.get("REPRIEVE_SERVER"), DEFAULT_SERVER, self.token, kind, chosen_namespace
        )

    def only_namespace(self, *, all_namespaces: bool) -> str | None:
        """Returns the namespace that is asked about; None for all. Raises StartUpError for one and all."""
        if all_namespaces and self.namespace:
            raise StartUpError("--all-namespaces and --namespace contradict each other: give one of them")
        return self.namespace

    def objects(self, files: Iterable[str]) -> list[dict[str, Any]]:
        """Returns the files' objects, in the meant namespace where they name none. Raises StartUpError."""
        from reprieve.sources.manifest_files import placed, read_manifests  # noqa: PLC0415 - the kinds take a while to load

        return placed((obj for file in files for obj in read_manifests(file)), self.namespace, self.default_namespace)

    def in_namespace_of(self, obj: Mapping[str, Any]) -> "Source":
        """Returns this source, asked about the namespace of the object, if it names one."""
        return replace(self, namespace=(obj.get("metadata") or {}).get("namespace") or self.namespace)

    def show(
        self,
        ask: Callable[[Answers], Awaitable[S]],
        output: str,
        words: Callable[[Console, S, bool], None],
        *,
        watch: bool = False,
        opens: Callable[..., AbstractAsyncContextManager[Answers]] | None = None,
    ) -> S:
        """Prints the answer of the source that `opens` opens, and returns it; with `watch` at each change."""

        answers: list[S] = []

        async def answered() -> None:
            async with (opens or self.open)(keeps_asking=watch) as source_answers:
                if watch:
                    await show_until_interrupted(partial(ask, source_answers), output, words)
                answers.append(await ask(source_answers))  # asyncio.run would format what is returned, twice

        try:
            asyncio.run(answered())
        except KeyboardInterrupt:
            if not watch:
                raise
            raise typer.Exit from None
        show(answers[0], output, words)
        return answers[0]

    @asynccontextmanager
    async def open(self, *, keeps_asking: bool = False) -> AsyncIterator[Answers]:
        """Yields the answers of the source until the end of the block; standard error tells which, if it is not the
        expected one. If the block keeps asking, the line about waiting goes before. Raises StartUpError for options
        that contradict each other or name what there is not, SourceAwayError, which says what to do.
        """
        for flag, other in (("--kubeconfig", self.kubeconfig), ("--server", self.server)):
            if self.dump is not None and other is not None:
                raise StartUpError(f"--dump and {flag} name two clusters: give one of them")
        if self.at is not None and self.dump is None:
            raise StartUpError("--at is a moment of a recording: give one with --dump")
        if self.dump is not None:
            # What only one of the sources needs is imported for it alone: asking a service takes no engine.
            with WaitingLine(f"reading {sized(self.dump)}") as line:
                with collector_paused():  # there is no garbage yet
                    from reprieve.sources.dumps import about_dump  # noqa: PLC0415
                    from reprieve.sources.local_answers import LocalAnswers  # noqa: PLC0415

                async with about_dump(self.dump, self.config, self.at, tell) as questions:
                    nodes, pods = questions.size
                    line.show(f"working on {plural(nodes, 'node')} and {plural(pods, 'pod')}")
                    if keeps_asking:
                        line.hide()
                    yield LocalAnswers(questions)
            return
        cluster = self._cluster() if self._asks_cluster else None
        is_followed_here = None if cluster is None or self._is_told else await self._is_followed_here(cluster)
        if cluster is None or is_followed_here:
            async with self.open_service(keeps_asking=keeps_asking) as service:
                yield service
            return
        if is_followed_here is False:
            tell(
                f"asking {cluster}; the service at {DEFAULT_SERVER} is for another cluster: --server {DEFAULT_SERVER} "
                "asks that"
            )
        with WaitingLine(f"asking {cluster}") as line:
            from reprieve.sources.reaching import reach  # noqa: PLC0415

            await reach(self.kubeconfig, self.context)
            with collector_paused():
                from reprieve.sources.live_clusters import about_cluster, about_followed_cluster  # noqa: PLC0415
                from reprieve.sources.local_answers import LocalAnswers  # noqa: PLC0415

            where = self.kubeconfig, self.context, self.config, line.show
            if keeps_asking:
                async with about_followed_cluster(*where) as questions:
                    line.hide()
                    yield LocalAnswers(questions)
                return
            async with about_cluster(*where, [self.default_namespace]) as live:
                for note in live.notes:
                    tell(note)
                yield LocalAnswers(live.questions, live.retold)

    @asynccontextmanager
    async def open_service(self, *, keeps_asking: bool = False) -> AsyncIterator[Answers]:
        """Yields the named service: only one remembers decisions. Raises SourceAwayError if none answers."""
        server = self.server or None
        if self._asks_cluster:
            cluster = self._cluster()
            is_followed_here = await self._is_followed_here(cluster)
            if not is_followed_here:
                reason = (
                    "there is none on this machine"
                    if is_followed_here is None
                    else f"that at {DEFAULT_SERVER} is for another cluster"
                )
                raise SourceAwayError(
                    f"only a Reprieve service records that, and {reason}; "
                    "give --server; kubectl -n kube-system port-forward service/reprieve 8888 may reach one "
                    f"(the cluster is {cluster})"
                )
            tell(f"asking the service at {DEFAULT_SERVER}, which follows the same cluster, {cluster}")
        elif server is not None and self._is_told:
            tell(f"asking the service at {server}; --server overrides --kubeconfig and --context")
        elif server is None and (server := os.environ.get("REPRIEVE_SERVER")) and _has_kubeconfig():
            tell(f"asking the service at {server}, which REPRIEVE_SERVER names, not the cluster of the kubeconfig")
        elif server is None:
            tell(f"asking the service at {DEFAULT_SERVER}, as no kubeconfig names a cluster")
        with WaitingLine(f"asking {server or DEFAULT_SERVER}") as line:
            from reprieve.sources.service_answers import from_service  # noqa: PLC0415

            async with from_service(server, DEFAULT_SERVER, self.token, tell) as service:
                if keeps_asking:
                    line.hide()
                yield service

    @property
    def _is_told(self) -> bool:
        return self.kubeconfig is not None or self.context is not None

    @property
    def _asks_cluster(self) -> bool:
        if self.dump is not None or self.server:
            return False
        return self._is_told or (not os.environ.get("REPRIEVE_SERVER") and _has_kubeconfig())

    def _cluster(self) -> str:
        from reprieve.sources.reaching import target_of  # noqa: PLC0415

        return target_of(self.kubeconfig, self.context).server

    async def _is_followed_here(self, cluster: str) -> bool | None:
        """Returns whether this machine's service follows the cluster; None without one, or if it does not tell."""
        from reprieve.sources.service_answers import cluster_followed_by  # noqa: PLC0415

        followed = await cluster_followed_by(DEFAULT_SERVER, self.token)
        # The service serves the API of an embedded cluster at its own address, too.
        return None if followed is None else _plain(cluster) in (_plain(followed), _plain(DEFAULT_SERVER))


def _has_kubeconfig() -> bool:
    if os.environ.get("KUBECONFIG", "").strip(":"):
        return True
    if os.environ.get("KUBERNETES_SERVICE_HOST") and _SERVICE_TOKEN.exists():
        return True
    home = os.environ.get("HOME")
    return bool(home) and Path(str(home), ".kube", "config").exists()


def _plain(server: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415

    parts = urlsplit(server)
    host = "127.0.0.1" if parts.hostname in ("localhost", "::1", "0.0.0.0") else parts.hostname  # noqa: S104 - compared, not listened on
    return f"{host}:{parts.port or {'https': 443}.get(parts.scheme, 80)}{parts.path.rstrip('/')}"


SourceOptions = Annotated[Source, Options.of(Source)]
"""A parameter that stands for all options of `Source`."""


_PODS: Final = ("pod", "pods", "po")
_WORKLOADS: Final = {
    name: kind
    for kind, *names in (
        ("Deployment", "deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"),
        ("ReplicaSet", "replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"),
        ("StatefulSet", "statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"),
        ("DaemonSet", "daemonset", "daemonsets", "ds", "daemonset.apps", "daemonsets.apps"),
        ("Job", "job", "jobs", "job.batch", "jobs.batch"),
        ("ReplicationController", "replicationcontroller", "replicationcontrollers", "rc"),
    )
    for name in names
}
"""The kinds whose pods can be asked for together, by the names that kubectl has for them."""
_OTHER_KINDS: Final = ("cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch", "node", "nodes", "no")


def workload_named(text: str) -> tuple[str, str] | None:
    """Returns the kind and the name of a workload, such as that of deploy/web; None for other names."""
    before, _, name = text.rpartition("/")
    return (_WORKLOADS[before], name) if name and before in _WORKLOADS else None


def pod_named(text: str, source: Source) -> tuple[str, str]:
    """Returns the namespace and name of a pod. Raises StartUpError if it is no name, or names two namespaces."""
    before, slash, name = text.rpartition("/")
    if not name or (slash and (not before or "/" in before)):
        raise StartUpError(f"{text!r}: write namespace/name")
    if before in _PODS:
        before = ""
    if before in (*_OTHER_KINDS, *_WORKLOADS):
        raise StartUpError(
            f"{text}: give a pod as NAMESPACE/NAME; if {before} is its namespace, write -n {before} {name}"
        )
    if before and source.namespace and source.namespace != before:
        raise StartUpError(f"{text} is not in the namespace {source.namespace}: give one of the two")
    return before or source.default_namespace, name
