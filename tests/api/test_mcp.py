"""`reprieve mcp`: the questions as tools of the Model Context Protocol, asked by the protocol's own client."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import ClientSession, StdioServerParameters, stdio_client

from api.settings.settings import EXAMPLE_CLUSTER
from tests.api.in_process import ROOT, reprieve
from tests.kit.service import Service
from tests.kit.tables import cases

POD = """
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: shop}
spec:
  priorityClassName: production
  containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
"""


Ask = Callable[..., Any]
"""Calls a method of the client, and returns what the server in another process answers."""


@contextmanager
def session(*source: str) -> Iterator[Ask]:
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "api.cli", "mcp", *source], cwd=ROOT)

    @asynccontextmanager
    async def connected() -> AsyncIterator[ClientSession]:
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            yield client

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected()) as client:
        yield lambda method, *arguments: portal.call(getattr(client, method), *arguments)


@pytest.fixture(scope="module")
def about_the_example() -> Iterator[Ask]:
    with session("--dump", str(EXAMPLE_CLUSTER)) as ask:
        yield ask


def answer(ask: Ask, tool: str, **arguments: Any) -> tuple[bool, Any]:
    result = ask("call_tool", tool, arguments)
    text = result.content[0].text
    return bool(result.is_error), text if result.is_error else json.loads(text)


def test_the_tools_are_the_questions(about_the_example: Ask) -> None:
    tools = about_the_example("list_tools").tools

    assert [tool.name for tool in tools] == ["why", "victims", "whatif", "who_preempted", "fits", "plan"]
    assert all(tool.description for tool in tools)
    assert [*tools[2].input_schema["properties"]] == ["create", "drain_nodes", "remove_nodes", "include_pending"]


def test_why_is_what_the_command_prints(about_the_example: Ask) -> None:
    printed = json.loads(reprieve("why", "shop/web-6", "--dump", str(EXAMPLE_CLUSTER), "-o", "json").stdout)
    failed, why = answer(about_the_example, "why", pod="shop/web-6")

    assert not failed
    assert why["waterfall"] == printed["waterfall"]
    assert why["summary"] == printed["summary"]


def test_victims_and_fits_take_manifests_as_text(about_the_example: Ask) -> None:
    _, victims = answer(about_the_example, "victims", manifests=POD)
    _, fits = answer(about_the_example, "fits", manifest=POD.replace('"3"', "100m"))

    assert victims["placements"][0]["pod"]["name"] == "big"
    assert victims["placements"][0]["evicts"]
    assert fits["fits"] > 0


@pytest.mark.parametrize("field", ["priorityClassName: production", "name: big"])
def test_text_that_hides_from_people_is_not_handed_on(about_the_example: Ask, field: str) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    _, reply = answer(about_the_example, "victims", manifests=POD.replace(field, field + hidden))

    assert hidden not in json.dumps(reply, ensure_ascii=False)


def test_whatif_drains(about_the_example: Ask) -> None:
    _, outcome = answer(about_the_example, "whatif", drain_nodes=["node-a1"])

    assert {eviction["node"] for eviction in outcome["evictions"]} == {"node-a1"}


def test_plan_frees_nodes() -> None:
    with session("--dump", "examples/clusters/fleet.yaml") as ask:
        failed, plan = answer(ask, "plan", free_nodes=4, of="nvidia.com/gpu")

    assert not failed
    assert (plan["fits"], len(plan["free"]), plan["resource"]) == (True, 4, "nvidia.com/gpu")


@cases(
    "tool, arguments, words",
    ("no such pod", "why", {"pod": "shop/nobody"}, "there is no pod shop/nobody"),
    ("nothing to try", "whatif", {}, "nothing to try"),
    ("nothing to plan", "plan", {}, "ask for one of them"),
    ("too many nodes", "plan", {"free_nodes": 900}, "900 nodes cannot be free: there are"),
    ("no number of nodes", "plan", {"manifests": POD, "same": "zone"}, "say how many, too"),
    ("no manifest", "victims", {"manifests": "a: ["}, "yaml"),
    ("only a service remembers", "who_preempted", {"pod": "web-6"}, "only a Reprieve service records"),
)
def test_unanswerable_tool_call_fails_with_the_reason(
    tool: str, arguments: dict[str, Any], words: str, about_the_example: Ask
) -> None:
    failed, text = answer(about_the_example, tool, **arguments)

    assert failed
    assert words in text


@pytest.mark.slow
def test_who_preempted_tool_asks_the_records_of_a_service(example: Service) -> None:
    with session("--server", f"http://127.0.0.1:{example.port}") as ask:
        failed, preemptions = answer(ask, "who_preempted", pod="shop/web-6")

    assert not failed
    assert "items" in preemptions
