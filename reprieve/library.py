"""What `from reprieve import Cluster` gives: clusters that are read once, and trials of them."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from logging import NullHandler, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import msgspec

from extender import rules
from extender.answers.questions import Questions
from extender.answers.types import Capacity, Explanation, PreemptionAnswer
from extender.engine.cache.cluster import not_at_all
from extender.engine.framework import Plugin, PostFilterPlugin
from extender.engine.runtime.registry import why_not_a_plugin
from extender.rules.claim_templates import ClaimTemplates
from extender.rules.state_file import save_state
from extender.values.concurrency.process import collector_paused
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load, load_file
from extender.values.objects.kinds import KINDS
from extender.values.reasons import in_one_line
from reprieve.arguments import ReprieveError, file_of, gates_of, in_words, line, outcome_of, plain, several
from reprieve.results import Counted, NodeArrays, Placement, objects_of
from reprieve.sources.configurations import read_configuration, with_gates, with_plugins
from reprieve.sources.dumps import about_dump, left_out_of, once_each
from reprieve.sources.manifest_files import state_of
from reprieve.trials import Trial

if TYPE_CHECKING:
    from extender.client.informers.reflector_state import Health
    from reprieve.charts import Chart

__all__ = [
    "Capacity", "Cluster", "Explanation", "Follower", "NodeArrays", "Placement", "Plugin", "PreemptionAnswer",
    "ReprieveError", "Trial",
]  # fmt: skip

# What fails is told in answers. Whoever wants the log, too, gives it a handler.
getLogger("extender").addHandler(NullHandler())

OUTDATED_AFTER: Final = 5.0
"""Seconds without news of a kind; a watch that was cut is back in less."""

T = TypeVar("T")


@final
class Cluster(Counted):
    """A cluster as it was read. It never changes: trials are copies. Each thread needs a cluster of its own.

    Attributes:
        notes: sentences about what was left out, or could not be read.
    """

    def __init__(self, questions: Questions, notes: Iterable[str] = (), *, is_followed: bool = False) -> None:
        """Use `Cluster.load` or `Cluster.connect`."""
        self._questions, self._is_followed = questions, is_followed
        self._items = questions.items
        self.notes = tuple(notes)

    @staticmethod
    def load(
        source: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]], *, at: str | None = None
    ) -> "Cluster":
        """Returns the cluster in a file, or that objects make up.

        Arguments:
            source: a file with a List as `kubectl get -o yaml` prints it, with YAML documents, or with a recording; the
                folder or the text of `kubectl cluster-info dump`; or objects as the API has them. Nothing is filled in:
                a pod with `spec.nodeName` is there, another one is pending.
            at: the moment of a recording, `2026-11-23T05:00:00Z` or `90s` after its beginning; None for its end.

        Raises:
            ReprieveError: the file cannot be used, or an object has the wrong form.
        """
        if isinstance(source, str | Path):
            notes: list[str] = []
            return Cluster(_read(about_dump(file_of(source), None, _moment(at), notes.append)), notes)
        if at is not None:
            raise ReprieveError("at: objects show one moment only; give a recording")
        with in_words(), collector_paused():
            (objects, copies), configuration = once_each(_objects_in(source)), read_configuration(None)
            admits = partial(rules.trial, ClaimTemplates(objects), features=configuration.feature_gates)
            questions = Questions.of(configuration, state_of(objects), admits)
            return Cluster(questions, filter(None, [copies, left_out_of(objects)]))

    @staticmethod
    def connect(
        kubeconfig: str | Path | None = None,
        *,
        context: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> "Cluster":
        """Returns the cluster behind an API server as it is now. It is read once, and nothing is written to it.

        Arguments:
            kubeconfig, context: None for those that kubectl would use.
            feature_gates: as for `trial`. Some have further kinds read, such as pod groups.

        Raises:
            ReprieveError: the cluster does not answer, or does not let its nodes be listed. What hangs on other kinds
                that it does not let be listed is said to be not known: see `notes`, and messages of placements.
        """
        from reprieve.sources.live_clusters import about_cluster  # noqa: PLC0415 - a file takes no client

        live = _read(about_cluster(*_target(kubeconfig, context), None, feature_gates=gates_of(feature_gates)))
        with in_words():
            live.check_trials()
        return Cluster(live.questions, live.notes)

    @staticmethod
    @asynccontextmanager
    async def follow(
        kubeconfig: str | Path | None = None,
        *,
        context: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        pause: float = 1.0,
    ) -> AsyncIterator["Follower"]:
        """Follows the cluster behind an API server in an event loop: `async with Cluster.follow() as follower`.

        Nothing is written to it. A watch that is cut is opened again, and what was missed is listed.

        Arguments:
            kubeconfig, context, feature_gates: as for `connect`.
            pause: the least seconds between two clusters that `async for` has.

        Raises:
            ReprieveError: the cluster does not answer, or does not let be listed and watched what a scheduler reads.
        """
        from extender.assembly.backend import Tap  # noqa: PLC0415 - a file takes no client
        from reprieve.sources.live_clusters import followed  # noqa: PLC0415

        gates, target = gates_of(feature_gates), _target(kubeconfig, context)
        if isinstance(pause, bool) or not isinstance(pause, int | float) or not 0 <= pause < math.inf:
            raise ReprieveError(f"{pause!r:.80} is no pause: give seconds")
        changed = asyncio.Event()
        tap = Tap(changed=lambda *_: changed.set())
        async with AsyncExitStack() as stack:
            with in_words():
                live, health = await stack.enter_async_context(followed(*target, None, taps=(tap,), gates=gates))
            follower = Follower(live, health, changed, pause)
            try:
                yield follower
            finally:
                follower._end()

    def save(self, path: str | Path) -> None:
        """Writes the cluster to a file that `load` reads, with what the scheduler reads of its objects.

        If its name ends in .reprieve, it is all that the cluster is, and loads faster, where Reprieve has the same
        form of such files. If it ends in .json or .yaml, and perhaps .gz, it is a List for everybody,
        without `notes` and what no scheduler reads, such as ResourceClaimTemplates.

        Raises:
            ReprieveError: the file cannot be written.
        """
        from extender.values.concurrency.replaced_file import replaced_file  # noqa: PLC0415 - most clusters are not saved

        file = file_of(path)
        try:
            if file.suffix == ".reprieve":
                with replaced_file(file) as writer:
                    writer.write(self._packed())
            else:
                save_state(file, objects_of(self._questions.items()))
        except OSError as exc:
            raise ReprieveError(f"{file}: {in_one_line(exc)}") from exc
        except ValueError as exc:
            raise ReprieveError(f"{exc}; or in .reprieve") from exc

    def updated(self, changes: Iterable[Mapping[str, Any]]) -> "Cluster":
        """Returns the cluster after changes, which shares with this one what they leave alone. This one stays.

        Arguments:
            changes: objects as the API has them, which are new or take the place of those of their kinds and names; or
                events as a watch has them, `{"type": "DELETED", "object": ...}`, by which that object is gone. Others
                than a scheduler reads change nothing.

        Raises:
            ReprieveError: one of them has the wrong form.
        """
        from reprieve.sources.cluster_changes import updated  # noqa: PLC0415 - most clusters stay as they are

        with in_words():
            return Cluster(updated(self._questions, several(changes)), self.notes, is_followed=self._is_followed)

    def __deepcopy__(self, memo: object) -> "Cluster":
        return self.updated(())

    def __reduce__(self) -> tuple[Callable[[bytes], "Cluster"], tuple[bytes]]:
        return _unpacked, (self._packed(),)

    def _packed(self) -> bytes:
        from reprieve.sources.saved_clusters import packed  # noqa: PLC0415 - most clusters stay where they are

        with in_words():
            return packed(self._questions, self.notes)

    def trial(
        self,
        configuration: str | Path | Mapping[str, Any] | None = None,
        *,
        plugins: Iterable[type[Plugin]] = (),
        feature_gates: Mapping[str, bool] | None = None,
    ) -> "Trial":
        """Opens a trial, which begins with the cluster as it was read: `with cluster.trial() as trial`.

        All nodes are evaluated, HTTP extenders are not asked, and ties are broken by chance, the same in each trial.
        A single profile decides for pods of every schedulerName.

        Arguments:
            configuration: a KubeSchedulerConfiguration, or a file with one; None for the default one, or that of the
                recording.
            plugins: classes of own plugins. Unless the configuration names one of them, they are enabled at all their
                points, in its first profile.
            feature_gates: name -> whether it is on, `{"GenericWorkload": True}`; for others those of `connect`, of the
                recording, or of REPRIEVE_FEATURE_GATES apply.

        Raises:
            ReprieveError: the configuration is wrong, a plugin is none or refuses its arguments, or a feature gate
                cannot be had.
        """
        with in_words():
            classes: dict[str, type[Plugin]] = {}
            plugin_classes: list[Any] = several(plugins)
            for plugin in plugin_classes:
                if why_not := why_not_a_plugin(plugin):
                    raise ReprieveError(f"plugin {plugin!r} {why_not}")
                classes[plugin.name] = plugin
            base, admits = self._questions.configuration, self._questions.admits
            if gates := gates_of(feature_gates):
                base = with_gates(base, gates)
                admits = partial(admits, features=base.feature_gates)
                self._check_was_read(base.feature_gates)
            if isinstance(configuration, Mapping):
                base = load(msgspec.json.encode(plain(configuration)), base.feature_gates)
            elif isinstance(configuration, str | Path):
                base = load_file(str(file_of(configuration)), base.feature_gates)
            elif configuration is not None:
                raise ReprieveError(f"{configuration!r:.80} is no configuration: give a file, or an object")
            # Its columns are laid out here once, and not in each trial.
            self._questions.about.cache.update_snapshot()
            base = with_plugins(base, classes, _that_preempt(classes))
            return Trial(self._questions.trial(base, classes, asks_for_names=True), admits)

    def _check_was_read(self, features: FeatureGates) -> None:
        on = features.on - self._questions.configuration.feature_gates.on
        is_live = self._is_followed or self._questions.about.narrow is not not_at_all
        if is_live and (unread := {kind.gate for kind in KINDS} & on):
            raise ReprieveError(
                f"the cluster was read without what {min(unread)} is about: give it to Cluster.connect or follow"
            )

    def chart(self, manifests: str | Path, *, namespace: str = "default") -> "Chart":
        """Returns what becomes of the pods of a chart, placed as `reprieve whatif -f` does, with preemption.

        Arguments:
            manifests: what `helm template` prints, as a text; or a file of manifests, or a folder with some.
            namespace: that of objects which name none.

        Raises:
            ReprieveError: the manifests cannot be read, no pods come of them, or an API server would refuse an object.
        """
        from reprieve.charts import Chart  # noqa: PLC0415 - trials alone load less

        is_text = isinstance(manifests, str) and "\n" in manifests
        source = manifests if is_text else file_of(manifests)
        return Chart(self._questions, source, line(namespace, "a namespace"))


@final
class Follower:
    """A cluster that is followed: `async for cluster in follower` has it as it is, and again each time that it has
    changed, until the block of `Cluster.follow` ends.
    """

    def __init__(
        self, live: Questions, health: Callable[[], Sequence["Health"]], changed: asyncio.Event, pause: float
    ) -> None:
        """Use `Cluster.follow`."""
        self._live, self._health, self._changed, self._pause = live, health, changed, pause
        self._is_over = False
        self._last: tuple[int, Cluster] | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster as its watches have shown it so far; the same one until it changes."""
        from reprieve.sources.cluster_changes import updated  # noqa: PLC0415

        changes = self._live.about.changes
        if self._last is None or self._last[0] != changes:
            self._last = changes, Cluster(updated(self._live, ()), is_followed=True)
        return self._last[1]

    @property
    def outdated(self) -> tuple[str, ...]:
        """Sentences about kinds of which nothing could be learnt lately; empty while all is watched."""
        failing = [watch for watch in self._health() if (watch.failing_for or 0.0) > OUTDATED_AFTER]
        return tuple(
            f"{watch.resource}: no news for {watch.failing_for:.0f} s: {watch.last_error}" for watch in failing
        )

    async def __aiter__(self) -> AsyncIterator[Cluster]:
        while not self._is_over:
            self._changed.clear()
            yield self.cluster
            await self._changed.wait()
            await asyncio.sleep(self._pause)

    def _end(self) -> None:
        self._is_over = True
        self._changed.set()


def _unpacked(data: bytes) -> Cluster:
    from reprieve.sources.saved_clusters import unpacked  # noqa: PLC0415

    with in_words():
        return Cluster(*unpacked(data, "what was pickled"))


def _read(answers: AbstractAsyncContextManager[T]) -> T:
    async def read() -> T:
        async with answers as questions:
            return questions

    with in_words():
        return outcome_of(read())


def _target(kubeconfig: object, context: object) -> tuple[Path | None, str | None]:
    file = None if kubeconfig is None else file_of(kubeconfig)
    return file, None if context is None else line(context, "a context of a kubeconfig")


def _moment(moment: object) -> str | None:
    if moment is None or isinstance(moment, str):
        return moment
    raise ReprieveError(f"{moment!r:.80} is no moment of a recording: give 2026-11-23T05:00:00Z, or 90s")


def _objects_in(source: object) -> list[dict[str, Any]]:
    """Returns the objects of a cluster, Lists taken apart."""
    if isinstance(source, Mapping) and not str(source.get("kind")).endswith("List"):
        raise ReprieveError("one object is no cluster: give a List, or several objects")
    members = [source] if isinstance(source, Mapping) else several(source)
    objects: list[dict[str, Any]] = []
    for obj in members:
        if not isinstance(obj, Mapping):
            raise ReprieveError(f"{obj!r:.80} is no object: give a file, or objects as the API has them")
        objects += _items_of(obj)
    return objects


def _items_of(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind, items = str(obj.get("kind")), obj.get("items")
    if not kind.endswith("List") or not isinstance(items, list | tuple):
        return [dict(obj)]
    head = {} if kind == "List" else {"kind": kind.removesuffix("List"), "apiVersion": obj.get("apiVersion")}
    if not all(isinstance(item, Mapping) for item in items):
        raise ReprieveError(f"{kind}: an item is no object")
    return [part for item in items for part in _items_of({**head, **item})]


def _that_preempt(plugins: Mapping[str, type[Plugin]]) -> list[str]:
    return [name for name, kind in plugins.items() if issubclass(kind, PostFilterPlugin) and kind.chooses_candidates]
