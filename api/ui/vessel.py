"""A node as a vessel: its pods stand in it from the bottom up, highest priority first, and what is left above them is free room.

Preemption takes from the top; so the picture says who would go before anybody asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from markupsafe import Markup

from api.ui.priorities import Priorities
from api.ui.svg import drawing, element
from api.ui.wording import cores, plural, pod_words, priority_words, share, size
from extender.answers.cluster_map import NodeOnMap, PodOnNode

Resource = Literal["cpu", "memory"]
Mark = Literal["leaves", "arrives", "stays"]

MARK_WORDS: Final[Mapping[Mark, str]] = {"leaves": "has to go", "arrives": "comes here", "stays": ""}

_LETTER: Final = 6.2
"""Width of a letter of a label, about."""
_TICK: Final = 4.0
_MAX_TICKS: Final = 24


@final
@dataclass(frozen=True, slots=True)
class Strip:
    """A rectangle for one amount: its place among the amounts, and x, y, width, height."""

    index: int
    x: float
    y: float
    width: float
    height: float


def amount(pod: PodOnNode, by: Resource) -> int:
    """What the pod takes."""
    return pod.cpu if by == "cpu" else pod.memory


def room(node: NodeOnMap, by: Resource) -> tuple[int, int]:
    """What the node promised and what it has."""
    return (node.requested_cpu, node.cpu) if by == "cpu" else (node.requested_memory, node.memory)


def quantity(count: int, by: Resource) -> str:
    """An amount with its unit."""
    return f"{cores(count)} cpu" if by == "cpu" else size(count)


def strips(amounts: Sequence[int], width: float, height: float, whole: int) -> list[Strip]:
    """Rectangles with areas in proportion to the amounts, in their order, in rows from the bottom up; `whole` fills the box.

    A row is closed when one more rectangle would make its worst proportion worse. What is zero gets none.
    """
    if whole <= 0:
        return []
    unit = width * height / whole
    placed: list[Strip] = []
    row: list[int] = []
    bottom = height

    def close() -> None:
        nonlocal bottom
        total = sum(amounts[index] for index in row)
        tall, x = total * unit / width, 0.0
        for index in row:
            wide = width * amounts[index] / total
            placed.append(Strip(index, x, bottom - tall, wide, tall))
            x += wide
        bottom -= tall

    def worst(indices: list[int]) -> float:
        total = sum(amounts[index] for index in indices)
        tall = total * unit / width
        return max(max(wide / tall, tall / wide) for wide in (width * amounts[index] / total for index in indices))

    for index, each in enumerate(amounts):
        if each <= 0:
            continue
        if row and worst([*row, index]) > worst(row):
            close()
            row = []
        row.append(index)
    if row:
        close()
    return placed


def vessel(
    node: NodeOnMap,
    by: Resource,
    priorities: Priorities,
    *,
    width: float,
    height: float,
    marks: Mapping[str, Mark] | None = None,
    label: str = "",
) -> Markup:
    """The node with its pods.

    Arguments:
        height: of its whole allocatable; what is promised beyond that stands above the rim.
        marks: by UID, what happens to pods.
    """
    marks = marks or {}
    promised, whole = room(node, by)
    amounts = [amount(pod, by) for pod in node.pods]
    over = max(0.0, (sum(amounts) - whole) / whole) if whole > 0 else 0.0
    above = min(over, 1.0) * height
    parts = [element("rect", class_="vessel", x=0.5, y=above + 0.5, width=width - 1, height=height - 1, rx=3)]
    standing = strips(amounts, width - 4, height + above - 4, max(whole, sum(amounts)))
    for strip in standing:
        pod = node.pods[strip.index]
        parts.append(_pod(pod, strip, priorities, marks.get(pod.pod.uid, "stays")))
    without = [pod for pod in node.pods if amount(pod, by) <= 0]
    ticks = [
        element(
            "rect", class_=f"pod {priorities.css(pod.pod.priority)}", x=2 + place * (_TICK + 2), y=height + above + 3,
            width=_TICK, height=_TICK, data_tip=pod_tip(pod, marks.get(pod.pod.uid, "stays")),
        )
        for place, pod in enumerate(without[: min(_MAX_TICKS, int(width // (_TICK + 2)))])
    ]  # fmt: skip
    said = label or f"{node.name}: {share(promised, whole)} % of {quantity(whole, by)} promised to {plural(len(node.pods), 'pod')}"
    return drawing(width, height + above + 2 * _TICK + 2, *parts, *ticks, label=said, class_="node-drawing")


def pod_tip(pod: PodOnNode, mark: Mark = "stays") -> str:
    """What a pod says of itself when it is pointed at."""
    lines = [pod_words(pod.pod), f"priority {priority_words(pod.pod.priority)}", f"{cores(pod.cpu)} cpu · {size(pod.memory)}"]
    if pod.terminating:
        lines.append("terminating")
    if MARK_WORDS[mark]:
        lines.append(MARK_WORDS[mark])
    return "\n".join(lines)


def _pod(pod: PodOnNode, strip: Strip, priorities: Priorities, mark: Mark) -> Markup:
    place = {"x": strip.x + 2, "y": strip.y + 2, "width": strip.width, "height": strip.height}
    tone = priorities.css(pod.pod.priority)
    parts = [element("rect", class_=f"pod {tone}{' ending' * pod.terminating} {mark}", **place)]
    if mark == "leaves":
        parts.append(element("rect", class_="gone", fill="url(#hatch)", **place))
    letters = int((strip.width - 8) / _LETTER)
    if strip.height >= 14 and letters >= 4:
        name = {"leaves": "✕ ", "arrives": "★ ", "stays": ""}[mark] + (pod.pod.name or "hidden")
        shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
        parts.append(element("text", shown, class_=f"on-{tone}", x=strip.x + 6, y=strip.y + 2 + min(strip.height / 2, 12) + 3.5))
    return element("g", *parts, data_tip=pod_tip(pod, mark))
