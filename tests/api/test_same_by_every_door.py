"""A pod is in the same state, with the same words and counts, by the command (table, wide, json), the page and /v1."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from extender.answers.phrases import its_scheduler
from extender.answers.types import Explanation
from extender.values.objects.decoding import convert
from tests.api.test_asking_commands import reprieve, server
from tests.api.test_questions import get
from tests.kit.objects import node, pod
from tests.kit.service import Service, serving
from tests.kit.storage_objects import claim
from tests.kit.waiting import until

MESSAGE = "0/2 nodes are available: 2 Insufficient cpu."
REFUSED = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": MESSAGE,
    "lastTransitionTime": "2026-01-01T09:00:00Z",
}  # fmt: skip
CREATED = "2026-01-01T08:00:00Z"
SELECTED = {"volume.kubernetes.io/selected-node": "a"}
DATA: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
SOFT = {"key": "starting", "effect": "NoSchedule"}

# Name of the pod -> its state, a part of what is said of it, and of the reason in groups; None if it does not wait.
SAID = {
    "placed": ("Scheduled", "It runs on a", None),
    "waits-for-data": (
        "Waiting",
        "its provisioner has to provision for a",
        "waits for a volume that its provisioner has",
    ),
    "refused": ("Pending", "default-scheduler refused it at 2026-01-01T09:00:00Z", "Insufficient cpu"),
    "nominated": ("Nominated", "default-scheduler has nominated it to a", "it would fit now"),
    "tainted": ("Nominated", "waits until the taint starting:NoSchedule there goes", "waits until the taint starting"),
    "elsewhere": ("Pending", "waits for the scheduler volcano, not seen here", "waits for the scheduler volcano"),
    "ending": ("Pending", "goes once the finalizer x.io/kept is removed", "is being deleted"),
    "gated": ("Gated", "held back by the scheduling gate", "gated by SchedulingGates"),
}


def a_pod(name: str, status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any) -> Any:
    manifest = pod(name, **spec)
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "uid": name, "creationTimestamp": CREATED, **(metadata or {})},
        "status": status or {},
    }


def cluster() -> dict[str, Any]:
    tainted, data = node("b", cpu="32"), claim("data", storage_class="slow")
    tainted["spec"] = {"taints": [SOFT]}
    data["metadata"] |= {"annotations": SELECTED, "creationTimestamp": CREATED}
    objects = [
        node("a", cpu="32"),
        tainted,
        data,
        a_pod("placed", {"phase": "Running"}, nodeName="a"),
        a_pod("waits-for-data", {"nominatedNodeName": "a"}, **DATA),
        a_pod("refused", {"conditions": [REFUSED]}),
        a_pod("nominated", {"nominatedNodeName": "a"}),
        a_pod("tainted", {"nominatedNodeName": "b"}),
        a_pod("elsewhere", schedulerName="volcano"),
        a_pod("ending", {}, {"deletionTimestamp": "2026-01-01T10:00:00Z", "finalizers": ["x.io/kept"]}),
        a_pod("gated", schedulingGates=[{"name": "x.io/wait"}]),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": objects}


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service beside another scheduler."""
    file = tmp_path_factory.mktemp("doors") / "cluster.json"
    file.write_text(json.dumps(cluster()))
    with serving(state=file, schedule=False) as service:
        yield service


def words_on(service: Service, path: str) -> str:
    text = re.sub(r"<[^>]*>", "", service.client.get(path).raise_for_status().text)
    return " ".join(unescape(text).split())


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", SAID)
def test_a_pod_is_told_alike_by_every_door(beside: Service, name: str) -> None:
    state, words, reason = SAID[name]
    body = get(beside, f"/v1/explain/default/{name}")
    answer = convert(Explanation, body)
    summary = its_scheduler(answer) or answer.summary
    printed = json.loads(reprieve("why", f"default/{name}", *server(beside), "-o", "json").stdout)
    doors = [
        reprieve("why", f"default/{name}", *server(beside)).stdout,
        reprieve("why", f"default/{name}", *server(beside), "-o", "wide").stdout,
        reprieve("why", f"default/{name}", *server(beside), "-o", "html").stdout,
        words_on(beside, f"/ui/pods/default/{name}"),
    ]

    assert body["state"] == printed["state"] == state
    assert (body["standing"], body["story"]) == (printed["standing"], printed["story"])
    assert words in summary
    assert all(summary in plain(unescape(door)) and state in door for door in doors)
    assert all(step["text"] in plain(unescape(door)) for step in body["story"]["steps"][1:] for door in doors)
    waiting = {place["pod"]["name"]: place for place in get(beside, "/v1/queue")["items"]}
    assert (name in waiting) == (reason is not None)
    if reason is not None:
        assert waiting[name]["standing"]["text"] == body["standing"]["text"]
        assert any(
            reason in group["reason"]
            and name in [first["name"] for one in group["workloads"] for first in one["first"]]
            for group in get(beside, "/v1/pending")["reasons"]
        )


def test_every_door_counts_the_same_pods_that_wait(beside: Service) -> None:
    number = sum(reason is not None for _, _, reason in SAID.values())

    assert get(beside, "/v1/pending")["pods"] == len(get(beside, "/v1/queue")["items"]) == number
    assert reprieve("pending", *server(beside)).stdout.startswith(f"{number} pending pods")
    assert reprieve("pending", *server(beside), "-o", "wide").stdout.startswith(f"{number} pending pods")
    assert json.loads(reprieve("pending", *server(beside), "-o", "json").stdout)["pods"] == number
    assert len(reprieve("pending", *server(beside), "-o", "name").stdout.split()) == number
    assert f"{number} pending pods" in words_on(beside, "/")
    for _, _, reason in SAID.values():
        for door in (reprieve("pending", *server(beside)).stdout, words_on(beside, "/"), words_on(beside, "/ui/pods")):
            assert reason is None or reason in plain(door)


def test_a_file_tells_of_a_pod_what_the_service_tells(beside: Service, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster()))
    for name in SAID:
        served = json.loads(reprieve("why", f"default/{name}", *server(beside), "-o", "json").stdout)
        read = json.loads(reprieve("why", f"default/{name}", "--dump", str(file), "-o", "json").stdout)

        assert (read["state"], read["summary"]) == (served["state"], served["summary"])
        assert read["standing"] == served["standing"]


def test_a_pod_that_is_gone_is_told_alike_by_every_door(dump: Path) -> None:
    with serving(state=dump) as service:
        until(lambda: get(service, "/v1/preemptions")["items"])
        until(lambda: get(service, "/v1/preemptions")["items"][0]["outcome"] == "told")
        (preemption,) = get(service, "/v1/preemptions")["items"]
        (victim,) = (entry["pod"] for entry in preemption["victims"])
        key = f"{victim['namespace']}/{victim['name']}"
        body = get(service, f"/v1/explain/{key}")
        doors = [reprieve("why", key, *server(service), *form).stdout for form in ((), ("-o", "wide"), ("-o", "html"))]
        page = words_on(service, f"/ui/pods/{key}")
        items = get(service, "/v1/find", q=victim["name"])["items"]
        listed = words_on(service, f"/ui/find?q={victim['name']}")

        (step,) = (step for step in body["story"]["steps"] if step["what"] == "evicted")
        assert (body["state"], step["preemption"]) == ("Finished", preemption)
        assert step["text"] == f"it was evicted from {preemption['node']} for shop/urgent (priority 1000)"
        assert all(step["text"] in plain(unescape(door)) and body["summary"] in plain(unescape(door)) for door in doors)
        assert step["text"] in page and body["summary"] in page
        spared = [candidate["whyNot"] for candidate in preemption["candidates"] if candidate["whyNot"]]
        assert all(why in plain(unescape(door)) for why in spared for door in (*doors, page))
        assert [(item["name"], item["isGone"]) for item in items] == [(victim["name"], True)]
        assert f"{victim['name']} {victim['namespace']} gone" in listed
        assert json.loads(reprieve("why", key, *server(service), "-o", "json").stdout)["story"] == body["story"]
        for place in filter(lambda item: item["standing"], get(service, "/v1/queue")["items"]):
            why = get(service, f"/v1/explain/{place['pod']['namespace']}/{place['pod']['name']}")
            assert place["standing"]["text"] == why["standing"]["text"]
