"""Extenders without sockets: what they say, and what they were asked."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx

from extender.values.config.configuration import Extender

Says = Callable[[Any], Any]
"""From the arguments of a call to its answer: a value, a status code, or something to wait for."""

NO_FAILURES: Final = {"FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}


class InMemory:
    """Extenders by name, which is the host of their address; and all that they were asked."""

    def __init__(self, **says: Says) -> None:
        self.says = says
        self.asked: list[tuple[str, str, Any]] = []
        self.open = 0

    def transport(self, extender: Extender) -> httpx.AsyncBaseTransport:
        self.open += 1
        return _Counted(self)

    def closed(self) -> None:
        self.open -= 1

    async def answer(self, request: httpx.Request) -> httpx.Response:
        arguments = json.loads(request.content)
        self.asked.append((request.url.host, request.url.path.strip("/"), arguments))
        answer = self.says[f"{request.url.host}_{request.url.path.strip('/')}"](arguments)
        if isinstance(answer, Awaitable):
            answer = await answer
        return httpx.Response(answer) if isinstance(answer, int) else httpx.Response(200, json=answer)

    def verbs_for(self, name: str) -> list[tuple[str, str]]:
        """(extender, verb) of the calls about a pod."""
        return [
            (host, verb) for host, verb, arguments in self.asked if name in (arguments.get("PodName"), _name(arguments))
        ]


class _Counted(httpx.MockTransport):
    def __init__(self, memory: InMemory) -> None:
        super().__init__(memory.answer)
        self._memory = memory

    async def aclose(self) -> None:
        self._memory.closed()


def _name(arguments: Any) -> str:
    return str(arguments.get("Pod", {}).get("metadata", {}).get("name", ""))


def an_extender(name: str, *, node_cache_capable: bool = True, **options: Any) -> Extender:
    return Extender(url_prefix=f"http://{name}/", node_cache_capable=node_cache_capable, **options)


def keeping(*names: str, failed: dict[str, str] | None = None, unresolvable: dict[str, str] | None = None) -> Says:
    """Lets these of the nodes that it is asked about pass, whether it is asked by name or shown the nodes."""

    def says(arguments: Any) -> Any:
        if arguments.get("NodeNames") is not None:
            passing: Any = {"NodeNames": [name for name in arguments["NodeNames"] if name in names]}
        else:
            passing = {
                "Nodes": {"items": [node for node in arguments["Nodes"]["items"] if node["metadata"]["name"] in names]}
            }
        return NO_FAILURES | passing | {"FailedNodes": failed or {}, "FailedAndUnresolvableNodes": unresolvable or {}}

    return says


def scoring(**scores: int) -> Says:
    return lambda arguments: [{"Host": host, "Score": score} for host, score in scores.items()]
