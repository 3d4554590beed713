"""Drawings: SVG elements as escaped text. No style attribute anywhere: the page's policy forbids them, and classes
follow the theme.
"""

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup, escape

from api.ui.wording import readable

Value = str | int | float | None

_NAMES: Final = {"class_": "class", "view_box": "viewBox", "preserve": "preserveAspectRatio"}


def element(name: str, *content: Markup | str, **attributes: Value) -> Markup:
    """Returns one element. Attributes that are None are left out; `_` in their names stands for `-`; numbers keep one
    decimal.
    """
    written = "".join(
        f' {_NAMES.get(key) or key.replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(part if isinstance(part, Markup) else readable(part) for part in content)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")  # noqa: S704 - both parts are escaped


def drawing(width: float, height: float, *content: Markup, label: str, class_: str = "", role: str = "img") -> Markup:
    """Returns a whole picture; `label` describes it to screen readers. A picture with links in it has the role of a
    group.
    """
    return element(
        "svg", *content, class_=class_ or None, view_box=f"0 0 {_number(width)} "
            f"{_number(height)}", width=width, height=height,
        role=role, aria_label=label,
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
