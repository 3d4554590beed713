"""Labels and label selectors as texts.

Upstream: apimachinery/pkg/labels/labels.go, selector.go; pkg/apis/meta/v1/helpers.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

NONE: Final = "<none>"

_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def format_labels(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, or `<none>`."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or NONE


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """As `selector_text`, but `<none>` for one that says nothing."""
    return selector_text(selector) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """`a=b,c in (d,e),!f`: the requirements in the order of their keys; empty for one that says nothing."""
    if not selector:
        return ""
    requirements = [(name, f"{name}={value}") for name, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        requirements += [(each["key"], _requirement(each["key"], each["operator"], each.get("values") or ()))]
    return ",".join(text for _, text in sorted(requirements, key=lambda each: each[0]))


def _requirement(key: str, operator: str, values: Sequence[str]) -> str:
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(values))})"
    return key if operator == "Exists" else f"!{key}"
