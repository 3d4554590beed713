"""A small extender of somebody else's, and what can be wrong with it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from tests.kit.service import in_a_thread


def _as_javascript(digits: str) -> int:
    return int(float(digits))


@dataclass
class SampleExtender:
    """An ASGI application that answers the four verbs; `defect` names what is wrong with it. It refuses nodes without
    victims, unless it passes all on.
    """

    defect: str = ""
    passes_on: bool = False
    calls: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=lambda: [(b"content-type", b"application/json")])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, answer = await self._answer(scope["path"].rsplit("/", 1)[-1], body)
        headers = list(self.headers)
        if status == 301:
            headers.append((b"location", scope["path"].encode() + b"/"))
        if self.defect == "closes connections":
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": answer if isinstance(answer, bytes) else json.dumps(answer).encode()}
        )

    async def _answer(self, verb: str, body: bytes) -> tuple[int, Any]:
        self.calls += 1
        if self.defect == "body limit" and len(body) > 2**20:
            body = body[: 2**20]
        if self.defect == "slow" and self.calls <= 1:
            await asyncio.sleep(1.2)
        if self.defect == "redirects" and verb == "filter":
            return 301, b""
        if self.defect == "preempt is not routed" and verb == "preempt":
            return 404, b"404 page not found"
        try:
            args = json.loads(body, parse_int=_as_javascript if self.defect == "numbers are floats" else int)
        except json.JSONDecodeError as exc:
            return 400, {"Error": str(exc)}
        return 200, getattr(self, verb)(args)

    def filter(self, args: dict[str, Any]) -> Any:
        nodes, names = args["Nodes"], args["NodeNames"]
        if self.defect == "null crashes" and nodes is None and names is None:
            raise TypeError("'NoneType' object is not iterable")
        items = (nodes or {}).get("items") or []
        if self.defect == "remembers" and self.calls % 2:
            items, names = items[1:], (names or [])[1:]
        answer: dict[str, Any] = {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "Error": ""}
        if self.defect == "wrong form" and nodes is not None:
            return answer | {"NodeNames": [node["metadata"]["name"] for node in items]}
        if nodes is not None:
            answer["Nodes"] = {"metadata": {}, "items": items}
        else:
            answer["NodeNames"] = names
        if self.defect == "strangers":
            answer["NodeNames" if nodes is None else "Nodes"] = (
                ["master-0"] if nodes is None else {"items": [{"metadata": {"name": "master-0"}}]}
            )
        if self.defect == "FailedNodes is a list":
            answer["FailedNodes"] = {"items": []} | {"metadata": {}}
        if self.defect == "misspells a field":
            answer["FailedNode"] = {"doctor-node-1": "why"}
        return answer

    def prioritize(self, args: dict[str, Any]) -> Any:
        names = args["NodeNames"] or [node["metadata"]["name"] for node in (args["Nodes"] or {}).get("items") or []]
        score: Any = {"scores beyond 10": 100, "scores are fractions": 7.5}.get(self.defect, 5)
        return [{"Host": name, "Score": score} for name in names]

    def preempt(self, args: dict[str, Any]) -> Any:
        nodes = args["NodeNameToMetaVictims"] or {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"] or []],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for node, victims in args["NodeNameToVictims"].items()
        }
        if self.passes_on:
            return {"NodeNameToMetaVictims": nodes}
        if self.defect == "knows bound pods alone" and self.calls > 1:  # the first call is about bound ones
            nodes = {node: {**victims, "Pods": []} for node, victims in nodes.items()}
        if self.defect == "takes all victims back":
            return {"NodeNameToMetaVictims": {node: {"Pods": []} for node in nodes}}
        if self.defect == "null for no victims":
            return {"NodeNameToMetaVictims": {node: entry if entry["Pods"] else None for node, entry in nodes.items()}}
        if self.defect == "preempt crashes on no victims" and any(not victims["Pods"] for victims in nodes.values()):
            raise IndexError("list index out of range")
        nonempty = {node: victims for node, victims in nodes.items() if victims["Pods"]}
        if self.defect == "answers victims in full":
            return {"NodeNameToVictims": nonempty}
        if self.defect == "invents victims":
            for victims in nonempty.values():
                victims["Pods"] = [{"UID": "somebody"}]
        if self.defect == "adds victims":
            for victims in nonempty.values():
                victims["Pods"].append({"UID": "somebody"})
        if self.defect == "negative violations":
            for victims in nonempty.values():
                victims["NumPDBViolations"] = -1
        return {"NodeNameToMetaVictims": nonempty}

    def bind(self, args: dict[str, Any]) -> Any:
        return {"Error": "" if self.defect == "binds what is not there" else f"pods {args['PodName']!r} not found"}


@contextmanager
def serving(extender: SampleExtender) -> Iterator[str]:
    """Its address."""
    config = uvicorn.Config(extender, host="127.0.0.1", port=0, lifespan="off", log_level="critical")
    with in_a_thread(uvicorn.Server(config)) as port:
        yield f"http://127.0.0.1:{port}/scheduler"
