"""Kubernetes objects as YAML or JSON, one or several, as they are pasted into the page."""

from typing import Any, Final

from extender.golang.json import plain
from extender.golang.yaml import YamlError, read_yaml, split_documents

MAX_TEXT: Final = 2**20
"""Characters."""


class ManifestTextError(ValueError):
    """The text holds no Kubernetes objects. The message is one line for people."""


def objects_in(text: str) -> list[dict[str, Any]]:
    """Returns the objects, those of Lists one by one.

    Raises:
        ManifestTextError: the text is too long, no YAML, or holds something that is no object.
    """
    if len(text) > MAX_TEXT:
        raise ManifestTextError(f"the text is too long: {MAX_TEXT:,} characters are read")
    documents = split_documents(text)
    found: list[dict[str, Any]] = []
    for number, document in enumerate(documents, start=1):
        try:
            value = plain(read_yaml(document).value)
        except YamlError as exc:
            where = f"document {number}: " if len(documents) > 1 else ""
            raise ManifestTextError(f"{where}{exc}") from exc
        if value is not None:
            found += _objects(value)
    return found


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise ManifestTextError("every document has to be a Kubernetes object with apiVersion and kind")
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        return [obj for item in items for obj in _objects(item)]
    return [value]
