"""A cluster is read from whatever kubectl prints, and written so that kubectl and we read it back."""

import codecs
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from api.settings.settings import EXAMPLE_CLUSTER
from extender.rules.api_resources import Object
from extender.rules.state_file import StateFileError, load_state, save_state
from extender.values import limits
from extender.values.golang.json import plain
from extender.values.golang.yaml import read_yaml
from tests.kit.examples import examples
from tests.kit.service import TWELVE_NODES
from tests.kit.tables import cases

TIME = "2026-03-01T08:00:00Z"
NODE: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "creationTimestamp": TIME}}
POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "a"}}
LIST: Object = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}


def file_with(folder: Path, data: str | bytes) -> Path:
    path = folder / "state"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@cases(
    "data",
    ("JSON", json.dumps(LIST)),
    ("packed JSON", gzip.compress(json.dumps(LIST).encode())),
    ("JSON documents", json.dumps(NODE) + "\n" + json.dumps(POD)),
    ("JSON documents with lines between them", json.dumps(NODE) + "\n---\n" + json.dumps(POD)),
    ("YAML", yaml.safe_dump(LIST)),
    ("YAML with plain times", yaml.safe_dump(LIST).replace(f"'{TIME}'", TIME)),
    ("YAML documents", "---\n" + yaml.safe_dump_all([NODE, None, POD])),
    ("YAML documents of both sorts", yaml.safe_dump_all([{**LIST, "items": [NODE]}, POD])),
    (
        "lists of one kind with items without one",
        yaml.safe_dump_all(
            [
                {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": NODE["metadata"]}]},
                {"apiVersion": "v1", "kind": "PodList", "items": [{key: POD[key] for key in ("metadata", "spec")}]},
            ]
        ),
    ),
    ("JSON with a byte order mark", codecs.BOM_UTF8 + json.dumps(LIST).encode()),
    ("JSON in UTF-16", json.dumps(LIST, indent=2).replace("\n", "\r\n").encode("utf-16")),
    ("JSON in UTF-16, big-endian", codecs.BOM_UTF16_BE + json.dumps(LIST).encode("utf-16-be")),
    ("YAML in UTF-32", yaml.safe_dump(LIST).encode("utf-32")),
    ("packed YAML in UTF-16", gzip.compress(yaml.safe_dump(LIST).encode("utf-16"))),
)
def test_all_forms_of_a_state_file_load_the_same_objects(tmp_path: Path, data: str | bytes) -> None:
    assert load_state(file_with(tmp_path, data)) == [NODE, POD]


LOGS = """==== START logs for container c of pod default/p ====
{"kind": "Pod"} of no list
==== START logs for container c of pod default/p ====
and ==== END logs for container d of pod default/p ====
no end of line==== END logs for container c of pod default/p ====
==== START logs for container d of pod default/p ====
==== END logs for container d of pod default/p ====
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("separator, serialize", [("", json.dumps), ("---\n", yaml.safe_dump)], ids=["JSON", "YAML"])
def test_logs_in_what_cluster_info_dump_prints_are_passed_over(
    tmp_path: Path, separator: str, serialize: Callable[[Object], str], ending: str
) -> None:
    def listed(kind: str, *items: Object) -> str:
        return serialize({"apiVersion": "v1", "kind": f"{kind}List", "metadata": {}, "items": [*items]}) + "\n"

    lists = listed("Node", NODE), listed("Event"), listed("Pod", POD) + LOGS, listed("Event"), listed("Pod") + LOGS[:80]
    text = separator.join(lists).replace("\n", ending)

    assert load_state(file_with(tmp_path, text)) == [NODE, POD]


@cases(
    "document, why",
    (
        "null",
        {**LIST, "items": [NODE, None]},
        "expected a Kubernetes List or object, not null, at items[1] of the List;",
    ),
    (
        "null in a list of one kind",
        {"apiVersion": "v1", "kind": "PodList", "items": [POD, POD, None]},
        "not null, at items[2] of the PodList;",
    ),
    ("nested", {**LIST, "items": [NODE, LIST | {"items": [None]}]}, "at items[0] of the List at items[1] of the List;"),
    ("7", {**LIST, "items": [7]}, "expected a Kubernetes List or object at items[0] of the List;"),
    ("no kind", {**LIST, "items": [POD, {}]}, "an object has no kind at items[1] of the List;"),
)
def test_what_is_no_object_is_told_with_its_place(tmp_path: Path, document: Object, why: str) -> None:
    with pytest.raises(StateFileError) as refused:
        load_state(file_with(tmp_path, json.dumps(document)))

    assert why in str(refused.value)


@pytest.mark.parametrize("path", [TWELVE_NODES, EXAMPLE_CLUSTER], ids=lambda path: Path(path).name)
@pytest.mark.parametrize("name", ["state.json", "state.yaml", "state.yml.gz", "state.json.gz"])
def test_a_cluster_that_was_saved_is_read_back(tmp_path: Path, path: Path, name: str) -> None:
    objects = load_state(path)

    save_state(tmp_path / name, objects)

    assert load_state(tmp_path / name) == [without_the_servers_marks(obj) for obj in objects]
    assert [file.name for file in tmp_path.iterdir()] == [name]


def without_the_servers_marks(obj: Object) -> Object:
    """kubectl refuses to create an object that has a resourceVersion, and to apply one that has managedFields."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("resourceVersion", "managedFields", "selfLink")
    }
    return {**obj, "metadata": metadata}


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="ascii", categories=["L", "N"])), inner, max_size=3)
    ),
    max_leaves=8,
)
texts = st.sampled_from(
    [
        "1e3",
        "0o17",
        "0x1F",
        "1_000",
        "12:30:45",
        "y",
        "No",
        "on",
        "~",
        "",
        "null",
        ".inf",
        "2026-03-01",
        TIME,
        "0777",
        "=",
        "<<",
        "a: b",
        "#x",
    ]
)


@settings(max_examples=examples(60))
@given(value=values | texts, key=texts)
def test_go_reads_in_the_yaml_what_was_meant(tmp_path_factory: pytest.TempPathFactory, value: Any, key: str) -> None:
    """
    Texts that look like numbers, truth values or times stay texts: `1e3` is a number to kubectl, though not to PyYAML.
    """
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {key: value}}}
    path = tmp_path_factory.mktemp("state") / "state.yaml"

    save_state(path, [obj])

    assert plain(read_yaml(path.read_text(encoding="utf-8")).value) == obj
    assert load_state(path) == [obj]


def test_a_file_is_there_as_a_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    save_state(path, [NODE])

    with pytest.raises(TypeError):
        save_state(path, [POD, {"metadata": {"name": object()}}])

    assert load_state(path) == [NODE]
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_state_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """It has the specs of all pods, with the values of their environment; an earlier version let everyone read it."""
    path = tmp_path / "state.json"
    path.touch(0o644)
    save_state(path, [NODE])

    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("piece", "times", "message"),
    [
        pytest.param(b" " * 2**20, 800, "more than 67108864 bytes", id="blanks", marks=pytest.mark.slow),
        pytest.param(
            b"[[],1]" + b" " * 64 + b"," * 2**20,
            50,
            f"more than {limits.STATE_FILE_VALUES} values",
            id="JSON of tiny values",
        ),
        pytest.param(b"- [" + b"x," * 2**19 + b"x]\n", 10, "more than 100000 nodes", id="YAML of tiny values"),
    ],
)
def test_a_small_file_that_holds_far_too_much_is_refused_in_one_line(
    tmp_path: Path, piece: bytes, times: int, message: str
) -> None:
    """In a process that may not have more addresses, with smaller limits: reading on would end it."""
    path = tmp_path / "state"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(times):
            file.write(piece)
    program = (
        "import resource, sys; from pathlib import Path; from extender.rules import state_file; from extender.values import limits\n"
        "limits.STATE_FILE_BYTES, limits.STATE_FILE_YAML_VALUES = 2**26, 10**5\n"
        "resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20, -1))\n"
        "try: state_file.load_state(Path(sys.argv[1]))\n"
        "except state_file.StateFileError as exc: print(exc)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)

    assert message in done.stdout
    assert done.stdout.count("\n") == 1


def test_compressed_file_that_holds_a_hundred_times_its_size_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "state.json.gz"
    path.write_bytes(gzip.compress(b" " * (65 * 2**20)))

    with pytest.raises(StateFileError, match=rf"more than {64 * 2**20} bytes$"):
        load_state(path)


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    """Not as much as the largest one."""
    path = tmp_path / "state.json.gz"
    save_state(path, [NODE])
    program = (
        "import resource, sys; from pathlib import Path; from extender.rules import state_file; from extender.values import limits\n"
        "resource.setrlimit(resource.RLIMIT_AS, (700 * 2**20, -1))\n"
        "assert len(state_file.load_state(Path(sys.argv[1]))) == 1"
    )

    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def test_a_name_that_says_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the name has to end in \.json, \.yaml or \.yml"):
        save_state(tmp_path / "state.txt", [NODE])


@cases(
    "data, message",
    ("a list", "[1, 2]", "expected a Kubernetes List or object"),
    ("no kind", '{"items": []}', "an object has no kind"),
    ("items that are none", '{"kind": "List", "items": {}}', "List: items is not a list"),
    ("half of it", '{"kind": "List", "items": [', "Input data was truncated"),
    ("broken YAML", "a: [", "did not find expected node content"),
    ("half a gzip file", gzip.compress(b"{}")[:-4], "not a complete gzip file"),
    ("no text at all", b"\xff\xfe\x00kind", ""),
    ("too deep", "kind: " + "[" * 3000, ""),
)
def test_unreadable_state_file_is_refused_in_one_line(tmp_path: Path, data: str | bytes, message: str) -> None:
    path = file_with(tmp_path, data)

    with pytest.raises(StateFileError) as raised:
        load_state(path)

    text = str(raised.value)
    assert text.startswith(f"state file {path}: ")
    assert message in text
    assert "\n" not in text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match=r"state file .*ghost: no such file or directory"):
        load_state(tmp_path / "ghost")


def test_aliases_of_aliases_are_refused(tmp_path: Path) -> None:
    levels = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10))

    with pytest.raises(StateFileError, match="excessive aliasing"):
        load_state(file_with(tmp_path, f"kind: Pod\na0: &a0 [x]\n{levels}"))
