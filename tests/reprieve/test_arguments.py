"""Whatever a caller gives that cannot be used is a ReprieveError in one line, and changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprieve import Cluster, ReprieveError, Trial
from tests.kit.storage import make_class
from tests.reprieve.test_library import as_mapping, node, pod, state_of


def in_a_list(*objects: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "items": [*objects]}


def renamed(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


NESTED: dict[str, Any] = pod("nested")
NESTED["metadata"]["labels"]["itself"] = NESTED


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (None, "None is no object"),
        (2.5, "2.5 is no object"),
        (b"kind: Node", "b'kind: Node' is no object"),
        (node("a"), "one object is no cluster: give a List"),
        ([node("a"), "b"], "'b' is no object"),
        ([node("a"), node("a", "8")], "Node a is there twice, and the two differ: an API server has one"),
        ([pod("a"), pod("b"), pod("a", "2")], "Pod default/a is there twice, and the two differ"),
        ([in_a_list(node("a")), node("a", "8")], "Node a is there twice"),
        ([pod("a"), renamed(pod("a"), "b")], "Pod of UID uid-a is there twice, and the two differ"),
        (
            [node("a"), *map(as_mapping, [make_class(), make_class(provisioner="other")])],
            "StorageClass std is there twice",
        ),
        (in_a_list(node("a"), None, kind="NodeList"), "NodeList: an item is no object"),  # type: ignore[arg-type]
        ("kind: Node\nmetadata: {name: a}\n", "a text of several lines"),
    ],
)
def test_cluster_of_something_else_is_refused(source: Any, says: str) -> None:
    with pytest.raises(ReprieveError) as refused:
        Cluster.load(source)

    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_objects_of_one_name_count_once_or_are_refused_in_files_as_in_lists(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    for equal in (
        [node("a"), node("a"), pod("x", on="a"), pod("x", on="a")],
        [node("a"), in_a_list(node("a"), pod("x", on="a")), pod("x", on="a")],
    ):
        file.write_text(json.dumps(in_a_list(*equal)))
        for source in (equal, file):
            cluster = Cluster.load(source)
            (note,) = cluster.notes
            with cluster.trial() as trial:
                assert note.endswith("what is there more than once counts once: Node a, Pod default/x")
                assert (trial.pods, list(trial.nodes().names)) == ({"default/x": "a"}, ["a"])
    for differing in ([node("a"), node("a", "8")], [pod("x"), pod("x", on="a")], [pod("x"), renamed(pod("x"), "y")]):
        file.write_text(json.dumps(in_a_list(node("n"), *differing)))
        with pytest.raises(ReprieveError, match=r"dump.json: .* is there twice, and the two differ"):
            Cluster.load(file)


def test_lists_are_taken_apart() -> None:
    """As json.load gives them, one in another, and of one kind."""
    unnamed = {key: value for key, value in node("b").items() if key not in ("kind", "apiVersion")}
    for source in (in_a_list(node("a"), in_a_list(unnamed, kind="NodeList")), [in_a_list(node("a"), node("b"))]):
        with Cluster.load(source).trial() as trial:
            assert sorted(trial.nodes().names) == ["a", "b"]


@pytest.mark.parametrize(
    ("opens", "says"),
    [
        (lambda cluster: cluster.trial(5), "5 is no configuration"),
        (lambda cluster: cluster.trial({"kind": {1, 2}}), "is a set, which no object of an API server holds"),
        (lambda cluster: cluster.trial("kind: X\nprofiles: []"), "a text of several lines"),
        (lambda cluster: cluster.trial(plugins=None), "plugin None is not a class"),
        (lambda cluster: cluster.trial(plugins=5), "plugin 5 is not a class"),
        (lambda cluster: cluster.trial(feature_gates=["GenericWorkload"]), "are no feature gates: give a dictionary"),
        (lambda cluster: cluster.trial(feature_gates={"GenericWorklod": True}), "; did you mean GenericWorkload?"),
        (lambda cluster: cluster.trial(feature_gates={"GenericWorkload": "true"}), "'true' is neither True nor False"),
        (lambda cluster: cluster.trial(feature_gates={5: True}), "5 is not a feature gate's name"),
        (lambda cluster: cluster.trial(feature_gates={"GangScheduling": True}), "disabled: [GenericWorkload]"),
        (lambda cluster: cluster.trial(feature_gates={"AllBeta": False}), "AllBeta=false cannot be had for"),
        (lambda cluster: Cluster.load([node("a")], at="90s"), "objects show one moment only"),
        (lambda cluster: Cluster.load("a.yaml", at=5), "5 is no moment"),  # type: ignore[arg-type]
        (lambda cluster: Cluster.connect(5), "5 is not a file's name"),  # type: ignore[arg-type]
        (lambda cluster: Cluster.connect(context=["a"]), "['a'] is not a context"),  # type: ignore[arg-type]
        (lambda cluster: cluster.save(None), "None is not a file's name"),
        (lambda cluster: cluster.chart(None), "None is not a file's name"),
        (lambda cluster: cluster.chart([pod("x")]), "is not a file's name"),
        (lambda cluster: cluster.chart(json.dumps(pod("x")) + "\n", namespace=5), "5 is not a namespace"),
    ],
)
def test_cluster_is_not_opened_with_something_else(opens: Callable[[Any], object], says: str) -> None:
    with pytest.raises(ReprieveError) as refused:
        opens(Cluster.load([node("a")]))

    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def empty_container() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [None]}}


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (
            lambda trial: trial.schedule("apiVersion: v1\nkind: Pod\n"),
            "Pod: an object needs an apiVersion and metadata",
        ),
        (lambda trial: trial.schedule("# nothing\n"), "the text has no objects"),
        (lambda trial: trial.schedule("a: [\n"), "yaml: line 2: did not find expected node content"),
        (lambda trial: trial.evict("a\nb"), "a text of several lines"),
        (lambda trial: trial.schedule(b"one"), "give a pod's name"),
        (lambda trial: trial.schedule([None]), "give a pod's name"),
        (lambda trial: trial.schedule({"kind": "Pod", 1: 2}), "1 is no name of a field"),
        (lambda trial: trial.schedule(pod("x") | {"status": {1, 2}}), "is a set, which no object of an API server"),
        (lambda trial: trial.schedule(NESTED), "nested too deeply"),
        (lambda trial: trial.schedule(empty_container()), "Pod"),
        (lambda trial: trial.nodes([]), "give one pod, not 0"),
        (lambda trial: trial.nodes(3.5), "give a pod's name"),
        (lambda trial: trial.fits({"kind": ["Pod"]}), "['Pod'] is not a kind of objects"),
        (lambda trial: trial.fits("waits", -1), "-1 pods cannot be counted"),
        (lambda trial: trial.fits("waits", 2.5), "2.5 pods cannot be counted"),
        (lambda trial: trial.fits("waits", "all"), "'all' pods cannot be counted"),
        (lambda trial: trial.fits(["waits", "one"]), "copies of one pod are counted, and these are 2"),
        (lambda trial: trial.evict(None), "None is not a pod's name"),
        (lambda trial: trial.evict(["one", 2]), "2 is not a pod's name"),
        (lambda trial: trial.evict(b"one"), "b'one' is not a pod's name"),
        (lambda trial: trial.drain(["a"]), "['a'] is not a node's name"),
        (lambda trial: trial.drain(None), "None is not a node's name"),
        (lambda trial: trial.add_nodes(like=None), "None is not a node's name"),
        (lambda trial: trial.add_nodes(like=pod("x")), "is no node with a name"),
        (lambda trial: trial.add_nodes(like={"kind": "Node"}), "is no node with a name"),
        (lambda trial: trial.add_nodes(like=node("a") | {"status": 5}), "status"),
        (lambda trial: trial.add_nodes(like="a", count=2.5), "2.5 nodes cannot be added"),
        (lambda trial: trial.add_nodes(like="a", count=True), "True nodes cannot be added"),
        (lambda trial: trial.undo(-1), "-1 steps cannot be taken back"),
        (lambda trial: trial.undo("all"), "'all' steps cannot be taken back"),
    ],
)
def test_mistake_in_a_call_is_said_in_one_line(asks: Callable[[Any], object], says: str) -> None:
    with Cluster.load([node("a"), pod("one", on="a"), pod("waits", "9")]).trial() as trial:
        before = state_of(trial)

        with pytest.raises(ReprieveError) as refused:
            asks(trial)

        assert says in str(refused.value)
        assert "\n" not in str(refused.value)
        assert state_of(trial) == before


def test_names_come_one_by_one_or_in_lists() -> None:
    objects = [node("a"), *(pod(name, on="a") for name in ("one", "two", "three"))]
    with Cluster.load(objects).trial() as trial:
        evicted = trial.evict("one", ["two", "default/three"])

    assert [*evicted] == ["default/one", "default/two", "default/three"]


def test_file_without_an_ending_is_a_pod_and_one_with_it_a_file(tmp_path: Path) -> None:
    trial: Trial
    with Cluster.load([node("a")]).trial() as trial:
        with pytest.raises(ReprieveError, match="pod default/web not found"):
            trial.schedule("web")
        with pytest.raises(ReprieveError, match="no such file or directory"):
            trial.schedule(tmp_path / "web")
