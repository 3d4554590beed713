"""Kubernetes objects as YAML or JSON, one or several, as they are pasted into the page, and pods as it shows them."""

from collections.abc import Iterable
from typing import Any

import msgspec
import yaml

from extender.values import limits
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml, split_documents
from extender.values.objects.pod import Pod
from extender.values.reasons import InputError


class ManifestTextError(InputError):
    """The text holds no Kubernetes objects. The message is one line for people."""


def objects_in(text: str) -> list[dict[str, Any]]:
    """Returns the objects, those of Lists one by one. Raises ManifestTextError for what is too long or no object."""
    if len(text) > limits.MANIFEST_CHARACTERS:
        raise ManifestTextError(f"the text is too long: {limits.MANIFEST_CHARACTERS:,} characters are read")
    documents = split_documents(text)
    objects: list[dict[str, Any]] = []
    for number, document in enumerate(documents, start=1):
        try:
            value = plain(read_yaml(document).value)
        except YamlError as exc:
            where = f"document {number}: " if len(documents) > 1 else ""
            raise ManifestTextError(f"{where}{exc}") from exc
        if value is not None:
            objects += _objects(value)
    return objects


def configuration_in(text: str) -> dict[str, Any] | None:
    """Returns the KubeSchedulerConfiguration in a text; None of an empty one. Raises ManifestTextError for others."""
    objects = objects_in(text)
    if not objects:
        return None
    if len(objects) > 1 or objects[0]["kind"] != "KubeSchedulerConfiguration":
        raise ManifestTextError("the configuration has to be one KubeSchedulerConfiguration")
    return objects[0]


def _objects(value: object, place: str = "every document") -> list[dict[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        instead = ", not null" if value is None else ""
        raise ManifestTextError(f"{place} has to be a Kubernetes object with apiVersion and kind{instead}")
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        where = f"of the {value['kind']}"
        return [obj for number, item in enumerate(items) for obj in _objects(item, f"items[{number}] {where}")]
    return [value]


def written(objects: Iterable[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=False, allow_unicode=True, width=10_000)


def manifest_of(pod: Pod) -> str:
    """Returns the pod as YAML, with the fields that the scheduler reads; the end of a very long one is left out."""
    text = written([{"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}])
    return text if len(text) <= limits.PAGE_MANIFEST_CHARACTERS else f"{text[: limits.PAGE_MANIFEST_CHARACTERS]}…"
