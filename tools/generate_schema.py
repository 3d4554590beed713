"""Writes the table of API types that the embedded cluster reads: `python -m tools.generate_schema TYPES.json.gz` (or
`make schema`).

TYPES is an object with the published Go types by name, such as `core/v1.Toleration`. A type is either `{"alias":
"string"}`, a named type that is no struct, or `{"fields": [...]}`, with the fields in Go's order. A field has

- `go`, `json`: its names; `json` is empty for an embedded struct and `-` for a field that is not encoded;
- `type`: as Go spells it within its package, such as `*metav1.LabelSelector`;
- `omitempty`, `omitzero`, `optional`: true or absent;
- `protobuf`: its number;
- `patchStrategy`, `patchMergeKey`, `listType`, `listMapKeys`, `mapType`: as its tags and markers say;
- `default`: the text of its `+default`.

The table holds the structs that the served kinds lead to, and of each field what the embedded cluster uses: types are
spelt with their package, embedded structs are dissolved, and `presence` says what Go's encoder writes of an empty
value.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from extender.rules.api_resources import RESOURCES
from extender.rules.schema.api_types import TABLE, type_name

Json = dict[str, Any]

UNSERVED: Final = ("meta/v1.DeleteOptions", "meta/v1.Status")
"""Types of requests and answers."""

ATOMIC_STRUCTS: Final = frozenset({
    "core/v1.ConfigMapKeySelector", "core/v1.FileKeySelector", "core/v1.LocalObjectReference", "core/v1.NodeSelector",
    "core/v1.NodeSelectorTerm", "core/v1.ObjectFieldSelector", "core/v1.ObjectReference",
    "core/v1.ResourceFieldSelector",
    "core/v1.SecretKeySelector", "core/v1.SecretReference", "core/v1.TopologySelectorTerm",
    "core/v1.TypedLocalObjectReference",
    "meta/v1.LabelSelector", "meta/v1.OwnerReference",
})  # fmt: skip
"""Structs with the marker `+structType=atomic`: they are owned and applied as one value. TYPES has no markers of
structs.
"""

REQUIRED: Final = frozenset(
    {
        ("authentication/v1.TokenReviewSpec", "token"),
        ("core/v1.ContainerRestartRule", "action"),
        ("core/v1.ContainerRestartRuleOnExitCodes", "operator"),
        ("core/v1.ImageVolumeStatus", "imageRef"),
        ("core/v1.PodCertificateProjection", "keyType"),
        ("core/v1.PodCertificateProjection", "signerName"),
        ("resource/v1.CapacityRequestPolicyRange", "min"),
        ("resource/v1.CounterSet", "counters"),
        ("resource/v1.DeviceCounterConsumption", "counters"),
    }
)
"""Fields with `omitempty` that are required all the same, by the marker `+required`, which TYPES does not have either.
"""

CONSTANTS: Final = {"ref(AzureDataDiskCachingReadWrite)": "ReadWrite", "ref(AzureSharedBlobDisk)": "Shared"}
"""The values of defaults that name a constant of Go."""

IMPORTS: Final = {"apiv1": "core/v1", "corev1": "core/v1", "v1": "core/v1", "metav1": "meta/v1"}
"""Import name in the packages of the API -> package, where the two differ."""

OWN_ENCODING: Final = frozenset({"resource.Quantity", "intstr.IntOrString", "meta/v1.Duration"})
"""Structs that encode themselves, as a text or a number."""

NULL_WHEN_ZERO: Final = frozenset({"meta/v1.Time", "meta/v1.MicroTime", "runtime.RawExtension", "meta/v1.FieldsV1"})
"""Structs that encode themselves, and their zero value as null."""

WORDS_OF_GO: Final = frozenset({"map", "string", "bool", "byte", "int32", "int64", "uint32", "float64"})

_NAMED: Final = re.compile(r"[\w/]+\.\w+")


def table(published: Mapping[str, Json], names: Iterable[str]) -> Json:
    """Returns the aliases and the structs that these types lead to, by name.

    Raises:
        KeyError: a type is not among the published ones.
    """
    aliases: dict[str, str] = {}
    structs: dict[str, Json] = {}
    waiting = sorted(names, reverse=True)
    while waiting:
        name = waiting.pop()
        if name in aliases or name in structs or name in OWN_ENCODING or name in NULL_WHEN_ZERO:
            continue
        type_ = {"alias": "string"} if name.startswith("types.") else published[name]
        if "alias" in type_:
            aliases[name] = _resolved(type_["alias"], name)
            types = [aliases[name]]
        else:
            fields = list(_fields(published, name))
            structs[name] = ({"atomic": True} if name in ATOMIC_STRUCTS else {}) | {"fields": fields}
            types = [field["type"] for field in fields]
        waiting += [name for type_text in types for name in _NAMED.findall(type_text)]
    return {"aliases": dict(sorted(aliases.items())), "structs": dict(sorted(structs.items()))}


def _fields(published: Mapping[str, Json], struct: str, way: tuple[int, ...] | None = ()) -> Iterator[Json]:
    """The fields of a struct. Those of an embedded struct stand in its place.

    Arguments:
        way: the numbers of the embedded structs that lead here in protobuf; None if one of them is not encoded there.
    """
    for field in published[struct]["fields"]:
        numbers = (*way, field["protobuf"]) if way is not None and "protobuf" in field else None
        go_type = _resolved(field["type"], struct)
        if field["json"] == "":
            yield from _fields(published, go_type, numbers)
        elif field["json"] != "-":
            yield _field(published, struct, field, go_type, numbers)


def _field(
    published: Mapping[str, Json], struct: str, field: Json, go_type: str, numbers: tuple[int, ...] | None
) -> Json:
    is_optional = field.get("optional") or field.get("omitempty")
    facts = {
        "name": field["json"],
        "type": go_type.removeprefix("*"),
        "protobuf": numbers,
        "presence": _presence(published, field, go_type),
        "required": not is_optional or (struct, field["json"]) in REQUIRED,
        "listType": field.get("listType"),
        "listKeys": field.get("listMapKeys"),
        "mapType": field.get("mapType"),
        "patchStrategy": field.get("patchStrategy"),
        "patchKey": field.get("patchMergeKey"),
    }
    facts = {name: fact for name, fact in facts.items() if fact}
    if "default" in field:
        facts["default"] = CONSTANTS.get(field["default"]) or json.loads(field["default"])
    return facts


def _presence(published: Mapping[str, Json], field: Json, go_type: str) -> str | None:
    """Whether an empty value is written; None if it is left out, as most are.

    Upstream: Go, encoding/json, isEmptyValue; the MarshalJSON methods of apimachinery.
    """
    omitempty, omitzero = field.get("omitempty", False), field.get("omitzero", False)
    if go_type.startswith("*"):
        return "keep" if omitempty else "null"
    if go_type in NULL_WHEN_ZERO:
        return None if omitzero else "null"
    if go_type in OWN_ENCODING or "fields" in published.get(go_type, ()):
        return "zero"
    if omitempty:
        return None
    underlying = published[go_type]["alias"] if go_type in published else go_type
    return "null" if underlying.startswith(("[]", "map[")) else "zero"


def _resolved(go_type: str, owner: str) -> str:
    """A type, as the package of `owner` spells it, with every name in full."""
    package = owner.rpartition(".")[0]

    def full(match: re.Match[str]) -> str:
        imported, _, name = match[0].rpartition(".")
        if imported:
            return f"{IMPORTS.get(imported, imported)}.{name}"
        return name if name in WORDS_OF_GO else f"{package}.{name}"

    return re.sub(r"(\w+\.)?\w+", full, go_type)


def text(table: Json) -> str:
    """Returns the table as JSON, with one field a line."""
    aliases = [f'    "{name}": "{target}"' for name, target in table["aliases"].items()]
    structs = []
    for name, struct in table["structs"].items():
        atomic = '"atomic": true, ' if "atomic" in struct else ""
        fields = ",\n".join(f"      {json.dumps(field)}" for field in struct["fields"])
        structs.append(
            f'    {json.dumps(name)}: {{{atomic}"fields": [\n{fields}\n    ]}}'
            if fields
            else f'    {json.dumps(name)}: {{"fields": []}}'
        )
    return '{\n  "aliases": {\n' + ",\n".join(aliases) + '\n  },\n  "structs": {\n' + ",\n".join(structs) + "\n  }\n}\n"


def served() -> set[str]:
    """Returns the names of the types that the table must have."""
    return {*UNSERVED, *(type_name(*kind) for resource in RESOURCES if resource.is_typed for kind in resource.kinds)}


def read(types: Path) -> Mapping[str, Json]:
    """Returns the published types of a file, which may be compressed."""
    content = types.read_bytes()
    published: Mapping[str, Json] = json.loads(gzip.decompress(content) if types.suffix == ".gz" else content)
    return published


def main() -> None:
    """Writes the table into the package."""
    parser = argparse.ArgumentParser(description="Write the table of API types that the embedded cluster reads.")
    parser.add_argument("types", type=Path, help="the published types, as JSON or gzipped JSON")
    TABLE.write_text(text(table(read(parser.parse_args().types), served())))


if __name__ == "__main__":
    main()
