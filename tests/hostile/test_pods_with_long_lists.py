"""Pods with long lists of all that a pod can have do not keep the scheduler from others, in a cluster that has what
they refer to.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.hostile.test_device_selectors import CONFIGURATION
from tests.hostile.test_pods import (
    DEVICES,
    MOST_BYTES_OF_CONTAINERS,
    NUM_NODES,
    Manifest,
    affinity,
    as_many,
    cluster,
    containers,
    nodes,
    selecting,
    stops_nobody,
)

NUM_NAMESPACES: Final = 300
NUM_CLAIMS: Final = 1500
"""Each takes more bytes in the state than a reference to it takes in a pod."""


@dataclass(frozen=True)
class Attack:
    """What the hostile pods are, and what there is besides them."""

    spec: Manifest
    metadata: Manifest = field(default_factory=dict)
    objects: tuple[Manifest, ...] = ()
    nodes: tuple[Manifest, ...] = tuple(nodes(NUM_NODES))


def tainted(place: int, node: Manifest) -> Manifest:
    """A node that only pods with a toleration of their own for it may run on, and ordinary ones if it is the first."""
    taints = [{"key": f"dedicated-{place}", "value": "team", "effect": "NoSchedule"}] if place else []
    return {**node, "spec": {"taints": taints}}


def with_images(place: int, node: Manifest) -> Manifest:
    images = [{"names": [f"registry.example/app-{place}-{number}:1"], "sizeBytes": 10**8} for number in range(50)]
    return {**node, "status": {**node["status"], "images": images}}


def named(
    kind: str, name: str, spec: Manifest, *, group: str = "v1", namespace: str | None = "shop", **meta: Any
) -> Manifest:
    where = {} if namespace is None else {"namespace": namespace}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, **where, **meta}, "spec": spec}


def a_claim(number: int) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "later",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return named("PersistentVolumeClaim", f"claim-{number}", spec)


LATER: Final = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "later"},
    "provisioner": "example.com/disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def a_device_claim(number: int) -> Manifest:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return named("ResourceClaim", f"claim-{number}", {"devices": {"requests": [request]}}, group="resource.k8s.io/v1")


def volume(number: int, claim: int) -> Manifest:
    return {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"claim-{claim}"}}


def spread(**differing: Callable[[int], Any]) -> Manifest:
    def one(number: int) -> Manifest:
        written = {
            "maxSkew": 1,
            "topologyKey": f"nowhere-{number}" if number else "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selecting(app="web"),
        }
        return written | {name: make(number) for name, make in differing.items()}

    return {"topologySpreadConstraints": as_many(one)}


def of_team(number: int) -> Manifest:
    return {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": [f"t{number}"]}]}


NAMESPACES: Final = tuple(
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}", "labels": {"team": f"t{number}"}}}
    for number in range(NUM_NAMESPACES)
)

MANY_LABELS: Final = {name: "x" for name, _ in as_many(lambda number: [f"label-{number}", "x"], 600_000)}

ATTACKS: Final[dict[str, Callable[[], Attack]]] = {
    "tolerations of none of many taints": lambda: Attack(
        {"tolerations": as_many(lambda number: {"key": f"k{number}", "operator": "Exists", "effect": "NoSchedule"})},
        nodes=tuple(tainted(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "tolerations of each taint": lambda: Attack(
        {
            "tolerations": as_many(
                lambda number: {"key": f"dedicated-{number}", "value": "team", "effect": "NoSchedule"}
            )
        },
        nodes=tuple(tainted(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "tolerations that differ in the last one": lambda: Attack(
        {
            "tolerations": [
                *as_many(lambda number: {"key": "dedicated", "value": f"team-{number}", "effect": "NoSchedule"}),
                {"operator": "Exists"},
            ]
        },
        nodes=tuple(tainted(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "spread constraints with a selector each": lambda: Attack(
        spread(labelSelector=lambda number: selecting(app=f"web-{number}"))
    ),
    "spread constraints that honor taints": lambda: Attack(
        spread(labelSelector=lambda number: selecting(app=f"web-{number}"), nodeTaintsPolicy=lambda _: "Honor"),
        nodes=tuple(tainted(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "spread constraints that should hold, with a selector each": lambda: Attack(
        spread(
            labelSelector=lambda number: selecting(app=f"web-{number}"), whenUnsatisfiable=lambda _: "ScheduleAnyway"
        )
    ),
    "spread constraints that ask for labels": lambda: Attack(
        spread(matchLabelKeys=lambda number: [f"label-{number}"]), metadata={"labels": {**MANY_LABELS, "app": "web"}}
    ),
    "one spread constraint that asks for many labels": lambda: Attack(
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selecting(app="web"),
                    "matchLabelKeys": [*MANY_LABELS],
                }
            ]
        },
        metadata={"labels": {**MANY_LABELS, "app": "web"}},
    ),
    "volumes of one claim": lambda: Attack(
        {"volumes": as_many(lambda number: volume(number, 0))}, objects=(LATER, a_claim(0))
    ),
    "volumes of a claim each": lambda: Attack(
        {"volumes": [volume(number, number) for number in range(NUM_CLAIMS)]},
        objects=(LATER, *map(a_claim, range(NUM_CLAIMS))),
    ),
    "volumes of claims that nobody made": lambda: Attack({"volumes": as_many(lambda number: volume(number, number))}),
    "disks": lambda: Attack(
        {"volumes": as_many(lambda number: {"name": f"v{number}", "gcePersistentDisk": {"pdName": f"disk-{number}"}})}
    ),
    "volumes of images": lambda: Attack(
        {
            "volumes": as_many(
                lambda number: {"name": f"v{number}", "image": {"reference": f"registry.example/app-1-{number}:1"}}
            )
        },
        nodes=tuple(with_images(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "host ports with an address each": lambda: Attack(
        containers(
            ports=as_many(
                lambda number: {
                    "containerPort": 80,
                    "hostPort": 1 + number % 65535,
                    "protocol": "TCP",
                    "hostIP": f"10.{number % 250}.0.1",
                }
            )
        )
    ),
    "device claims": lambda: Attack(
        {
            "resourceClaims": [
                {"name": f"c{number}", "resourceClaimName": f"claim-{number}"} for number in range(NUM_CLAIMS)
            ]
        },
        objects=tuple(map(a_device_claim, range(NUM_CLAIMS))),
    ),
    "references to one device claim": lambda: Attack(
        {"resourceClaims": as_many(lambda number: {"name": f"c{number}", "resourceClaimName": "claim-0"})},
        objects=(a_device_claim(0),),
    ),
    "device claims of a template": lambda: Attack(
        {
            "resourceClaims": as_many(
                lambda number: {"name": f"c{number}", "resourceClaimTemplateName": "nobody-made-it"}
            )
        }
    ),
    "containers with an image each": lambda: Attack(
        {
            "containers": as_many(
                lambda number: {"name": f"c{number}", "image": f"registry.example/app-{number % 200}-{number % 50}:1"},
                MOST_BYTES_OF_CONTAINERS,
            )
        },
        nodes=tuple(with_images(place, node) for place, node in enumerate(nodes(NUM_NODES))),
    ),
    "affinity in namespaces that a selector each selects": lambda: Attack(
        affinity("podAffinity", namespaceSelector=of_team), objects=NAMESPACES
    ),
    "anti-affinity in namespaces that a selector each selects": lambda: Attack(
        affinity("podAntiAffinity", namespaceSelector=of_team), objects=NAMESPACES
    ),
    "preferred affinity in namespaces that a selector each selects": lambda: Attack(
        affinity("podAffinity", is_required=False, namespaceSelector=of_team), objects=NAMESPACES
    ),
    "labels": lambda: Attack({}, metadata={"labels": {**MANY_LABELS, "app": "web"}}),
    "annotations": lambda: Attack(
        {},
        metadata={"annotations": {name: "x" for name, _ in as_many(lambda number: [f"note-{number}", "x"], 250_000)}},
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_tenant_with_long_lists_stops_nobody(attack: Callable[[], Attack], tmp_path: Path) -> None:
    """
    Ordinary pods are bound, and the service answers about the long pods.
    """
    of, state, configuration = attack(), tmp_path / "cluster.json", tmp_path / "configuration.json"
    state.write_text(json.dumps(cluster(of.spec, of.metadata, (*DEVICES, *of.objects), of.nodes)))
    configuration.write_text(json.dumps(CONFIGURATION))
    stops_nobody(state, of.spec, of.metadata, config=configuration)
