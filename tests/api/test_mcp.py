"""`reprieve mcp`: the questions as tools of the Model Context Protocol, asked by the protocol's own client."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from api.settings.settings import EXAMPLE_CLUSTER
from tests.api.in_process import ROOT, reprieve
from tests.api.serving import Service

POD = """
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: shop}
spec:
  priorityClassName: production
  containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
"""


def told(*source: str, ask: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    """
    What the server in another process answers a client.
    """

    async def session() -> Any:
        parameters = StdioServerParameters(command=sys.executable, args=["-m", "api.cli", "mcp", *source], cwd=ROOT)
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            return await ask(client)

    return asyncio.run(session())


def about_the_example(tool: str, **arguments: Any) -> tuple[bool, Any]:
    """
    Whether the tool failed, and its answer.
    """
    result = told("--dump", str(EXAMPLE_CLUSTER), ask=lambda client: client.call_tool(tool, arguments))
    text = result.content[0].text
    return bool(result.is_error), text if result.is_error else json.loads(text)


def test_the_tools_are_the_questions() -> None:
    tools = told("--dump", str(EXAMPLE_CLUSTER), ask=lambda client: client.list_tools()).tools

    assert [tool.name for tool in tools] == ["why", "victims", "whatif", "who_preempted", "fits", "plan"]
    assert all(tool.description for tool in tools)
    assert [*tools[2].input_schema["properties"]] == ["create", "drain_nodes", "remove_nodes", "include_pending"]


def test_why_is_what_the_command_prints() -> None:
    printed = json.loads(reprieve("why", "shop/web-6", "--dump", str(EXAMPLE_CLUSTER), "-o", "json").stdout)
    failed, answer = about_the_example("why", pod="shop/web-6")

    assert not failed
    assert answer["waterfall"] == printed["waterfall"]
    assert answer["summary"] == printed["summary"]


def test_victims_and_fits_take_manifests_as_text() -> None:
    _, victims = about_the_example("victims", manifests=POD)
    _, fits = about_the_example("fits", manifest=POD.replace('"3"', "100m"))

    assert victims["placements"][0]["pod"]["name"] == "big"
    assert victims["placements"][0]["evicts"]
    assert fits["fits"] > 0


def test_whatif_drains() -> None:
    _, answer = about_the_example("whatif", drain_nodes=["node-a1"])

    assert {eviction["node"] for eviction in answer["evictions"]} == {"node-a1"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        pytest.param("why", {"pod": "shop/nobody"}, "there is no pod shop/nobody", id="no such pod"),
        pytest.param("whatif", {}, "nothing to try", id="nothing to try"),
        pytest.param("victims", {"manifests": "a: ["}, "yaml", id="no manifest"),
        pytest.param("who_preempted", {"pod": "web-6"}, "only a Reprieve service remembers", id="nobody remembers"),
    ],
)
def test_what_cannot_be_answered_is_said_in_words(tool: str, arguments: dict[str, Any], words: str) -> None:
    failed, text = about_the_example(tool, **arguments)

    assert failed
    assert words in text


def test_a_service_remembers_who_preempted(example: Service) -> None:
    answer = told(
        "--server",
        f"http://127.0.0.1:{example.port}",
        ask=lambda client: client.call_tool("who_preempted", {"pod": "shop/web-6"}),
    )

    assert not answer.is_error
    assert "items" in json.loads(answer.content[0].text)
