"""Verbs: the answers to kube-scheduler about one cluster."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.cache import CacheError
from extender.engine.cache.cluster import Cluster
from extender.engine.cache.overlay import Overlay
from extender.engine.plugins import IN_TREE
from extender.engine.reporter import NO_REPORTER, Reporter, Reporters, VerbCall
from extender.engine.runtime import reserve_to_bind
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError, repeated_after_long_work, with_long_work
from extender.engine.runtime.scoring import Scores
from extender.engine.snapshot.axes import Int64s
from extender.values.metrics.tracing import CURRENT
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import validate_requests
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY, MetaVictims
from extender.verbs.filtering import FilterResult, filter_nodes, places_of, rows_at, why_refused
from extender.verbs.preempting import candidates_of, choose_victims, without_policies


def prioritize_nodes(cycle: Cycle, names: Sequence[str]) -> list[int]:
    """Returns a score from 0 to 10 for each node, 0 if unknown or if the pod demands too much. Raises PluginError."""
    places, is_known_node = places_of(cycle.snapshot, names)
    scores = np.zeros(len(names), np.int64)
    if is_known_node.any() and cycle.framework.plugins.score:
        # Score plugins may read what their PreFilter kept; its verdict does not matter here, because the caller has
        # filtered.
        cycle.run_pre_filter_plugins()
        if cycle.demands_too_much:
            return [0] * len(names)
        rows, row_of = rows_at(cycle.snapshot, places[is_known_node])
        cycle.run_pre_score_plugins(rows)
        scores[is_known_node] = _on_extender_scale(cycle.run_score_plugins(rows))[row_of]
    node_scores: list[int] = scores.tolist()
    return node_scores


def _on_extender_scale(scores: Scores) -> Int64s:
    """Returns (R,) scores from 0 to 10, rounded half up.

    Plugins in the tree tell nodes apart by a few points of some hundreds: where one of them scores, the totals are
    spread from the worst row to the best; equal ones are all best. Where only plugins of the user score, a row gets a
    tenth of their mean by weight, so that a score means the same in every call, and nothing below 0.
    """
    total, highest = scores.total, fwk.MAX_NODE_SCORE * sum(map(abs, scores.weights.values()))
    if not IN_TREE.keys().isdisjoint(scores.weights):
        worst, best = int(total.min()), int(total.max())
        total, highest = (total - worst, best - worst) if worst < best else (np.ones_like(total), 1)
    # Weights are int32, so that 20 times a total fits an int64.
    return (2 * MAX_EXTENDER_PRIORITY * np.maximum(total, 0) + highest) // max(2 * highest, 1)


class VerbError(Exception):
    """The call is valid but cannot be answered. The text ends up in the pod's events."""


@final
class _Turn(asyncio.Lock):
    """The turn to decide. Between two turns others have the event loop."""

    def release(self) -> None:
        asyncio.get_running_loop().call_soon(super().release)


@final
class Verbs:
    """Answers the verbs, or raises VerbError. State: an overlay with the nodes of the last call that brought some."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        cluster: Cluster,
        *,
        dispatcher: fwk.Dispatcher | None = None,
        reporter: Reporter = NO_REPORTER,
    ) -> None:
        """Creates the verbs of one cluster, to whose changes `changed` has to be subscribed.

        Arguments:
            frameworks: one per profile, by scheduler name.
            dispatcher: performs writes; None without an API server.
        """
        self._frameworks = frameworks
        self._cluster = cluster
        self._dispatcher = dispatcher
        self._overlay: Overlay | None = None
        self._turn = _Turn()
        self._reporter = Reporters(reporter)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Handles a change that the cluster has already handled."""
        if self._overlay is not None:
            self._overlay.changed(old, new)
        if isinstance(new, Pod) and _is_nominated(new) and not (isinstance(old, Pod) and _is_nominated(old, new)):
            self._reporter.nominated(new)

    # One call after the other decides, in one step of the event loop, unless a plugin has long work to do: the step is
    # then begun again, and others come first.

    @repeated_after_long_work
    async def filter(
        self,
        pod: Pod,
        *,
        node_names: Sequence[str] | None = None,
        nodes: Sequence[Node] | None = None,
        caller: str = "",
    ) -> FilterResult:
        """Returns the given nodes on which the pod can run; `caller` is for the records."""
        with self._answering(pod, len(node_names or nodes or ()), caller) as call_so_far:
            async with self._turn:
                names, cycle = await self._cycle(pod, node_names, nodes)
                result = filter_nodes(cycle, names)
        if result.findings is not None:
            self._reporter.filter_called(call_so_far(), result.findings, len(result.kept))
        return result

    @repeated_after_long_work
    async def prioritize(
        self,
        pod: Pod,
        *,
        node_names: Sequence[str] | None = None,
        nodes: Sequence[Node] | None = None,
        caller: str = "",
    ) -> list[int]:
        """Returns a score from 0 to 10 for each given node, in their order."""
        with self._answering(pod, len(node_names or nodes or ()), caller) as call_so_far:
            async with self._turn:
                names, cycle = await self._cycle(pod, node_names, nodes)
                scores = prioritize_nodes(cycle, names)
        self._reporter.prioritize_called(call_so_far(), names, scores)
        return scores

    @repeated_after_long_work
    async def preempt(
        self,
        pod: Pod,
        candidates: Mapping[str, MetaVictims],
        *,
        victim: Callable[[str], Pod | None] = lambda uid: None,
        caller: str = "",
    ) -> dict[str, MetaVictims]:
        """Returns the victims that the preemption needs, for each candidate node on which it helps.

        A victim that has no node here counts as assumed on the caller's: kube-scheduler names pods that wait at Permit
        or in PreBind. `victim` returns one that came in full, by UID.
        """
        with self._answering(pod, len(candidates), caller) as call_so_far:
            async with self._turn:
                with self._cluster.assuming(self._without_node(candidates, victim)):
                    _, cycle = await self._cycle(pod, (), None)
                    chosen = choose_victims(cycle, candidates)
                    num_spared, alone = _num_spared(candidates, chosen), without_policies(cycle, candidates)
                    self._reporter.preempt_called(call_so_far(), candidates_of(cycle, chosen), alone)
        parts = []
        if len(chosen) < len(candidates):
            parts.append(f"Extender kept {len(chosen)} of {len(candidates)} nodes to preempt pods on")
        if num_spared:
            parts.append(f"Extender spared {num_spared} of the victims")
        # Of a pod that is not waiting here, as those of a test of the connection, nobody would read the event.
        if parts and pod.uid in self._cluster.pending:
            note = "; ".join(parts)
            cycle.framework.record_event(pod, "Normal", "PreemptionNarrowed", "Preempting", note)
        return chosen

    def _without_node(
        self, candidates: Mapping[str, MetaVictims], victim: Callable[[str], Pod | None]
    ) -> Iterator[tuple[Pod, str]]:
        """Yields the named victims that have no node here, and are known or came in full, with the caller's node."""
        cluster = self._cluster
        for node, victims in candidates.items():
            for uid in victims.uids if node in cluster.nodes else ():
                if cluster.cache.pod(uid) is None:
                    pod = cluster.pending.get(uid) or victim(uid)
                    if pod is not None:
                        yield pod, node

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """Binds the pod, unless it is bound, if its profile accepts the node, with the user's Reserve and PreBind."""
        pod = f"pod {namespace}/{name}"
        if self._dispatcher is None:
            raise VerbError(
                f"{pod} was not bound to {node}: this extender has no API server to bind through; "
                "leave bindVerb empty so that kube-scheduler binds"
            )
        if not uid:
            raise VerbError(f"{pod} was not bound to {node}: without its UID it may be another pod by now")
        if self._cluster.cache.node(node) is None:
            # The API server does not check whether the node exists.
            raise VerbError(f'{pod} was not bound to {node}: node "{node}" not found')
        reason, cycle = await with_long_work(partial(self._why_not_in_turn, uid, node))
        if reason:
            raise VerbError(f"{pod} was not bound to {node}: {reason}")
        # Assumed from now on, because other calls come before the API server answers, and before the watch shows the
        # binding.
        assumed, is_bound = self._assume(uid, node), False
        try:
            if assumed is not None and cycle is not None:
                await self._reserve(cycle, assumed)
            annotations = self._promised(uid)
            await self._dispatcher.perform(fwk.BindPod(namespace, name, uid, node, annotations))
            is_bound = True
        except (fwk.CallError, VerbError) as exc:
            raise VerbError(f"{pod} was not bound to {node}: {exc}") from exc
        finally:
            if assumed is not None and not is_bound:
                if cycle is not None:
                    reserve_to_bind.run_unreserve_plugins(cycle, assumed, node, IN_TREE)
                self._cluster.forget(uid)
        if self._overlay is not None:
            self._overlay.assume(uid, node)
            self._overlay.cluster.cache.annotate(uid, annotations)

    async def _reserve(self, cycle: Cycle, assumed: Pod) -> None:
        status = reserve_to_bind.run_reserve_plugins(cycle, assumed, assumed.spec.node_name, IN_TREE)
        if status.is_success:
            # Before anything is awaited, because the pod counts for other calls from now on.
            self._cluster.cache.annotate(assumed.uid, cycle.find(fwk.BINDING_ANNOTATIONS))
            plan = reserve_to_bind.without_pre_flights(cycle, IN_TREE)
            status = await reserve_to_bind.run_pre_bind_plugins(plan, cycle, assumed, assumed.spec.node_name)
        if not status.is_success:
            raise VerbError(status.message)
        self._cluster.cache.annotate(assumed.uid, cycle.find(fwk.BINDING_ANNOTATIONS))

    def _promised(self, uid: str) -> Mapping[str, str]:
        """Returns the annotations of the binding, also where an earlier call has assumed the pod."""
        pending, assumed = self._cluster.pending.get(uid), self._cluster.cache.pod(uid)
        if pending is None or assumed is None:
            return {}
        return {key: value for key, value in assumed.annotations.items() if pending.annotations.get(key) != value}

    def _assume(self, uid: str, node: str) -> Pod | None:
        """Returns the pod on the node, if it was assumed there by this call."""
        try:
            return self._cluster.assume(uid, node)
        except ValueError:  # the pod cannot be read, so that only the watch can add it once it is bound
            return None

    async def _why_not_in_turn(self, uid: str, node: str) -> tuple[str, Cycle | None]:
        async with self._turn:
            return await self._why_not(uid, node)

    async def _why_not(self, uid: str, node: str) -> tuple[str, Cycle | None]:
        """Returns why the pod must not be bound to the node, and the cycle; empty if the API server is to decide."""
        pending = self._cluster.pending.get(uid)
        pod = pending or self._cluster.cache.pod(uid)
        if pod is None:
            _, unreadable = self._cluster.unreadable.get(uid, ("", ""))
            return (
                f"the pod cannot be read: {unreadable}"
                if unreadable
                else "no pod with its UID is known here, perhaps not yet"
            ), None
        if pod.scheduler_name not in self._frameworks:
            return (
                f"its schedulerName is {pod.scheduler_name}, and only pods of {', '.join(sorted(self._frameworks))} "
                "are bound here"
            ), None
        if pending is None or self._cluster.cache.is_assumed(pending):
            return "", None
        try:
            _, cycle = await self._cycle(pending, (), None)
            return why_refused(cycle, node), cycle
        except (VerbError, CacheError, PluginError, ValueError) as exc:
            return str(exc), None

    # Used by all verbs.

    @contextmanager
    def _answering(self, pod: Pod, num_nodes: int, caller: str) -> Iterator[Callable[[], VerbCall]]:
        """Turns errors of a verb into VerbErrors. Yields a function that returns the call for the reporter."""
        began = perf_counter()

        def call_so_far() -> VerbCall:
            return VerbCall(pod, pod.scheduler_name, num_nodes, perf_counter() - began, caller)

        try:
            try:
                yield call_so_far
            except (PluginError, CacheError, QuantityError) as exc:
                # In Python 3.12 and 3.13 its traceback is in a cycle with this block, and would hold the call's body.
                raise VerbError(str(exc)) from exc.with_traceback(None)
        except VerbError as exc:
            self._reporter.call_failed(call_so_far(), str(exc))
            raise

    async def _cycle(
        self, pod: Pod, node_names: Sequence[str] | None, nodes: Sequence[Node] | None
    ) -> tuple[Sequence[str], Cycle]:
        """Returns the names of the nodes and a cycle over them, after which nothing is awaited before the decision."""
        framework = self._framework_for(pod)
        if nodes is None and node_names is None:
            raise VerbError("neither nodes nor nodeNames given")
        overlay = None if nodes is None else self._overlay or Overlay(self._cluster)
        cluster, self._overlay = (self._cluster, self._overlay) if overlay is None else (overlay.cluster, overlay)
        try:
            for _ in () if overlay is None or nodes is None else overlay.taking(nodes):
                await asyncio.sleep(0)
            # Nominated pods get their slots before the snapshot is taken.
            nominations = Nominations(cluster.nominees(self._frameworks))
            snapshot = cluster.cache.update_snapshot()
        except Exception as exc:
            if overlay is not None and not isinstance(exc, CacheError):
                self._overlay = None  # it may lack some of the nodes
            raise
        trace = CURRENT.get()
        cycle = Cycle(framework, snapshot, pod, nominations, observe=None if trace is None else trace.timed)
        return node_names or () if overlay is None else overlay.names, cycle

    def _framework_for(self, pod: Pod) -> Framework:
        validate_requests(pod)
        framework = self._frameworks.get(pod.scheduler_name)
        if framework is None and len(self._frameworks) == 1:
            # The caller's profile may have another name; the only profile here is the one it means.
            (framework,) = self._frameworks.values()
        if framework is None:
            raise VerbError(
                f"no profile for this pod's schedulerName; known profiles are {', '.join(sorted(self._frameworks))}"
            )
        return framework


def _num_spared(candidates: Mapping[str, MetaVictims], chosen: Mapping[str, MetaVictims]) -> int:
    """Returns the number of the caller's victims that need not go, on nodes where it may still preempt."""
    changed = ((candidates[name], victims) for name, victims in chosen.items() if candidates[name].pods != victims.pods)
    return sum(len(set(before.uids) - set(victims.uids)) for before, victims in changed)


def _is_nominated(pod: Pod, like: Pod | None = None) -> bool:
    """Returns whether the pod is nominated to a node; if another pod is given, to the same node as that."""
    node = pod.status.nominated_node_name
    return bool(node) and not pod.spec.node_name and (like is None or node == like.status.nominated_node_name)
