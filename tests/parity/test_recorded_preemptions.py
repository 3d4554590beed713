"""A what-if on the dump of a real cluster names the victims that its kube-scheduler named when it asked its extenders
to preempt.
"""

import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest

from extender.answers.types import PreemptionAnswer, WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from tests.kit.service import DATA, TWELVE_NODES, items_of

Item = dict[str, Any]

CALLS = [
    call
    for call in map(json.loads, gzip.decompress((DATA / "kube-scheduler-1.36.jsonl.gz").read_bytes()).splitlines())
    if call["run"] == "twelve-nodes"
]
PREEMPTIONS = {
    call["body"]["Pod"]["metadata"]["name"]: call
    for call in CALLS
    if call["verb"] == "preempt" and call["nodeCacheCapable"]
}
KINDS = {"Node": "nodes", "Pod": "pods", "Namespace": "namespaces", "PodDisruptionBudget": "pdbs"}


def cluster_when_asked(preemptor: str) -> Cluster:
    """The cluster as the scheduler knew it at the call. The dump is of the end of the run, sorted by name; but among
    equals it mattered who came to a node first, and that follows from the order of the decisions and of the updates
    after them. Here the smaller UID stays, so that the UIDs get their place in that order in front.
    """
    decided = {call["body"]["Pod"]["metadata"]["uid"]: call["seq"] for call in CALLS if call["verb"] == "filter"}
    asked_later = {name for name, call in PREEMPTIONS.items() if call["seq"] >= PREEMPTIONS[preemptor]["seq"]}
    items = sorted(items_of(TWELVE_NODES), key=lambda item: decided.get(item["metadata"]["uid"], -1))
    objects: dict[str, list[Item]] = {field: [] for field in KINDS.values()}
    for item in items:
        name = item["metadata"]["name"]
        if item["kind"] not in KINDS or name == preemptor:
            continue
        not_promised = {"status": {**item.get("status", {}), "nominatedNodeName": ""}} if name in asked_later else {}
        objects[KINDS[item["kind"]]].append({**item, **not_promised})
    cluster = Cluster.of(ClusterState.decode(objects))
    for item in sorted(objects["pods"], key=lambda item: int(item["metadata"]["resourceVersion"])):
        pod = convert(Pod, item)
        if pod.spec.node_name:
            cluster.cache.update_pod(cluster.cache.pod(pod.uid) or pod, pod)
    came = {key: place for node in cluster.cache.dump().values() for place, key in enumerate(node.pods)}
    for item in objects["pods"]:
        metadata = item["metadata"]
        place = came.get(f"{metadata['namespace']}/{metadata['name']}", 0)
        item["metadata"] = {**metadata, "uid": f"{place:03}{metadata['uid']}"}
    return Cluster.of(ClusterState.decode(objects))


def victims_of(preemptor: str) -> PreemptionAnswer:
    pod = {"apiVersion": "v1", "kind": "Pod", **PREEMPTIONS[preemptor]["body"]["Pod"]}
    answer = what_if(cluster_when_asked(preemptor), Configuration(), WhatIfRequest(create=[pod]), TrialRegistry)
    preemption = answer.placements[0].preemption
    assert preemption is not None
    assert answer.placements[0].node == preemption.node
    return preemption


@pytest.mark.parametrize("preemptor", PREEMPTIONS)
def test_every_candidate_has_the_victims_that_the_real_scheduler_named(preemptor: str) -> None:
    proposed: Mapping[str, Any] = PREEMPTIONS[preemptor]["body"]["NodeNameToMetaVictims"]

    answer = victims_of(preemptor)

    answered = {
        candidate.node: ([victim.pod.uid[3:] for victim in candidate.victims], candidate.num_pdb_violations)
        for candidate in answer.candidates
    }
    assert answered == {
        node: ([pod["UID"] for pod in node_victims["Pods"]], node_victims["NumPDBViolations"])
        for node, node_victims in proposed.items()
    }
    assert answer.num_candidates == len(proposed)


@pytest.mark.parametrize("preemptor", PREEMPTIONS)
def test_chosen_node_is_that_of_the_real_scheduler(preemptor: str) -> None:
    (promised,) = (
        item["status"]["nominatedNodeName"] for item in items_of(TWELVE_NODES) if item["metadata"]["name"] == preemptor
    )

    assert victims_of(preemptor).node == promised


def test_losing_candidates_have_a_reason_and_violated_budgets() -> None:
    lost = {candidate.node: candidate for candidate in victims_of("urgent-ssd").candidates[1:]}

    assert {node: candidate.why_not for node, candidate in lost.items()} == {
        "worker-01": "its most important victim has priority 500, on worker-05 it is 100",
        "worker-03": "1 PodDisruptionBudget violation, none on worker-05",
        "worker-07": "1 PodDisruptionBudget violation, none on worker-05",
    }
    assert [victim.violates for victim in lost["worker-03"].victims] == [("pdb-2",), (), (), (), ()]
