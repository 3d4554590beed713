"""YAML 1.1 as sigs.k8s.io/yaml turns it into JSON: the same scalars, the same merges, members sorted by name.

The text is read event by event, so that neither deep nesting nor aliases of aliases cost more than the limits below.

Upstream: sigs.k8s.io/yaml, yaml.go, YAMLToJSON and YAMLToJSONStrict; go.yaml.in/yaml v2, decode.go and resolve.go.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import yaml

from extender.values import limits
from extender.values.golang.json import Json
from extender.values.golang.quoting import quoted
from extender.values.golang.yaml_scalars import BINARY, MERGE, STRING, Scalar, ScalarError, member_name, resolve

_Loader: Final[type] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SEPARATOR: Final = re.compile(r"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_MERGE_NEEDS_MAPS: Final = "map merge requires map or sequence of maps as the value"


class YamlError(ValueError):
    """The text is no YAML that can be turned into JSON. The message begins with `yaml: `."""

    def __init__(self, message: str) -> None:
        super().__init__(f"yaml: {message}")


class YamlDocument(msgspec.Struct, frozen=True):
    """The contents of a YAML text: the first document, or None.

    `duplicates` has a line for every member that was there before; the last one counts. `has_more` tells whether
    another document with something in it follows.
    """

    value: Json = None
    duplicates: tuple[str, ...] = ()
    has_more: bool = False


_Key = tuple[type, Scalar]


@dataclass(slots=True)
class _Node:
    """A YAML node, as far as it has been read.

    `key` is what a scalar is as a key of a map; `pending` is the key whose value comes next, and whether it is a merge;
    `size` is the number of nodes, this one and all below it.
    """

    line: int
    anchor: str | None = None
    value: Json = None
    key: _Key | None = None
    is_merge: bool = False
    items: "list[_Node] | None" = None
    members: "dict[_Key, _Node] | None" = None
    pending: tuple[_Key, bool] | None = None
    size: int = 1
    duplicates: list[str] = field(default_factory=list)
    finished: bool = False


def split_documents(text: str) -> list[str]:
    """Returns the documents of a text, each as a text (util/yaml, decoder.go, splitYAMLDocument)."""
    return _SEPARATOR.split(text)


def read_yaml(text: str, *, max_nodes: int = limits.CONFIGURATION_YAML_NODES) -> YamlDocument:
    """Returns the first document. Raises YamlError: no YAML, beyond the limits, or nothing that JSON can say."""
    try:
        return _read(iter(yaml.parse(text, Loader=_Loader)), max_nodes)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = f"line {mark.line + 1}: " if mark is not None and mark.line else ""
        raise YamlError(f"{where}{exc.problem or 'unknown problem parsing YAML content'}") from exc
    except yaml.YAMLError as exc:
        raise YamlError(str(getattr(exc, "reason", exc))) from exc
    except ScalarError as exc:
        raise YamlError(str(exc)) from exc


def _read(events: Iterator[yaml.Event], max_nodes: int) -> YamlDocument:
    first: YamlDocument | None = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if first is None:
                root = _read_node(events, max_nodes)
                first = YamlDocument(root.value, tuple(root.duplicates))
            elif _holds_something(events):
                return YamlDocument(first.value, first.duplicates, has_more=True)
    return first or YamlDocument()


def _holds_something(events: Iterator[yaml.Event]) -> bool:
    event = next(events)
    return not (isinstance(event, yaml.ScalarEvent) and not event.value and event.implicit[0])


def _read_node(events: Iterator[yaml.Event], max_nodes: int) -> _Node:
    # The collections that are open, the outermost first.
    open_nodes: list[_Node] = []
    anchors: dict[str, _Node] = {}
    count = repeated = 0
    for event in events:
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            node = _close(open_nodes.pop())
        elif isinstance(event, yaml.AliasEvent):
            node = _alias(event, anchors)
            count, repeated = count + node.size, repeated + node.size - 1
            _check_aliasing(count, repeated)
        else:
            node = _open(event)
            count += 1
            if node.anchor is not None:
                anchors[node.anchor] = node
        if count > max_nodes:
            raise YamlError(
                "document contains excessive aliasing" if repeated else f"document has more than {max_nodes} nodes"
            )
        if not node.finished:
            open_nodes.append(node)
            if len(open_nodes) > limits.CONFIGURATION_DEPTH:
                raise YamlError(f"line {node.line}: exceeded max depth of {limits.CONFIGURATION_DEPTH}")
        elif open_nodes:
            _add(open_nodes[-1], node)
        else:
            return node
    raise YamlError("document ends too early")


def _open(event: yaml.Event) -> _Node:
    line = event.start_mark.line + 1 if event.start_mark is not None else 0
    if isinstance(event, yaml.MappingStartEvent):
        return _Node(line, event.anchor, members={})
    if isinstance(event, yaml.SequenceStartEvent):
        return _Node(line, event.anchor, items=[])
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, line)
    raise YamlError("document ends too early")


def _scalar(event: yaml.ScalarEvent, line: int) -> _Node:
    is_plain = bool(event.implicit[0])
    tag, value = (STRING, event.value) if not event.tag and not is_plain else resolve(event.tag or "", event.value)
    if tag == BINARY:
        try:
            value = base64.b64decode(event.value, validate=True).decode("utf-8", "replace")
        except binascii.Error as exc:
            raise YamlError("!!binary value contains invalid base64 data") from exc
    return _Node(
        line,
        event.anchor,
        value=value,
        key=(type(value), value),
        is_merge=event.value == "<<" and (is_plain or event.tag == MERGE),
        finished=True,
    )


def _alias(event: yaml.AliasEvent, anchors: dict[str, _Node]) -> _Node:
    target = anchors.get(event.anchor or "")
    if target is None:
        raise YamlError(f"unknown anchor '{event.anchor}' referenced")
    if not target.finished:
        raise YamlError(f"anchor '{event.anchor}' value contains itself")
    return replace(target, anchor=None, is_merge=False, size=target.size + 1)


def _check_aliasing(count: int, repeated: int) -> None:
    """Refuses the aliases that upstream refuses for documents of the size allowed here (allowedAliasRatio)."""
    if repeated > 100 and count > 1000 and repeated / count > 0.99:
        raise YamlError("document contains excessive aliasing")


def _close(node: _Node) -> _Node:
    if node.items is not None:
        node.value = [item.value for item in node.items]
    elif node.members is not None:
        members = {member_name(key): member.value for (_, key), member in node.members.items()}
        node.value = dict(sorted(members.items()))
    node.finished = True
    return node


def _add(parent: _Node, node: _Node) -> None:
    parent.size += node.size
    if parent.items is not None:
        parent.items.append(node)
        parent.duplicates += node.duplicates
    elif parent.members is not None and parent.pending is None:
        if node.key is None:
            raise YamlError("invalid map key: neither a list nor a map can be one")
        parent.pending = (node.key, node.is_merge)
    elif parent.members is not None and parent.pending is not None:
        (key, is_merge), parent.pending = parent.pending, None
        if is_merge:
            _merge(parent.members, node, parent.duplicates)
        else:
            parent.duplicates += node.duplicates
            _set(parent.members, key, node, parent.duplicates)


def _merge(members: dict[_Key, _Node], node: _Node, duplicates: list[str]) -> None:
    # Backwards, because earlier maps take precedence.
    sources = [node] if node.items is None else node.items[::-1]
    for source in sources:
        if source.members is None:
            raise YamlError(_MERGE_NEEDS_MAPS)
        duplicates += source.duplicates
        for key, member in source.members.items():
            _set(members, key, member, duplicates)


def _set(members: dict[_Key, _Node], key: _Key, node: _Node, duplicates: list[str]) -> None:
    if key in members:
        name = quoted(key[1]) if isinstance(key[1], str) else str(key[1])
        duplicates.append(f"line {node.line}: key {name} already set in map")
    members[key] = node
