"""Workloads that are written again although they have pods: fewer of them, or others, as far as their controllers
get.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from extender.answers.types import WhatIf
from extender.engine.cache.cluster import Cluster
from extender.testing import make_node
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.pod import Pod, PodSpec, PodStatus
from tests.extender.answers.what_if.test_what_if import ask, places
from tests.kit import objects
from tests.kit.cluster import cluster_of


def workload(
    replicas: int, cpu: int | str = 1, kind: str = "Deployment", pod_spec: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    return objects.workload(kind, "web", objects.pod("web", cpu, **(pod_spec or {})), replicas=replicas, **spec)


def pod(name: str, on: str, cpu: int | str = 1, kind: str = "ReplicaSet", **metadata: Any) -> Pod:
    """One that the workload has made before; a Deployment's is known by its labels alone."""
    about = {
        "uid": name,
        "labels": {"app": "web", "pod-template-hash": "6b5f"},
        "ownerReferences": [objects.owner(kind, "web-6b5f" if kind == "ReplicaSet" else "web", uid="w")],
    }
    manifest = objects.pod(name, cpu, on=on)
    return convert(Pod, {**manifest, "metadata": {"name": name, **about, **metadata}, "status": {"phase": "Running"}})


def cluster(cpus: Sequence[int], *pods: Pod) -> Cluster:
    nodes = [make_node(f"n{place}").capacity(cpu=cpu, memory="8Gi", pods=110) for place, cpu in enumerate(cpus, 1)]
    return cluster_of(*nodes, pods=pods)


def removals(answer: WhatIf) -> list[tuple[str, str]]:
    return [(eviction.victim.pod.name, eviction.why) for eviction in answer.evictions]


def test_fewer_replicas_are_pods_that_go() -> None:
    answer = ask(cluster([4], pod("web-a", "n1")), workload(0))

    assert removals(answer) == [("web-a", "scaled down")]
    assert not any(eviction.returns for eviction in answer.evictions)
    assert (answer.summary, answer.placements) == ("default/web-a would be deleted, since fewer are wanted.", ())


def test_pods_are_removed_in_the_order_of_the_controller() -> None:
    """
    A pod without a node, then one that is not ready, then a cheap one, then one of a crowded node, then the youngest.
    """
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}

    def web_pod(name: str, on: str, day: int = 1, **annotations: str) -> Pod:
        base = pod(name, on, creationTimestamp=f"2026-01-0{day}T00:00:00Z", annotations=annotations)
        return replaced(base, status=base.status if name == "unready" else convert(PodStatus, ready))

    cost = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    crowd = web_pod("old", "n1"), web_pod("young", "n1", 2)
    about = cluster(
        [4, 4, 4],
        *crowd,
        web_pod("alone", "n3"),
        web_pod("cheap", "n2", 1, **cost),
        web_pod("unready", "n2"),
        web_pod("nowhere", ""),
    )

    order = ["nowhere", "unready", "cheap", "young", "old", "alone"]
    for replicas in range(6):
        assert [name for name, _ in removals(ask(about, workload(replicas)))] == order[: 6 - replicas]


def test_a_stateful_set_loses_its_highest_ordinals() -> None:
    pods = [pod(f"web-{number}", "n1", kind="StatefulSet") for number in range(3)]

    answer = ask(cluster([4], *pods), workload(1, kind="StatefulSet"))
    assert removals(answer) == [("web-2", "scaled down"), ("web-1", "scaled down")]


def test_a_job_that_is_suspended_loses_its_pods() -> None:
    job = objects.workload("Job", "web", objects.pod("web", restartPolicy="Never"), suspend=True)

    assert removals(ask(cluster([4], pod("web-a", "n1", kind="Job")), job)) == [("web-a", "scaled down")]


def test_room_of_pods_that_go_is_taken_by_others() -> None:
    other = objects.pod("other", 2)

    answer = ask(cluster([2], pod("web-a", "n1"), pod("web-b", "n1")), workload(0), other)

    assert places(answer) == {"other": "n1"}
    assert answer.summary == "default/other would go to n1, and 2 pods would be deleted, since fewer are wanted."


def test_a_number_that_is_not_written_stays_as_it_is() -> None:
    deployment = workload(1)
    del deployment["spec"]["replicas"]

    assert ask(cluster([4], pod("web-a", "n1"), pod("web-b", "n1")), deployment).summary == "Nothing would change."


def test_unchanged_template_changes_nothing() -> None:
    about = cluster([4], pod("web-a", "n1", "1000m"))

    assert ask(about, workload(1)).summary == "Nothing would change."


def test_pods_of_another_template_are_replaced_step_by_step() -> None:
    """A surge of one: a new pod, then an old one less, and so on, with no more room than that takes."""
    about = cluster([3], pod("web-a", "n1"), pod("web-b", "n1"))

    answer = ask(about, workload(2, pod_spec={"priority": 0, "tolerations": [{"key": "a", "operator": "Exists"}]}))

    assert places(answer) == {"web-1": "n1", "web-2": "n1"}
    assert [why for _, why in removals(answer)] == ["replaced", "replaced"]
    assert answer.summary == "Both pods would be scheduled, and 2 pods would be replaced by pods of the new template."
    assert answer.notes == ("Deployment default/web: 2 of its 2 pods are not of this template (toleration a)",)


def test_another_disk_is_another_template() -> None:
    def disk(name: str) -> dict[str, Any]:
        return {"volumes": [{"name": "data", "gcePersistentDisk": {"pdName": name}}]}

    old_pod = pod("web-a", "n1")
    about = cluster([4], replaced(old_pod, spec=replaced(old_pod.spec, volumes=convert(PodSpec, disk("old")).volumes)))

    assert ask(about, workload(1, pod_spec=disk("old"))).summary == "Nothing would change."
    assert ask(about, workload(1, pod_spec=disk("new"))).notes == (
        "Deployment default/web: its pod is not of this template (volume data)",
    )


def test_rollout_without_room_stops_and_the_summary_counts_the_old_pods() -> None:
    """Scaled and changed at once: all three are made at once, one finds no place, and so the old one never goes."""
    answer = ask(cluster([4, 4], pod("web-a", "n1")), workload(3, 3))

    assert sorted(places(answer).values()) == ["", "n1", "n2"]
    assert removals(answer) == []
    assert answer.summary == (
        "2 of 3 pods would be scheduled. The rollout of Deployment default/web would stop there: 1 pod of the old "
        "template would stay."
    )
    assert answer.notes == ("Deployment default/web: its pod is not of this template (request cpu of main)",)


def test_rollout_deletes_first_when_max_unavailable_permits_it() -> None:
    rolling = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}

    answer = ask(cluster([2], pod("web-a", "n1"), pod("web-b", "n1")), workload(2, "900m", strategy=rolling))

    assert sorted(places(answer).values()) == ["n1", "n1"]
    assert len(answer.evictions) == 2


def test_recreate_lets_all_go_before_any_comes() -> None:
    answer = ask(cluster([2], pod("web-a", "n1"), pod("web-b", "n1")), workload(1, 2, strategy={"type": "Recreate"}))

    assert places(answer) == {"web-1": "n1"}
    assert len(answer.evictions) == 2


def test_a_stateful_set_replaces_from_the_last_on_under_the_same_names() -> None:
    """The second one finds no room, and the first is left as it was."""
    pods = [pod(f"web-{number}", f"n{number + 1}", kind="StatefulSet") for number in range(3)]

    answer = ask(cluster([4, 1, 4], *pods), workload(3, 4, kind="StatefulSet", podManagementPolicy="Parallel"))

    assert removals(answer) == [("web-2", "replaced"), ("web-1", "replaced")]
    assert places(answer) == {"web-2": "n3", "web-1": ""}
    assert "StatefulSet default/web would stop there: 1 pod of the old template would stay." in answer.summary


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (workload(1, 2, kind="ReplicaSet"), "a ReplicaSet does not change pods that it has"),
        (workload(1, 2, paused=True), "it is paused"),
    ],
)
def test_note_gives_the_reason_why_a_controller_does_not_replace_pods(changed: dict[str, Any], why: str) -> None:
    kind = changed["kind"]
    old_pod = pod("web-a", "n1")
    if kind == "ReplicaSet":
        old_pod = pod("web-a", "n1", ownerReferences=[objects.owner(name="web", uid="w")])

    answer = ask(cluster([4], old_pod), changed)

    assert answer.summary == "Nothing would change."
    assert answer.notes[-1] == f"{kind} default/web: these pods stay as they are: {why}"


def test_additions_by_admission_are_no_change_of_the_template() -> None:
    old_pod = pod("web-a", "n1")
    sidecar = {"name": "proxy", "image": "registry.example/proxy:1"}
    volume = {"name": "kube-api-access-x", "projected": {}}
    spec = {"nodeName": "n1", "containers": [*objects.pod("web")["spec"]["containers"], sidecar], "volumes": [volume]}
    about = cluster([4], replaced(old_pod, spec=convert(PodSpec, spec)))

    answer = ask(about, workload(1))

    assert answer.summary == "Nothing would change."
    assert answer.notes == (
        "Deployment default/web: what its pods have in addition to the template counts as added on admission (container "
        "proxy, image proxy)",
    )
