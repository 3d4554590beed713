"""ExtenderCalls: what is asked of one extender, and answered; over HTTP, from a recording, or recorded on the way.

Upstream: pkg/scheduler/extender.go (v1.36.2).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar, final

from extender.client.http_extender.calling import ExtenderClient
from extender.engine.framework import Candidate
from extender.values.config.configuration import Extender
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.node_lists import EncodedNodes
from extender.values.protocol.verb_arguments import binding_args, extender_args, preemption_args
from extender.values.protocol.verb_results import (
    Filtered,
    read_binding_result,
    read_filter_result,
    read_preemption_result,
    read_prioritize_result,
)
from extender.values.protocol.wire_types import HostPriority, MetaVictims, Victims

T = TypeVar("T")


class ExtenderCalls(ABC):
    """The calls of one extender. Each method raises ExtenderError if the call failed, or its answer cannot be read."""

    @abstractmethod
    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Returns which of the nodes pass."""

    @abstractmethod
    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        """Returns the scores of nodes."""

    @abstractmethod
    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        """Returns node name -> victims; None where the extender answers null."""

    @abstractmethod
    async def bind(self, pod: Pod, node: str) -> None:
        """Binds the pod to the node."""

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

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        body = await self._client.post(self._config.filter_verb, extender_args(pod, nodes, self._encoded))
        return read_filter_result(body)

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        body = await self._client.post(self._config.prioritize_verb, extender_args(pod, nodes, self._encoded))
        return read_prioritize_result(body)

    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        in_full = {each.node: Victims(each.victims, each.num_pdb_violations) for each in candidates}
        arguments = preemption_args(pod, in_full, by_uid=self._config.node_cache_capable)
        return read_preemption_result(await self._client.post(self._config.preempt_verb, arguments))

    async def bind(self, pod: Pod, node: str) -> None:
        read_binding_result(await self._client.post(self._config.bind_verb, binding_args(pod, node)))

    async def aclose(self) -> None:
        await self._client.aclose()
