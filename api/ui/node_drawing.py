"""Drawings as SVG: elements as escaped text, and nodes. There is no style attribute anywhere, which the page's policy
forbids; classes follow the theme.

In the drawing of a node, pods are stacked from the bottom up, the highest priority first, and what is left above them
is free. Preemption evicts from the top, so that a drawing shows which pods would be evicted first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from markupsafe import Markup, escape

from api.ui.frame import node_href, pod_href
from api.ui.resources import Priorities, Resource, amount, quantity, resource_words, usage
from api.ui.wording import cores, plural, pod_words, readable, share, size
from extender.answers.overviews import NodeOnMap, PodOnNode

Mark = Literal["leaves", "arrives", "stays"]

_MARK_WORDS: Final[Mapping[Mark, str]] = {"leaves": "evicted", "arrives": "placed here", "stays": ""}

_LETTER: Final = 7.0
"""The approximate width of a letter of a label."""
_TICK: Final = 4.0
_MAX_TICKS: Final = 24


@final
@dataclass(frozen=True, slots=True)
class Strip:
    """The rectangle of one amount; `index` is its place among the amounts."""

    index: int
    x: float
    y: float
    width: float
    height: float


def strips(amounts: Sequence[int], width: float, height: float, whole: int) -> list[Strip]:
    """Returns rectangles with areas in proportion to the amounts, in their order, in rows from the bottom up; `whole`
    fills the box.

    A row is closed when one more rectangle would make its worst aspect ratio worse (a strip treemap). Zero amounts have
    no rectangle.
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

    for index, pod_amount in enumerate(amounts):
        if pod_amount <= 0:
            continue
        if row and worst([*row, index]) > worst(row):
            close()
            row = []
        row.append(index)
    if row:
        close()
    return placed


def node_drawing(
    node: NodeOnMap,
    resource: Resource,
    priorities: Priorities,
    *,
    width: float,
    height: float,
    marks: Mapping[str, Mark] | None = None,
    label: str = "",
) -> Markup:
    """Returns the node with its pods.

    Arguments:
        height: the height of what is allocatable; what is requested beyond that is drawn above it.
        marks: UID -> what happens to the pod.
    """
    marks = marks or {}
    requested, whole = usage(node, resource)
    amounts = [amount(pod, resource) for pod in node.pods]
    over = max(0.0, (sum(amounts) - whole) / whole) if whole > 0 else 0.0
    above = min(over, 1.0) * height
    box = element("rect", class_="node-box", x=0.5, y=above + 0.5, width=width - 1, height=height - 1, rx=3)
    parts = [element("a", box, href=node_href(node.name), tabindex=-1, aria_label=node.name)]
    standing = strips(amounts, width - 4, height + above - 4, max(whole, sum(amounts)))
    for strip in standing:
        pod = node.pods[strip.index]
        parts.append(_pod(pod, strip, priorities, marks.get(pod.pod.uid, "stays")))
    pods_without_area = [pod for pod in node.pods if amount(pod, resource) <= 0]
    ticks = [
        _linked(
            pod, priorities, marks.get(pod.pod.uid, "stays"),
            element(
                "rect", class_=f"pod {priorities.css(pod.pod.priority)}", x=2 + place * (_TICK + 2),
                y=height + above + 3, width=_TICK, height=_TICK,
            ),
        )
        for place, pod in enumerate(pods_without_area[: min(_MAX_TICKS, int(width // (_TICK + 2)))])
    ]  # fmt: skip
    text = (
        label
        or f"{node.name}: {share(requested, whole)} % of {quantity(whole, resource)} requested by "
        f"{plural(len(node.pods), 'pod')}"
    )
    return drawing(
        width, height + above + 2 * _TICK + 2, *parts, *ticks, label=text, class_="node-drawing", role="group"
    )


def pod_tip(pod: PodOnNode, priorities: Priorities, mark: Mark = "stays") -> str:
    requests = [f"{quantity(count, name)} {resource_words(name)}" for name, count in pod.requests.items()]
    lines = (
        pod_words(pod.pod),
        f"priority {priorities.words(pod.pod.priority)}",
        f"{cores(pod.cpu)} cpu · {size(pod.memory)}",
        *requests,
        "terminating" * pod.terminating,
        _MARK_WORDS[mark],
    )
    return "\n".join(filter(None, lines))


def _pod(pod: PodOnNode, strip: Strip, priorities: Priorities, mark: Mark) -> Markup:
    place = {"x": strip.x + 2, "y": strip.y + 2, "width": strip.width, "height": strip.height}
    tone = priorities.css(pod.pod.priority)
    parts = [element("rect", class_=f"pod {tone}{' ending' * pod.terminating} {mark}", **place)]
    if mark == "leaves":
        parts.append(element("rect", class_="gone", fill="url(#hatch)", **place))
    letters = int((strip.width - 8) / _LETTER)
    if strip.height >= 14 and letters >= 4:
        name = {"leaves": "✕ ", "arrives": "★ ", "stays": ""}[mark] + (pod.pod.name or "hidden")
        label = name if len(name) <= letters else f"{name[: letters - 1]}…"
        parts.append(
            element("text", label, class_=f"on-{tone}", x=strip.x + 6, y=strip.y + 2 + min(strip.height / 2, 12) + 3.5)
        )
    return _linked(pod, priorities, mark, *parts)


def _linked(pod: PodOnNode, priorities: Priorities, mark: Mark, *parts: Markup) -> Markup:
    """Returns the parts as a link to the pod's page, if there is one to be seen. Tab does not stop at each."""
    tip, href = pod_tip(pod, priorities, mark), "" if mark == "arrives" else pod_href(pod.pod)
    if not href:
        return element("g", *parts, data_tip=tip)
    return element("a", *parts, href=href, tabindex=-1, aria_label=pod_words(pod.pod), data_tip=tip)


Value = str | int | float | None

_NAMES: Final = {"class_": "class", "view_box": "viewBox", "preserve": "preserveAspectRatio"}


def element(name: str, *content: Markup | str, **attributes: Value) -> Markup:
    """Returns an element. Attributes of None are left out; `_` in names stands for `-`; numbers keep one decimal."""
    attribute_text = "".join(
        f' {_NAMES.get(key) or key.replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(part if isinstance(part, Markup) else readable(part) for part in content)
    return Markup(f"<{name}{attribute_text}>{inside}</{name}>" if inside else f"<{name}{attribute_text}/>")  # noqa: S704 - both parts are escaped


def drawing(width: float, height: float, *content: Markup, label: str, class_: str = "", role: str = "img") -> Markup:
    """Returns a picture; `label` describes it to screen readers. One with links in it has the role of a group."""
    return element(
        "svg", *content, class_=class_ or None, view_box=f"0 0 {_number(width)} {_number(height)}", width=width,
        height=height, role=role, aria_label=label,
    )  # fmt: skip


def boxes(places: Iterable[tuple[float, float, float, float]]) -> str:
    """Returns the path of many rectangles (x, y, width, height): one element, however many there are."""
    return "".join(f"M{_number(x)} {_number(y)}h{_number(w)}v{_number(h)}h{_number(-w)}z" for x, y, w, h in places)


def _text(value: Value) -> str:
    return (
        _number(value)
        if isinstance(value, (int, float))
        else str(escape(value if isinstance(value, Markup) else readable(str(value))))
    )


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
