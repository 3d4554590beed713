"""What is told of a plugin that raises."""

import asyncio
import inspect
from pathlib import Path

import pytest

from extender.engine import framework as fwk
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.plugin_calls import PluginError, call_plugin, call_plugin_async
from extender.values.config.plugin_args import NodeResourcesFitArgs

HERE = "/".join(Path(__file__).parts[-2:])


def gpus(free: dict[str, int]) -> int:
    return free["gpu"]


def line_of(function: object) -> int:
    """The line of its return statement."""
    lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    return first + len(lines) - 1


@fwk.node_filter
def enough(pod: fwk.Pod, node: fwk.NodeInfo) -> str | None:
    return "too few" if gpus({}) < 1 else None


async def reads_later() -> None:
    await asyncio.sleep(0)
    gpus({})


def test_exception_names_the_plugin_the_file_and_the_line() -> None:
    with pytest.raises(PluginError) as caught:
        call_plugin(None, "enough", "Filter", enough().filter, fwk.CycleState(), fwk.Pod(), None)  # type: ignore[arg-type]

    place = f"(KeyError, {HERE}, line {line_of(gpus)})"
    assert str(caught.value) == f"running \"enough\" filter plugin: 'gpu' {place}"


async def test_exception_of_a_call_that_is_awaited_names_them_too() -> None:
    with pytest.raises(PluginError) as caught:
        await call_plugin_async(None, "Slow", "PreBind", reads_later)

    place = f"(KeyError, {HERE}, line {line_of(gpus)})"
    assert str(caught.value) == f"running PreBind plugin \"Slow\": 'gpu' {place}"


def test_exception_in_a_library_names_the_line_that_called_it(tmp_path: Path) -> None:
    def reads(path: Path) -> str:
        return path.read_text()

    with pytest.raises(PluginError) as caught:
        call_plugin(None, "Reads", "Filter", reads, tmp_path / "no")

    assert str(caught.value).endswith(f"(FileNotFoundError, {HERE}, line {line_of(reads)})")


def test_error_of_a_plugin_in_the_tree_has_the_words_of_upstream_alone() -> None:
    plugin = NodeResourcesFit(NodeResourcesFitArgs())

    with pytest.raises(PluginError) as caught:
        call_plugin(None, "NodeResourcesFit", "Filter", plugin.filter, fwk.CycleState(), fwk.Pod(), None)  # type: ignore[arg-type]

    assert str(caught.value).startswith('running "NodeResourcesFit" filter plugin: ')
    assert ".py" not in str(caught.value)
