"""A cluster is read from whatever kubectl prints; what cannot be read is said in one line."""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from api.settings import EXAMPLE_CLUSTER, StartUpError
from api.state_file import read_state
from tests.api.serving import TWELVE_NODES

TIME = "2026-03-01T08:00:00Z"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "creationTimestamp": TIME}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "a"}, "status": {"startTime": TIME}}
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}


def file_with(folder: Path, data: str | bytes) -> Path:
    path = folder / "state"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(json.dumps(LIST), id="JSON"),
        pytest.param(gzip.compress(json.dumps(LIST).encode()), id="packed JSON"),
        pytest.param(yaml.safe_dump(LIST), id="YAML"),
        pytest.param(yaml.safe_dump(LIST).replace(f"'{TIME}'", TIME), id="YAML with plain times"),
        pytest.param("---\n" + yaml.safe_dump_all([NODE, None, POD]), id="YAML documents"),
        pytest.param(yaml.safe_dump_all([{**LIST, "items": [NODE]}, POD]), id="YAML documents of both sorts"),
        pytest.param(
            yaml.safe_dump_all(
                [
                    {"kind": "NodeList", "items": [{"metadata": NODE["metadata"]}]},
                    {"kind": "PodList", "items": [{key: POD[key] for key in ("metadata", "spec", "status")}]},
                ]
            ),
            id="lists of one kind",
        ),
        pytest.param(json.dumps({**LIST, "items": [{"kind": "Secret", "metadata": {"name": "s"}}, NODE, POD]}), id="with other kinds"),
    ],
)
def test_all_forms_mean_the_same_cluster(tmp_path: Path, data: str | bytes) -> None:
    state = read_state(file_with(tmp_path, data))

    assert [node.name for node in state.nodes] == ["a"]
    assert state.nodes[0].metadata.creation_timestamp == TIME
    assert [(pod.name, pod.spec.node_name, pod.status.start_time) for pod in state.pods] == [("p", "a", TIME)]


def test_a_dump_of_a_real_cluster_is_read() -> None:
    state = read_state(TWELVE_NODES)

    assert (len(state.nodes), len(state.pods), len(state.pdbs), len(state.namespaces)) == (12, 69, 3, 4)


def test_the_example_has_what_scheduling_is_about() -> None:
    state = read_state(EXAMPLE_CLUSTER)

    assert len(state.nodes) == 12
    assert len({node.labels["topology.kubernetes.io/zone"] for node in state.nodes}) == 3
    assert len(state.pods) > 40
    assert len({pod.priority for pod in state.pods}) >= 4
    assert state.pdbs
    assert any(not pod.spec.node_name for pod in state.pods)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param("{", "truncated", id="half of JSON"),
        pytest.param("a: [", "expected", id="half of YAML"),
        pytest.param("[]", "expected a Kubernetes List", id="list"),
        pytest.param("just text", "expected a Kubernetes List", id="text"),
        pytest.param("{}", "no kind", id="no kind"),
        pytest.param("kind: List\nitems: 3\n", "items is not a list", id="items"),
        pytest.param("kind: List\nitems: [3]\n", "expected a Kubernetes List", id="item"),
        pytest.param("kind: Node\nmetadata: {name: [1]}\n", "objects.nodes[0]", id="field"),
        pytest.param("!!python/object/apply:os.system ['true']\n", "could not determine a constructor", id="code"),
        pytest.param("kind: Node\n" + BOMB, "excessive aliasing", id="aliases of aliases"),
        pytest.param("kind: Node\nmetadata: &m {x: *m}\n", "", id="alias of itself"),
        pytest.param("kind: Node\nx: " + "[" * 5000 + "]" * 5000, "", id="deep YAML"),
        pytest.param('{"kind":"Node","x":' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply", id="deep JSON"),
        pytest.param(b"\x1f\x8b\x08half", "gzip", id="half of gzip"),
        pytest.param(b"kind: \xff\xfe", "", id="not UTF-8"),
    ],
)
def test_what_is_no_cluster_is_said_in_one_line(tmp_path: Path, data: str | bytes, why: str) -> None:
    path = file_with(tmp_path, data)

    with pytest.raises(StartUpError) as refused:
        read_state(path)

    assert str(path) in str(refused.value)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="no such file or directory; give a cluster with --state"):
        read_state(tmp_path / "nope")
