"""Writes api/documents/answers.json, the examples of answers in openapi.json: python -m tools.generate_answers

A service for the example cluster is asked everything that is read. Of lists the first item is kept, of texts the first
lines, and all times are one.
"""

import json
import re
import time
from pathlib import Path
from typing import Any, Final

from fastapi.testclient import TestClient

from api.app import create_app
from api.documents.documentation import ANSWERS
from api.routing import routed
from api.settings.settings import Settings
from reprieve.lab.extender_schema import PATH

FILE: Final = Path("api/documents") / ANSWERS
_LINES: Final = 8
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_SECONDS_TO_SCHEDULE: Final = 60


def answers() -> dict[str, Any]:
    """Returns `METHOD path` -> its parameters and answer."""
    settings = Settings(access="open", shadow=True)
    answer_of: dict[str, Any] = {}
    with TestClient(create_app(settings), base_url="http://127.0.0.1", client=("127.0.0.1", 0)) as service:
        ends = time.monotonic() + _SECONDS_TO_SCHEDULE
        while not (made_room := service.get("/v1/preemptions").json().get("items")):
            if time.monotonic() > ends:
                raise SystemExit("the example cluster has no preemption yet")
            time.sleep(0.1)
        namespace, pod = made_room[-1]["by"]["namespace"], made_room[-1]["by"]["name"]
        decided = service.get("/v1/decisions", params={"pod": f"{namespace}/{pod}"}).json()["items"]
        chosen = {"namespace": namespace, "pod": pod, "node": "node-a1", "check": "ping", "id": decided[-1]["id"]}
        queries = {"/v1/capacity": {"pod": f"{namespace}/{pod}"}, "/v1/find": {"q": pod}}
        for path, operations in routed(settings).openapi()["paths"].items():
            if "get" in operations and path != PATH:  # the schema is a file of docs/schemas
                query = queries.get(path, {})
                parameters = {name: chosen[name] for name in re.findall(r"{(\w+)}", path)}
                answer = service.get(path.format_map(parameters), params=query)
                answer_of[f"GET {path}"] = {"parameters": parameters | query, "answer": _short(_read(path, answer))}
    return answer_of


def _read(path: str, answer: Any) -> Any:
    if answer.status_code != 200:
        raise SystemExit(f"{path}: {answer.status_code} {answer.text}")
    is_json = "json" in answer.headers["content-type"]
    return answer.json() if is_json else "".join(answer.text.splitlines(keepends=True)[:_LINES])


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value[:1]]
    return _TIME.sub("2026-11-28T12:00:00Z", value) if isinstance(value, str) else value


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(request)}: {json.dumps(answer)}" for request, answer in answers().items())
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
