"""Whatever somebody writes is taken in or refused in words; nothing of it ends in an error of ours."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from extender.answers.types import QuestionError, WhatIfRequest
from extender.answers.what_if.manifests import ManifestError
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_node
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from tests.kit.objects import priority_class

AMOUNTS = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
CONTAINER = {"name": "c", "image": "i", "resources": AMOUNTS, "ports": [{"containerPort": 80, "hostPort": 80}]}
TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POD_SPEC = {
    "containers": [CONTAINER],
    "restartPolicy": "Always",
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "topologySpreadConstraints": [SPREAD],
    "volumes": [
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}}}
    ],
    "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}],
    "priorityClassName": "high",
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}, "spec": POD_SPEC}
ONCE = {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"app": "web"}}


def manifest(api_version: str, kind: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "labels": {"a": "b"}}, **parts}


OBJECTS = [
    manifest("v1", "Pod", spec=POD_SPEC, status={"phase": "Pending"}),
    manifest("v1", "Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "1"}}),
    manifest("apps/v1", "Deployment", spec={"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}),
    manifest("apps/v1", "ReplicaSet", spec={"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}),
    manifest(
        "apps/v1",
        "StatefulSet",
        spec={
            "replicas": 2,
            "selector": SELECTOR,
            "template": TEMPLATE,
            "ordinals": {"start": 1},
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": CLAIM}],
        },
    ),
    manifest("apps/v1", "DaemonSet", spec={"selector": SELECTOR, "template": TEMPLATE}),
    manifest("batch/v1", "Job", spec={"parallelism": 2, "completions": 3, "template": ONCE}),
    manifest("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}),
    manifest("v1", "ReplicationController", spec={"replicas": 1, "selector": {"app": "web"}, "template": TEMPLATE}),
    manifest(
        "policy/v1",
        "PodDisruptionBudget",
        spec={"minAvailable": "50%", "selector": SELECTOR},
        status={"disruptionsAllowed": 1},
    ),
    manifest("v1", "PersistentVolumeClaim", spec=CLAIM),
    manifest("v1", "List", items=[manifest("v1", "Pod", spec=POD_SPEC)]),
]
CLASS = priority_class("high", 10)
ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    2**40,
    1.5,
    True,
    "",
    "x",
    "50%",
    [],
    {},
    [None],
    ["x"],
    [{}],
    {"x": None},
    {"x": {"y": []}},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        yield (*path, key)
        yield from places(member, (*path, key))


def spoilt(obj: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The object with something else in one or two places."""
    variant = copy.deepcopy(obj)
    for _ in range(chance.randint(1, 2)):
        *way, last = chance.choice(list(places(variant)))
        parent: Any = variant
        for key in way:
            parent = parent[key]
        if chance.random() < 0.2:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(chance.choice(ODD))
        if not any(True for _ in places(variant)):
            break
    return variant


@pytest.mark.parametrize("obj", OBJECTS, ids=[obj["kind"] for obj in OBJECTS])
def test_valid_manifest_of_each_kind_is_taken(obj: dict[str, Any]) -> None:
    cluster = Cluster.of(ClusterState(nodes=[make_node("n").capacity(cpu=4, pods=10).obj()]))

    assert what_if(cluster, Configuration(), WhatIfRequest(create=[CLASS, obj]), TrialRegistry).is_complete


@pytest.mark.parametrize("obj", OBJECTS, ids=[obj["kind"] for obj in OBJECTS])
def test_randomly_spoilt_manifest_is_taken_or_refused_with_a_reason(obj: dict[str, Any]) -> None:
    chance = random.Random(obj["kind"])
    cluster = Cluster.of(ClusterState(nodes=[make_node("n").capacity(cpu=4, pods=10).obj()]))
    accepted = refused = 0
    for _ in range(40):
        request = WhatIfRequest(create=[CLASS, spoilt(obj, chance)])
        try:
            what_if(cluster.fork(), Configuration(), request, TrialRegistry)
        except QuestionError as exc:
            refused += 1
            assert isinstance(exc, ManifestError)
            assert str(exc)
        else:
            accepted += 1

    assert accepted
    assert refused
