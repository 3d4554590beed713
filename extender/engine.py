"""Engine: the parts put together. The one file that knows them all."""

import asyncio
import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import msgspec

from extender import verbs
from extender.cache import CacheError
from extender.cluster_state import ClusterState, FilledCache, fill_cache, identified
from extender.config.configuration import Configuration, PluginConfig, Profile
from extender.config.loading import load
from extender.config.plugin_args import DefaultPreemptionArgs
from extender.evaluation import DEFAULT_PREEMPTION, Evaluation, evaluate
from extender.evaluation_answer import answer
from extender.objects import decoding
from extender.objects.decoding import DecodeError
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.objects.resources import validate_requests
from extender.overlay import Overlay
from extender.plugins import IN_TREE
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.runtime.registry import Registry
from extender.snapshot import Snapshot
from extender.verbs import FilterResult, VerbError, Victims


@final
class Engine:
    """Answers for one cluster. State: the cache, its overlay with the nodes of requests, and a framework a profile."""

    def __init__(self, configuration: Configuration, state: ClusterState, rng: random.Random | None = None) -> None:
        """Assemble an engine.

        Raises:
            ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
        """
        self._registry = Registry(IN_TREE)
        self._configuration = configuration
        self._frameworks = self._registry.make_frameworks(configuration, rng or random.Random())
        self._state = state
        self._filled = fill_cache(state)
        self._overlay: Overlay | None = None
        self._nominations = nominations(self._filled, self._frameworks)

    @staticmethod
    def open(configuration: Configuration, state: ClusterState) -> "Engine":
        """An engine that is ready to answer.

        Raises:
            ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
        """
        return Engine(configuration, state)

    @property
    def is_ready(self) -> bool:
        """True once the cluster's objects are in the cache."""
        return True

    @property
    def unreadable(self) -> Sequence[tuple[str, str]]:
        """Pods of the state that were left out, and why."""
        return self._filled.unreadable

    # The four verbs. Each raises VerbError when the question is understood and cannot be answered.

    def filter(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> FilterResult:
        """Which of the asked nodes the pod can run on."""
        with _in_words():
            framework = self._framework_for(pod)
            asked, snapshot, nominated = self._asked(node_names, nodes)
            return verbs.filter_nodes(framework, snapshot, nominated, pod, asked)

    def prioritize(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> list[int]:
        """A score from 0 to 10 for each asked node, in the order asked."""
        with _in_words():
            framework = self._framework_for(pod)
            asked, snapshot, nominated = self._asked(node_names, nodes)
            return verbs.prioritize_nodes(framework, snapshot, nominated, pod, asked)

    def preempt(self, pod: Pod, candidates: Mapping[str, Victims]) -> dict[str, Victims]:
        """The victims that really have to go, for each candidate node on which that helps."""
        with _in_words():
            framework = self._framework_for(pod)
            return verbs.choose_victims(framework, self._filled.cache.update_snapshot(), self._nominations, pod, candidates)

    def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """Bind the pod; there is no API server to do that with yet, so that this always says so."""
        raise VerbError(
            f"pod {namespace}/{name} was not bound to {node}: this extender has no API server to bind through; "
            "leave bindVerb empty so that kube-scheduler binds"
        )

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
        return await asyncio.to_thread(lambda: asyncio.run(self._evaluate(scenario)))

    async def _evaluate(self, scenario: Mapping[str, Any]) -> dict[str, Any]:
        pod = identified(decoding.convert(Pod, _member(scenario, "pod", dict, "pod is required")))
        filled = fill_cache(ClusterState.decode(_member(scenario, "objects", dict)))
        frameworks = self._registry.make_frameworks(self._configuration_of(scenario), random.Random(0))
        framework = frameworks.get(pod.scheduler_name)
        nominated = nominations(filled, frameworks, _nominated(scenario))
        if filled.unreadable:
            raise DecodeError("; ".join(f"pod {key}: {why}" for key, why in filled.unreadable))
        snapshot = filled.cache.update_snapshot()
        if framework is None:
            evaluation = Evaluation(snapshot, error=f"profile not found for scheduler name {pod.scheduler_name!r:.260}")
        else:
            evaluation = await evaluate(framework, snapshot, pod, nominated)
        result = answer(evaluation)
        return {"id": scenario["id"], **result} if "id" in scenario else result

    def _configuration_of(self, scenario: Mapping[str, Any]) -> Configuration:
        written = _member(scenario, "config", dict) if scenario.get("config") is not None else None
        configuration = self._configuration if written is None else load(msgspec.json.encode(written))
        return dataclasses.replace(configuration, profiles=tuple(_trying_every_node(profile) for profile in configuration.profiles))

    # What the verbs share.

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
            return node_names, self._filled.cache.update_snapshot(), self._nominations
        if self._overlay is None:
            self._overlay = Overlay(self._filled, self._state.nodes)
        nominated = nominations(self._overlay.filled, self._frameworks)
        return [node.name for node in nodes], self._overlay.snapshot_with(nodes), nominated


def nominations(
    filled: FilledCache, frameworks: Mapping[str, Framework], further: Sequence[tuple[Pod, str]] = ()
) -> Nominations:
    """Who is nominated where: pending pods that say so themselves, then `further` ones.

    Pods that no profile here schedules, and gated ones, are in no queue, so that their nominations do not count. Pods that cannot be read
    are added to `filled.unreadable`.
    """
    own = [(pod, pod.status.nominated_node_name) for pod in filled.pending.values()]
    by_node: dict[str, list[tuple[int, Pod]]] = {}
    for pod, node in [*own, *further]:
        if node and pod.scheduler_name in frameworks and not pod.spec.scheduling_gates:
            try:
                by_node.setdefault(node, []).append((filled.cache.nominate(pod), pod))
            except ValueError as exc:
                filled.pending.pop(pod.uid, None)
                filled.unreadable.append((pod.key, str(exc)))
    return Nominations({node: tuple(pods) for node, pods in by_node.items()})


@contextmanager
def _in_words() -> Iterator[None]:
    """What keeps a verb from answering becomes its answer in words."""
    try:
        yield
    except (PluginError, CacheError, QuantityError) as exc:
        raise VerbError(str(exc)) from exc


def _trying_every_node(profile: Profile) -> Profile:
    """The profile with a dry run that leaves no promising node out."""
    every_node = PluginConfig(DEFAULT_PREEMPTION, DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0))
    others = tuple(config for config in profile.plugin_configs if config.name != DEFAULT_PREEMPTION)
    return dataclasses.replace(profile, plugin_configs=(*others, every_node))


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
