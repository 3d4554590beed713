"""The plugin of `examples/shared-gpu`, and nodes and pods as it knows them."""

import importlib.util
import sys
from pathlib import Path
from typing import Any, Final

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "shared-gpu"
ARGUMENTS: Final = {"NodeResourcesFit": {"ignoredResourceGroups": ["gpu.example.com"]}, "SharedGpu": {"place": "pack"}}
SIZE: Final = 16384
"""MiB of a card."""


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("shared_gpu", EXAMPLE / "shared_gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


shared_gpu: Final = _loaded()


def with_cards(node: dict[str, Any], number: int, size: int = SIZE) -> dict[str, Any]:
    """The node with so many equal cards."""
    node["metadata"]["annotations"] = {shared_gpu.CARDS: ",".join([f"{size}/100"] * number)}
    return node


def limits(memory: int = 0, cores: int = 0, cards: int = 0) -> dict[str, Any]:
    """The resources of a container that asks for parts of cards, or for whole cards."""
    numbers = {shared_gpu.MEMORY: memory, shared_gpu.CORES: cores, shared_gpu.CARDS: cards}
    amounts = {name: str(amount) for name, amount in numbers.items() if amount}
    return {"resources": {"requests": {"cpu": "10m", **amounts}, "limits": amounts}}


def cards_of(pod: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """Card -> (memory, cores) that the pod was promised."""
    text = pod["metadata"].get("annotations", {}).get(shared_gpu.CARD, "")
    parts = [entry.replace("/", "=").split("=") for entry in text.split(",") if entry]
    return {int(card): (int(memory), int(cores)) for card, memory, cores in parts}
