"""Engine: the parts put together. The one file that knows them all."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, final

import msgspec

from extender import framework as fwk
from extender.cache import CacheError
from extender.cache.cluster import Cluster
from extender.cache.overlay import Overlay
from extender.concurrency.abandoned import IsWanted, check_wanted, in_thread
from extender.config.configuration import Configuration
from extender.config.loading import load
from extender.evaluation.answer import answer
from extender.evaluation.evaluate import Evaluation, evaluate, trying_every_node
from extender.objects import decoding
from extender.objects.cluster_state import ClusterState, identified
from extender.objects.decoding import DecodeError
from extender.objects.meta import ApiObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.objects.resources import validate_requests
from extender.plugins import IN_TREE
from extender.records import NO_REPORTER, Guarded, Reporter
from extender.records.reporter import Asked
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.runtime.registry import Registry
from extender.snapshot import Snapshot
from extender.verbs import verbs
from extender.verbs.verbs import FilterResult, VerbError, Victims


@final
class Engine:
    """Answers for one cluster. State: the cache, its overlay with the nodes of requests, and a framework a profile."""

    def __init__(
        self,
        configuration: Configuration,
        cluster: Cluster,
        *,
        is_ready: Callable[[], bool] = lambda: True,
        dispatcher: fwk.Dispatcher | None = None,
        take: Callable[[str, ApiObject | None, ApiObject | None], None] | None = None,
        rng: random.Random | None = None,
        reporter: Reporter = NO_REPORTER,
    ) -> None:
        """Assemble an engine.

        Arguments:
            cluster: what is known; the engine alone changes it from now on.
            is_ready: whether everything is in there that is known of the cluster.
            dispatcher: performs writes; None without an API server.
            take: takes a change into the cluster, and tells whoever else wants to know; None for `cluster.changed`.
            reporter: who is told what kube-scheduler asks.

        Raises:
            ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
        """
        self._registry = Registry(IN_TREE)
        self._configuration = configuration
        self._frameworks = self._registry.make_frameworks(configuration, rng or random.Random(), dispatcher=dispatcher, live=cluster.cache)
        self._cluster = cluster
        self._take = take or cluster.changed
        self._is_ready = is_ready
        self._dispatcher = dispatcher
        self._overlay: Overlay | None = None
        self._reporter = Guarded(reporter)

    @staticmethod
    def open(configuration: Configuration, state: ClusterState) -> "Engine":
        """An engine for a cluster as a file describes it.

        Raises:
            ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
        """
        return Engine(configuration, Cluster.of(state))

    @property
    def is_ready(self) -> bool:
        """True once the cluster's objects are known."""
        return self._is_ready()

    @property
    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Pods that are left out, and why."""
        return tuple(self._cluster.unreadable.values())

    def changed(self, table: str, old: ApiObject | None, new: ApiObject | None) -> None:
        """An object of the cluster came (`old` is None), changed, or went (`new` is None).

        Arguments:
            table: the name of the object's list in `ClusterState`.
        """
        self._take(table, old, new)
        if self._overlay is not None:
            self._overlay.changed(table, old, new)
        if isinstance(new, Pod) and _is_nominated(new) and not (isinstance(old, Pod) and _is_nominated(old, new)):
            self._reporter.nominated(new)

    # The four verbs. Each raises VerbError when the question is understood and cannot be answered.

    def filter(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> FilterResult:
        """Which of the asked nodes the pod can run on."""
        with self._answering(pod, len(node_names or nodes or ())) as so_far:
            framework = self._framework_for(pod)
            asked, snapshot, nominated = self._asked(node_names, nodes)
            result = verbs.filter_nodes(framework, snapshot, nominated, pod, asked)
        if result.findings is not None:
            self._reporter.asked_filter(so_far(), result.findings, len(result.kept))
        return result

    def prioritize(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> list[int]:
        """A score from 0 to 10 for each asked node, in the order asked."""
        with self._answering(pod, len(node_names or nodes or ())) as so_far:
            framework = self._framework_for(pod)
            asked, snapshot, nominated = self._asked(node_names, nodes)
            scores = verbs.prioritize_nodes(framework, snapshot, nominated, pod, asked)
        self._reporter.asked_prioritize(so_far(), asked, scores)
        return scores

    def preempt(self, pod: Pod, candidates: Mapping[str, Victims]) -> dict[str, Victims]:
        """The victims that really have to go, for each candidate node on which that helps."""
        with self._answering(pod, len(candidates)) as so_far:
            framework = self._framework_for(pod)
            nominated = self._nominated(self._cluster)
            snapshot = self._cluster.cache.update_snapshot()
            chosen = verbs.choose_victims(framework, snapshot, nominated, pod, candidates)
        self._reporter.asked_preempt(so_far(), verbs.candidates_of(snapshot, chosen))
        told = _what_changed(candidates, chosen)
        if told:
            framework.record_event(pod, "Normal", "PreemptionNarrowed", "Preempting", told)
        return chosen

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """Bind the pod to the node. Done, too, if it is bound there already."""
        pod = f"pod {namespace}/{name}"
        if self._dispatcher is None:
            raise VerbError(
                f"{pod} was not bound to {node}: this extender has no API server to bind through; "
                "leave bindVerb empty so that kube-scheduler binds"
            )
        if not uid:
            raise VerbError(f"{pod} was not bound to {node}: without its UID it may be another pod by now")
        if self._cluster.cache.node(node) is None:
            # The API server does not look whether there is such a node.
            raise VerbError(f'{pod} was not bound to {node}: node "{node}" not found')
        lacks = self._lacks(uid, node)
        if lacks:
            raise VerbError(f"{pod} was not bound to {node}, which has no room for it any more: {lacks}")
        # Room is taken from now on: others ask before the API server answers, and before the watch shows it.
        is_held, is_bound = self._hold(uid, node), False
        try:
            await self._dispatcher.perform(fwk.BindPod(namespace, name, uid, node))
            is_bound = True
        except fwk.CallError as exc:
            raise VerbError(f"{pod} was not bound to {node}: {exc}") from exc
        finally:
            if is_held and not is_bound:
                self._cluster.forget(uid)
        with suppress(ValueError):
            if self._overlay is not None:
                self._overlay.cluster.assume(uid, node)

    def _hold(self, uid: str, node: str) -> bool:
        """Whether the pod counts on the node because of us."""
        try:
            return self._cluster.assume(uid, node) is not None
        except ValueError:  # it cannot be read: once it is bound, the watch will say so
            return False

    def _lacks(self, uid: str, node: str) -> str:
        """What there is too little of on the node for a pod that waits; empty if nothing, or if we cannot tell."""
        waiting = self._cluster.pending.get(uid)
        if waiting is None or self._cluster.cache.is_assumed(waiting):
            return ""  # its room is taken already, or it is for the API server to say what it thinks of it
        try:
            framework = self._framework_for(waiting)
            return verbs.why_full(framework, self._cluster.cache.update_snapshot(), waiting, node)
        except (VerbError, CacheError, ValueError):
            return ""

    # What-if.

    async def evaluate(self, scenario: Mapping[str, Any]) -> dict[str, Any]:
        """All that the scheduler would find out about `scenario["pod"]` in a cluster of its own.

        Arguments:
            scenario: `pod`, and optionally `objects`, `config`, `nominated` and `id`.

        Raises:
            DecodeError: the scenario has the wrong form; the message says where.
            ConfigErrors: its configuration is wrong.
        """
        # Nothing in here is shared with other calls, so that a large cluster need not hold up the verbs.
        return await in_thread(lambda is_wanted: asyncio.run(self._evaluate(scenario, is_wanted)))

    async def _evaluate(self, scenario: Mapping[str, Any], is_wanted: IsWanted) -> dict[str, Any]:
        pod = identified(decoding.convert(Pod, _member(scenario, "pod", dict, "pod is required")))
        state = ClusterState.decode(_member(scenario, "objects", dict))
        check_wanted(is_wanted)
        cluster = Cluster.of(state)
        check_wanted(is_wanted)
        frameworks = self._registry.make_frameworks(self._configuration_of(scenario), random.Random(0))
        framework = frameworks.get(pod.scheduler_name)
        nominated = Nominations(cluster.nominees(frameworks, _nominated(scenario)))
        if cluster.unreadable:
            raise DecodeError("; ".join(f"pod {key}: {why}" for key, why in cluster.unreadable.values()))
        snapshot = cluster.cache.update_snapshot()
        if framework is None:
            evaluation = Evaluation(snapshot, error=f"profile not found for scheduler name {pod.scheduler_name!r:.260}")
        else:
            evaluation = await evaluate(framework, snapshot, pod, nominated)
        result = answer(evaluation)
        return {"id": scenario["id"], **result} if "id" in scenario else result

    def _configuration_of(self, scenario: Mapping[str, Any]) -> Configuration:
        written = _member(scenario, "config", dict) if scenario.get("config") is not None else None
        configuration = self._configuration if written is None else load(msgspec.json.encode(written))
        return trying_every_node(configuration)

    # What the verbs share.

    @contextmanager
    def _answering(self, pod: Pod, num_nodes: int) -> Iterator[Callable[[], Asked]]:
        """What keeps a verb from answering becomes its answer in words. Yields what the reporter is to know of the question."""
        began = perf_counter()

        def so_far() -> Asked:
            return Asked(pod, pod.scheduler_name, num_nodes, perf_counter() - began)

        try:
            try:
                yield so_far
            except (PluginError, CacheError, QuantityError) as exc:
                raise VerbError(str(exc)) from exc
        except VerbError as exc:
            self._reporter.asked_in_vain(so_far(), str(exc))
            raise

    def _framework_for(self, pod: Pod) -> Framework:
        validate_requests(pod)
        framework = self._frameworks.get(pod.scheduler_name)
        if framework is None and len(self._frameworks) == 1:
            # The caller's profile may have any name; with one profile here there is no doubt which is meant.
            (framework,) = self._frameworks.values()
        if framework is None:
            raise VerbError(f"no profile for this pod's schedulerName; known profiles are {', '.join(sorted(self._frameworks))}")
        return framework

    def _asked(self, node_names: Sequence[str] | None, nodes: Sequence[Node] | None) -> tuple[Sequence[str], Snapshot, Nominations]:
        if nodes is None:
            if node_names is None:
                raise VerbError("neither nodes nor nodeNames given")
            nominated = self._nominated(self._cluster)
            return node_names, self._cluster.cache.update_snapshot(), nominated
        if self._overlay is None:
            self._overlay = Overlay(self._cluster)
        nominated = self._nominated(self._overlay.cluster)
        return [node.name for node in nodes], self._overlay.snapshot_with(nodes), nominated

    def _nominated(self, cluster: Cluster) -> Nominations:
        return Nominations(cluster.nominees(self._frameworks))


def _what_changed(candidates: Mapping[str, Victims], chosen: Mapping[str, Victims]) -> str:
    """What people should know of an answer to preempt; empty if it is what was asked."""
    spared = sum(len(set(candidates[name].uids) - set(victims.uids)) for name, victims in chosen.items())
    told = [f"Extender kept {len(chosen)} of {len(candidates)} nodes to preempt pods on"] if len(chosen) < len(candidates) else []
    return "; ".join([*told, *([f"Extender spared {spared} of the victims"] if spared else [])])


def _is_nominated(pod: Pod, like: Pod | None = None) -> bool:
    """Whether it was promised room on a node; on the same as the other pod, if there is one."""
    node = pod.status.nominated_node_name
    return bool(node) and not pod.spec.node_name and (like is None or node == like.status.nominated_node_name)


def _nominated(scenario: Mapping[str, Any]) -> list[tuple[Pod, str]]:
    entries = _member(scenario, "nominated", list)
    found: list[tuple[Pod, str]] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("nodeName"), str):
            raise DecodeError(f"nominated[{place}]: expected a pod and a nodeName")
        found.append((identified(decoding.convert(Pod, entry.get("pod"))), entry["nodeName"]))
    return found


def _member(scenario: Mapping[str, Any], name: str, kind: type, missing: str = "") -> Any:
    value = scenario.get(name)
    if value is None:
        if missing:
            raise DecodeError(missing)
        return kind()
    if not isinstance(value, kind):
        raise DecodeError(f"{name}: expected {'an object' if kind is dict else 'a list'}")
    return value
