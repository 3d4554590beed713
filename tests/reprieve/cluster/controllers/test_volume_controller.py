"""Claims find the volume that fits them, or get one made when that is due; and volumes know when nobody needs them any
more.
"""

from typing import Any

from extender.rules.api_resources import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Object,
)
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import add_node, change, names, running_controllers, settle

SELECTED_NODE = "volume.kubernetes.io/selected-node"
STATIC = "kubernetes.io/no-provisioner"


def add_class(registry: ObjectRegistry, name: str, provisioner: str, *, waits: bool = False, **more: Any) -> None:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    registry.create(
        STORAGE_CLASSES, "", {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}
    )


def add_volume(
    registry: ObjectRegistry, name: str, size: str = "10Gi", storage_class: str = "fast", **spec: Any
) -> None:
    volume_spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "hostPath": {"path": "/data"},
        **spec,
    }
    registry.create(PERSISTENT_VOLUMES, "", {"metadata": {"name": name, "labels": {"disk": name}}, "spec": volume_spec})


def add_claim(
    registry: ObjectRegistry, name: str = "data", size: str = "5Gi", storage_class: str = "fast", **spec: Any
) -> None:
    claim_spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    registry.create(PERSISTENT_VOLUME_CLAIMS, "default", {"metadata": {"name": name}, "spec": claim_spec})


def claim(registry: ObjectRegistry, name: str = "data") -> Object:
    return registry.get(PERSISTENT_VOLUME_CLAIMS, "default", name)


def volume(registry: ObjectRegistry, name: str) -> Object:
    return registry.get(PERSISTENT_VOLUMES, "", name)


async def test_a_claim_gets_the_smallest_volume_that_is_large_enough() -> None:
    async with running_controllers() as registry:
        for name, size in (("small", "1Gi"), ("large", "100Gi"), ("right", "6Gi")):
            add_volume(registry, name, size)
        await settle()
        free = volume(registry, "right")["status"]["phase"]
        add_claim(registry)
        await settle()

        bound, right = claim(registry), volume(registry, "right")

        assert free == "Available"
        assert (bound["spec"]["volumeName"], bound["status"]["phase"]) == ("right", "Bound")
        assert (bound["status"]["capacity"], bound["status"]["accessModes"]) == ({"storage": "6Gi"}, ["ReadWriteOnce"])
        assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert (right["spec"]["claimRef"]["uid"], right["status"]["phase"]) == (bound["metadata"]["uid"], "Bound")
        assert volume(registry, "large")["status"]["phase"] == "Available"


@cases(
    "volume_spec, claim_spec",
    ("of another class", {"storage_class": "slow"}, {}),
    ("too small", {"size": "4Gi"}, {}),
    ("of other access modes", {"accessModes": ["ReadOnlyMany"]}, {}),
    ("of another mode", {"volumeMode": "Block"}, {}),
    ("not selected", {}, {"selector": {"matchLabels": {"disk": "other"}}}),
    ("reserved for another claim", {"claimRef": {"namespace": "default", "name": "other"}}, {}),
)
async def test_a_claim_does_not_get_a_volume(volume_spec: Object, claim_spec: Object) -> None:
    async with running_controllers() as registry:
        add_volume(registry, "v", **volume_spec)
        add_claim(registry, **claim_spec)
        await settle()

        assert claim(registry)["status"]["phase"] == "Pending"
        assert "volumeName" not in claim(registry)["spec"]


async def test_a_claim_that_waits_is_bound_when_a_volume_comes() -> None:
    async with running_controllers() as registry:
        add_claim(registry)
        await settle()
        add_volume(registry, "v")
        await settle()

        assert claim(registry)["spec"]["volumeName"] == "v"


async def test_one_volume_serves_one_claim() -> None:
    async with running_controllers() as registry:
        add_volume(registry, "v")
        add_claim(registry, "one")
        add_claim(registry, "two")
        await settle()

        assert sorted(claim(registry, name)["status"]["phase"] for name in ("one", "two")) == ["Bound", "Pending"]


async def test_a_volume_that_the_scheduler_reserved_is_bound_even_if_the_class_waits() -> None:
    async with running_controllers() as registry:
        add_class(registry, "fast", STATIC, waits=True)
        add_volume(registry, "other")
        add_volume(registry, "v")
        add_claim(registry)
        await settle()
        waiting = claim(registry)["status"]["phase"]

        def reserve(obj: Object) -> None:
            uid = claim(registry)["metadata"]["uid"]
            obj["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": uid}

        change(registry, PERSISTENT_VOLUMES, "v", reserve)
        await settle()

        assert waiting == "Pending"
        assert (claim(registry)["spec"]["volumeName"], claim(registry)["status"]["phase"]) == ("v", "Bound")


async def test_a_provisioner_makes_a_volume_at_once() -> None:
    async with running_controllers() as registry:
        add_class(registry, "fast", "csi.example.com")
        add_claim(registry)
        await settle()

        bound = claim(registry)
        new_volume = volume(registry, f"pvc-{bound['metadata']['uid']}")

    assert bound["status"]["phase"] == "Bound"
    assert new_volume["spec"]["csi"]["driver"] == "csi.example.com"
    assert new_volume["spec"]["capacity"] == {"storage": "5Gi"}
    assert new_volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert "nodeAffinity" not in new_volume["spec"]


async def test_a_class_that_waits_provisions_where_the_scheduler_says() -> None:
    zone = "topology.kubernetes.io/zone"
    async with running_controllers() as registry:
        add_node(registry, "a", metadata={"name": "a", "labels": {zone: "z1"}})
        driver = {"name": "csi.example.com", "nodeID": "a", "topologyKeys": [zone]}
        registry.create(CSI_NODES, "", {"metadata": {"name": "a"}, "spec": {"drivers": [driver]}})
        add_class(registry, "fast", "csi.example.com", waits=True)
        add_claim(registry)
        await settle(60)
        waiting = claim(registry)["status"]["phase"], names(registry, PERSISTENT_VOLUMES)
        change(
            registry,
            PERSISTENT_VOLUME_CLAIMS,
            "data",
            lambda obj: obj["metadata"].update(annotations={SELECTED_NODE: "a"}),
        )
        await settle()

        (new_volume,) = registry.list(PERSISTENT_VOLUMES)

        assert waiting == ("Pending", [])
        assert claim(registry)["status"]["phase"] == "Bound"
        assert new_volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == [
            {"matchExpressions": [{"key": zone, "operator": "In", "values": ["z1"]}]}
        ]


async def test_no_volume_is_made_for_a_class_without_provisioner_or_a_missing_class() -> None:
    async with running_controllers() as registry:
        add_class(registry, "static", STATIC)
        add_claim(registry, "one", storage_class="static")
        add_claim(registry, "two", storage_class="ghost")
        await settle(60)

        assert names(registry, PERSISTENT_VOLUMES) == []
        assert [claim(registry, name)["status"]["phase"] for name in ("one", "two")] == ["Pending", "Pending"]


@cases("policy, remaining", ("deleted", "Delete", []), ("released", "Retain", [("v", "Released")]))
async def test_a_volume_whose_claim_is_gone_is(policy: str, remaining: list[tuple[str, str]]) -> None:
    async with running_controllers() as registry:
        add_volume(registry, "v", persistentVolumeReclaimPolicy=policy)
        add_claim(registry)
        await settle()
        registry.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data", {})
        await settle()

        assert [
            (volume["metadata"]["name"], volume["status"]["phase"]) for volume in registry.list(PERSISTENT_VOLUMES)
        ] == remaining


async def test_a_claim_whose_volume_is_gone_has_lost_it() -> None:
    async with running_controllers() as registry:
        add_volume(registry, "v")
        add_claim(registry)
        await settle()
        registry.delete(PERSISTENT_VOLUMES, "", "v", {})
        await settle()

        assert claim(registry)["status"]["phase"] == "Lost"
