"""Dumps as people have them: a folder, a text with logs in it, what is no part of a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from extender.values.reasons import InputError
from reprieve import Cluster, ReprieveError
from reprieve.sources.manifest_files import read_manifests

Object = dict[str, Any]

NODE: Object = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
POD: Object = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
MONITOR: Object = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "m"}}


def listed(kind: str, *items: Object) -> str:
    return json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": [*items]}, indent=4)


def cluster_info_dump(folder: Path, encoding: str = "utf-8") -> Path:
    """Writes what `kubectl cluster-info dump --output-directory` writes."""
    (folder / "shop" / "web").mkdir(parents=True)
    for name, text in {
        "nodes.json": listed("Node", NODE),
        "shop/events.json": listed("Event", {"metadata": {"name": "e", "namespace": "shop"}}),
        "shop/pods.json": listed("Pod", POD),
        "shop/web/logs.txt": "==== START logs for container c of pod shop/web ====\n{",
    }.items():
        (folder / name).write_text(text, encoding=encoding)
    return folder


def pods_of(source: Path) -> dict[str, str]:
    with Cluster.load(source).trial() as trial:
        return {placed.pod: placed.node for placed in trial.schedule()}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_folder_of_cluster_info_dump_is_a_cluster(tmp_path: Path, encoding: str) -> None:
    assert pods_of(cluster_info_dump(tmp_path, encoding)) == {"shop/web": "n"}


def test_a_file_of_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = cluster_info_dump(tmp_path)
    (folder / "shop" / "pods.json").write_text(listed("Pod", POD)[:-20])

    with pytest.raises(ReprieveError, match=r"shop/pods\.json: "):
        Cluster.load(folder)


@pytest.mark.parametrize("files", [{}, {"readme.txt": "pods"}], ids=["nothing", "other files"])
def test_a_folder_without_a_cluster_is_told_how_to_make_one(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(ReprieveError, match=r"a folder without a file that ends in \.json.*kubectl get nodes"):
        Cluster.load(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_text_of_cluster_info_dump_is_a_cluster(tmp_path: Path, encoding: str) -> None:
    log = (
        "==== START logs for container c of pod shop/web ====\n{}\n==== END logs for container c of pod shop/web ====\n"
    )
    text = "\n".join((listed("Node", NODE), listed("Event"), listed("Pod", POD), log, listed("Service"), log, log))
    (dump := tmp_path / "dump.txt").write_text(text, encoding=encoding, newline="\r\n")

    assert pods_of(dump) == {"shop/web": "n"}


@pytest.mark.parametrize("source", ["file", "objects"])
def test_custom_resources_of_a_cluster_are_named_in_its_notes(tmp_path: Path, source: str) -> None:
    objects = [{"apiVersion": "v1", "kind": "Node", **NODE}, {"apiVersion": "v1", "kind": "Pod", **POD}, MONITOR]
    (dump := tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))

    loaded = Cluster.load(dump if source == "file" else objects)

    (note,) = loaded.notes
    assert note.endswith("left out, since no pods are known to come of them: ServiceMonitor (monitoring.coreos.com/v1)")


def test_a_trial_names_what_it_leaves_out_of_its_last_call(tmp_path: Path) -> None:
    (chart := tmp_path / "chart.yaml").write_text(
        f"{json.dumps({'apiVersion': 'v1', 'kind': 'Pod', **POD})}\n---\n{json.dumps(MONITOR)}"
    )

    with Cluster.load([{"apiVersion": "v1", "kind": "Node", **NODE}]).trial() as trial:
        placed, notes = trial.schedule(chart), trial.notes
        trial.evict("shop/web")

        assert [placement.node for placement in placed] == ["n"]
        assert "ServiceMonitor (monitoring.coreos.com/v1)" in notes[0]
        assert trial.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_manifests_may_begin_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    (file := tmp_path / "pod.yaml").write_text("kind: Pod\napiVersion: v1\nmetadata: {name: zoë}\n", encoding=encoding)

    assert read_manifests(str(file))[0]["metadata"] == {"name": "zoë"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: List\nitems: [{kind: Pod}, null]", r"items\[1\] of the List has to be .* not null"),
        ("kind: PodList\nitems: [~]", r"items\[0\] of the PodList has to be .* not null"),
        ("kind: List\nitems: [{kind: List, items: [{kind: Pod}, 7]}]", r"items\[1\] of the List has to be"),
    ],
)
def test_an_item_of_a_manifest_that_is_no_object_is_told_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    (file := tmp_path / "pods.yaml").write_text(text)

    with pytest.raises(InputError, match=why):
        read_manifests(str(file))
