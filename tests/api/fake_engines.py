"""Engines that fail, wait or are not ready, which the real one does not do on demand."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.filtering import FilterResult
from extender.verbs.verbs import VerbError
from tests.api.gated_plugin import Gate


class FailingEngine:
    """Raises such an exception from everything."""

    def __init__(self, exc: Exception, is_ready: bool = True) -> None:
        self._kind = type(exc)
        self._text = str(exc)
        self.is_ready = is_ready

    async def filter(
        self,
        pod: Pod,
        *,
        node_names: Sequence[str] | None = None,
        nodes: Sequence[Node] | None = None,
        caller: str = "",
    ) -> FilterResult:
        raise self._kind(self._text)

    async def prioritize(
        self,
        pod: Pod,
        *,
        node_names: Sequence[str] | None = None,
        nodes: Sequence[Node] | None = None,
        caller: str = "",
    ) -> list[int]:
        raise self._kind(self._text)

    async def preempt(
        self,
        pod: Pod,
        candidates: Mapping[str, MetaVictims],
        *,
        victim: Callable[[str], Pod | None] = lambda uid: None,
        caller: str = "",
    ) -> dict[str, MetaVictims]:
        raise self._kind(self._text)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        raise self._kind(self._text)

    async def evaluate(self, scenario: Mapping[str, object]) -> dict[str, object]:
        raise self._kind(self._text)


class GateEngine(FailingEngine):
    """Its evaluations wait until the gate opens; the verbs cannot say anything."""

    def __init__(self) -> None:
        super().__init__(VerbError("nothing"))
        self._gate = Gate()
        self._gate.close()
        self._waited_for = 0

    @classmethod
    @contextmanager
    def closed(cls) -> Iterator["GateEngine"]:
        engine = cls()
        try:
            yield engine
        finally:
            engine.open()

    def wait_for_callers(self, count: int) -> None:
        """So many more than before."""
        self._waited_for += count
        self._gate.wait_for(self._waited_for)

    def open(self) -> None:
        self._gate.open()

    async def evaluate(self, scenario: Mapping[str, object]) -> dict[str, object]:
        await asyncio.to_thread(self._gate.pass_through)
        return {}
