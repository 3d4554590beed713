"""`reprieve why POD -o html`: one file to attach to an incident, and the Events that a dump may hold."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reprieve.errors import StartUpError
from tests.api.test_asking_commands import reprieve
from tests.kit.objects import node, pod, state_file
from tests.kit.storage_objects import claim, storage_class

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> & \"quotes\" 'and'\u202e\x1b[31m"


def event(kind: str, name: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "namespace": "default", "name": name}
    meta = {"name": f"{name}.1", "namespace": "default"}
    times = {"firstTimestamp": "2026-01-01T09:00:00Z", "lastTimestamp": "2026-01-01T09:40:00Z", "count": 41}
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, "reason": reason,
        "message": message, "source": {"component": "x.io/disks"}, "series": None, **times, **more,
    }  # fmt: skip


def dumped(folder: Path, *objects: dict[str, Any]) -> list[str]:
    file = folder / "cluster.json"
    state_file(file, node("a"), *objects)
    return ["--dump", str(file)]


def refused(message: str) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": "2026-01-01T09:00:00Z",
    }  # fmt: skip
    return pod("web", "99") | {"status": {"conditions": [condition]}}


class Tags(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "message", [HOSTILE, "0/1 nodes are available: 1 Insufficient cpu.", "", "]]>--></pre></body>"]
)
def test_the_file_needs_nothing_else_and_runs_nothing(tmp_path: Path, message: str) -> None:
    page = reprieve("why", "web", *dumped(tmp_path, refused(message)), "-o", "html").stdout
    tags = Tags(page).found

    assert page.startswith("<!doctype html>")
    assert {"script", "img", "link", "iframe", "a", "base"}.isdisjoint(tag for tag, _ in tags)
    assert not [
        name for _, attributes in tags for name in attributes if name in ("src", "href", "style") or name[:2] == "on"
    ]
    assert "default-src 'none'" in str([attributes.get("content") for tag, attributes in tags if tag == "meta"])
    assert "light dark" in page
    assert not re.search("[\x1b\u202e]", page)
    assert [tag for tag, _ in tags].count("body") == 1


def test_the_file_has_the_whole_answer(tmp_path: Path) -> None:
    source = dumped(tmp_path, refused("full"))
    page = reprieve("why", "web", *source, "-o", "html").stdout
    whole = json.loads(reprieve("why", "web", *source, "-o", "json").stdout)

    assert whole["summary"] in page
    assert all(fix["text"] in page for fix in whole["fixes"])
    assert all(step["text"] in page for step in whole["story"]["steps"])


def test_the_file_is_about_one_pod(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="shows one pod"):
        reprieve("why", "deploy/web", *dumped(tmp_path, pod("web")), "-o", "html")


def test_a_pod_that_does_not_exist_yet_has_a_file_without_a_story(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pod("new", "99")))

    page = reprieve("why", "-f", str(tmp_path / "pod.json"), *dumped(tmp_path), "-o", "html").stdout

    assert "default/new" in page
    assert "What happened" not in page


def test_events_of_a_dump_tell_how_often_a_pod_was_refused(tmp_path: Path) -> None:
    events = event("Pod", "web", "FailedScheduling", "full"), event("Pod", "other", "FailedScheduling", "no")
    output = reprieve("why", "web", *dumped(tmp_path, refused("full"), *events)).stdout

    assert "and was refused 41 times." in output
    assert "(x41 since " in output
    assert "x.io/disks: full" in output


def test_events_of_a_dump_have_the_last_word_of_a_provisioner(tmp_path: Path) -> None:
    objects = [
        pod("web", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]),
        claim("data", storage_class="std"),
        storage_class("std", provisioner="x.io/disks"),
        event("PersistentVolumeClaim", "data", "ProvisioningFailed", "no quota"),
    ]
    note = (
        "last Event of the claim data, at 2026-01-01T09:40:00Z, 41 times since 2026-01-01T09:00:00Z: "
        "ProvisioningFailed: no quota"
    )

    assert f"note: {note}" in reprieve("why", "web", *dumped(tmp_path, *objects)).stdout
    output = reprieve("why", "web", *dumped(tmp_path, *objects[:-1])).stdout
    assert "no Events of the claim data are known: the file has none" in output


@pytest.mark.parametrize("about", [None, "x", {"kind": "Pod"}, {"kind": 1, "namespace": [], "name": {}}])
def test_events_about_nothing_are_left_aside(tmp_path: Path, about: object) -> None:
    strange = event("Pod", "web", "FailedScheduling", "full") | {"involvedObject": about}

    assert "41 times" not in reprieve("why", "web", *dumped(tmp_path, refused("full"), strange)).stdout


def test_events_that_cannot_be_read_are_said_so(tmp_path: Path) -> None:
    broken = event("Pod", "web", "FailedScheduling", "full", count="many")

    output = reprieve("why", "web", *dumped(tmp_path, refused("full"), broken)).stdout

    assert "its Events are not known: the file has some that cannot be read" in output
