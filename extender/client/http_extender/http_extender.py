"""HTTPExtender: one HTTP extender of the configuration; ExtenderCalls: its calls, live, recorded, or replayed.

Upstream: pkg/scheduler/extender.go.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, final

from extender.client.http_extender.calling import ExtenderClient, without_password
from extender.client.http_extender.checks import check_extenders, warnings_of
from extender.client.transport.carrier import Transport
from extender.engine.framework import Candidate, ExtenderError
from extender.engine.scheduler.extenders import FilterAnswer
from extender.engine.snapshot import Snapshot
from extender.values.config.completion import calling_order
from extender.values.config.configuration import Configuration, Extender
from extender.values.golang.quoting import quoted
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Container, Pod
from extender.values.protocol import verb_results
from extender.values.protocol.node_lists import EncodedNodes
from extender.values.protocol.verb_arguments import binding_args, extender_args, preemption_args
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY, HostPriority, MetaVictims, Victims

T = TypeVar("T")


class ExtenderCalls(ABC):
    """The calls of one extender. Each method raises ExtenderError if the call failed, or its answer cannot be read."""

    @abstractmethod
    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> verb_results.Filtered:
        """Returns the nodes that pass, and the reasons of others."""

    @abstractmethod
    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        """Returns the scores of nodes."""

    @abstractmethod
    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        """Returns node name -> victims; None where the extender answers null."""

    @abstractmethod
    async def bind(self, pod: Pod, node: str) -> None: ...

    @abstractmethod
    async def aclose(self) -> None:
        """Closes the connections, after which no call is answered."""


@final
class HTTPCalls(ExtenderCalls):
    """Calls over HTTP. State: the connections, and the nodes as they were last encoded."""

    def __init__(self, config: Extender, client: ExtenderClient) -> None:
        self._config = config
        self._client = client
        self._encoded = None if config.node_cache_capable else EncodedNodes()

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> verb_results.Filtered:
        body = await self._client.post(self._config.filter_verb, extender_args(pod, nodes, self._encoded))
        return verb_results.read_filter_result(body)

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        body = await self._client.post(self._config.prioritize_verb, extender_args(pod, nodes, self._encoded))
        return verb_results.read_prioritize_result(body)

    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        # Go writes null for a list of objects that was never filled.
        in_full = {
            candidate.node: Victims(candidate.victims or None, candidate.num_pdb_violations) for candidate in candidates
        }
        arguments = preemption_args(pod, in_full, by_uid=self._config.node_cache_capable)
        return verb_results.read_preemption_result(await self._client.post(self._config.preempt_verb, arguments))

    async def bind(self, pod: Pod, node: str) -> None:
        verb_results.read_binding_result(await self._client.post(self._config.bind_verb, binding_args(pod, node)))

    async def aclose(self) -> None:
        await self._client.aclose()


Through = Callable[[Extender, ExtenderCalls], ExtenderCalls]
"""Returns what the calls of an extender go through."""

_LOGGER: Final = logging.getLogger(__name__)


@final
class HTTPExtender:
    """Calls one extender. State: its connections, and what was last warned of about its scores."""

    def __init__(self, config: Extender, transport: Transport | None = None, through: Through | None = None) -> None:
        """Opens nothing yet; close it with `aclose`.

        The transport, closed with it, is used instead of sockets; calls go `through` a carrier. Raises TlsError.
        """
        self._config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        calls = HTTPCalls(config, ExtenderClient(config, transport))
        self._calls = calls if through is None else through(config, calls)
        self._last_score_failure = ""
        self._has_told_of_range = False

    @property
    def name(self) -> str:
        """The extender's address, as configured, without a password."""
        return without_password(self._config.url_prefix)

    @property
    def is_ignorable(self) -> bool:
        return self._config.ignorable

    @property
    def is_filter(self) -> bool:
        return bool(self._config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self._config.prioritize_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self._config.preempt_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self._config.bind_verb)

    @property
    def weight(self) -> int:
        return self._config.weight

    def is_interested(self, pod: Pod) -> bool:
        """Returns whether a container requests a resource that the extender manages, if it manages any."""
        return not self._managed or any(map(self._uses_managed, (*pod.spec.containers, *pod.spec.init_containers)))

    def _uses_managed(self, container: Container) -> bool:
        resources = container.resources
        return not self._managed.isdisjoint(resources.requests) or not self._managed.isdisjoint(resources.limits)

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        """Returns the nodes on which the pod can run. Raises ExtenderError, also for nodes not given."""
        if not self.is_filter:
            return FilterAnswer(nodes, {}, {})
        answer = await self._calls.filter(pod, nodes)
        passing: Sequence[Node] = answer.nodes or ()
        if self._config.node_cache_capable and answer.node_names is not None:
            nodes_by_name = {node.name: node for node in nodes}
            for name in answer.node_names:
                if name not in nodes_by_name:
                    raise self.unknown_node(name)
            passing = [nodes_by_name[name] for name in answer.node_names]
        return FilterAnswer(passing, dict(answer.failed), dict(answer.failed_and_unresolvable))

    def unknown_node(self, name: str) -> ExtenderError:
        """Returns the error for a node that the extender lets pass although it was not given."""
        return ExtenderError(
            f"extender {quoted(self.name)} claims a filtered node {quoted(name)} which is not found in the input node "
            "list"
        )

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        """Returns the extender's scores, not weighted; nodes may have none or several, or be unknown.

        The protocol asks for 0 to 10. Any int64 counts unchanged, as upstream, with one warning. Raises ExtenderError.
        """
        if not self.is_prioritizer:
            return []
        scores = await self._calls.prioritize(pod, nodes)
        self._last_score_failure = ""
        if not self._has_told_of_range:
            self._tell_of_range(scores)
        return scores

    def _tell_of_range(self, scores: Sequence[HostPriority]) -> None:
        beyond = next((priority for priority in scores if not 0 <= priority.score <= MAX_EXTENDER_PRIORITY), None)
        if beyond is not None:
            self._has_told_of_range = True
            text = "Extender %s gives node %s the score %d; it is used unchanged, though the protocol asks for 0 to %d"
            _LOGGER.warning(text, self.name, beyond.host, beyond.score, MAX_EXTENDER_PRIORITY)

    def log_score_failure(self, exc: ExtenderError) -> None:
        """Logs a failure to score, which has no other consequence. A repeated failure is a warning only once."""
        text = str(exc)
        level = logging.DEBUG if text == self._last_score_failure else logging.WARNING
        self._last_score_failure = text
        _LOGGER.log(
            level,
            "Failed to run extender's priority function. No score given by this priority function. %s: %s",
            self.name,
            text,
        )

    async def process_preemption(
        self, pod: Pod, candidates: Sequence[Candidate], snapshot: Snapshot
    ) -> list[Candidate]:
        if not self.supports_preemption:
            raise ExtenderError(f"preempt verb is not defined for extender {self.name} but run into ProcessPreemption")
        answer = await self._calls.preempt(pod, candidates)
        return [self._candidate(node, of_node, snapshot) for node, of_node in answer.items()]

    def _candidate(self, node: str, of_node: MetaVictims | None, snapshot: Snapshot) -> Candidate:
        place = snapshot.nodes.index.get(node)
        if place is None:
            raise ExtenderError(f"nodeinfo not found for node name {quoted(node)}")
        if of_node is None:
            # Upstream dereferences the null, which ends the process.
            raise ExtenderError(f"extender: {self.name} claims to preempt pods on node: {node}, but has null for them")
        if of_node.num_pdb_violations < 0:
            # Upstream uses the number as it is, so that the node would be preferred to all others.
            raise ExtenderError(
                f"extender: {self.name} claims {of_node.num_pdb_violations} PDB violations on node: {node}"
            )
        pods = []
        for uid in of_node.uids:
            slot = snapshot.pods.slots.get(uid) if uid else None
            if slot is None or int(snapshot.pods.node[slot]) != place:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, but the pod is "
                    "not found on that node"
                )
            pods.append(snapshot.pod_at(slot))
        return Candidate(node, tuple(pods), of_node.num_pdb_violations)

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds the pod. Raises ExtenderError if it is not bound, or the outcome is unknown."""
        if not self.is_binder:
            raise ExtenderError("unexpected empty bindVerb in extender")
        await self._calls.bind(pod, node)

    async def aclose(self) -> None:
        await self._calls.aclose()


Transports = Callable[[Extender], Transport | None]
"""Returns the transport for the calls to an extender; None for sockets."""


def no_transport(extender: Extender) -> None:
    """Chooses sockets for every extender."""


def reads_whole(extenders: Sequence[Extender]) -> Callable[[HasMetadata], bool]:
    """Returns a predicate of the objects that are sent to extenders as the API server has them.

    These are pods without a node; of others only those that may be victims in full; and nodes in full.
    """
    by_objects = [extender for extender in extenders if not extender.node_cache_capable]
    sends_nodes = any(extender.filter_verb or extender.prioritize_verb for extender in by_objects)
    sends_victims = any(extender.preempt_verb for extender in by_objects)

    def is_read(obj: HasMetadata) -> bool:
        if isinstance(obj, Pod):
            return bool(extenders) and (sends_victims or not obj.spec.node_name)
        return sends_nodes and isinstance(obj, Node)

    return is_read


def make_extenders(
    configuration: Configuration, transports: Transports = no_transport, through: Through | None = None
) -> tuple[HTTPExtender, ...]:
    """Returns the extenders in the order in which they are called, and logs unwise settings.

    Raises ConfigErrors with every reason why one cannot be called.
    """
    check_extenders(configuration)
    for index, extender in enumerate(configuration.extenders):
        for warning in warnings_of(extender):
            _LOGGER.warning("extenders[%d].%s", index, warning)
    return tuple(HTTPExtender(config, transports(config), through) for config in calling_order(configuration.extenders))
