"""Whatever happens to groups and pods that share claims: no node is overcommitted, no device is given twice, and no pod
waits for no reason.
"""

import random
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, Final

import httpx
import pytest

from extender.rules.api_resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Object
from extender.rules.statuses import ApiStatus
from tests.kit.device_objects import GROUP, device_class, devices
from tests.kit.objects import GROUP_GATES, ONLY_GANGS, members, node, pod, pod_group
from tests.kit.scene import Scene, a_scene

SEEDS: Final = 100
AT_ONCE: Final = 20
PART_SIZE: Final = 4


def of_all_nodes(name: str, **device: Any) -> list[Object]:
    """A class, and a device of it that all nodes can use."""
    driver = f"{name}.example.com"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "allNodes": True, "pool": pool, "devices": [{"name": name, **device}]}
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return [
        {**GROUP, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec},
        {**GROUP, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [selector]}},
    ]


class Tale:
    """A cluster to which things happen at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.writes_fail = False
        self.count = 0
        self.cpus = {f"n{number}": self.chance.randint(1, 4) for number in range(self.chance.randint(1, 4))}
        self.features = self.chance.choice((ONLY_GANGS, GROUP_GATES))

    def objects(self) -> list[Object]:
        part = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": str(PART_SIZE)}}}
        local_devices = [
            devices(name, *(f"{name}-{device}" for device in range(self.chance.randint(1, 3))))
            for name in self.cpus
            if self.chance.random() < 0.7
        ]
        nodes = [node(name, str(cpu)) for name, cpu in self.cpus.items()]
        return [*nodes, device_class(None), *local_devices, *of_all_nodes("fabric"), *of_all_nodes("part", **part)]

    def interferes(self, request: httpx.Request) -> httpx.Response | None:
        is_write = request.method in ("PATCH", "POST") and request.url.path.endswith(("/binding", "/status"))
        is_write = is_write or (request.method == "PATCH" and "/resourceclaims/" in request.url.path)
        if not (self.writes_fail and is_write and self.chance.random() < 0.3):
            return None
        if self.chance.random() < 0.5:
            raise httpx.ReadError("the connection is gone")
        return httpx.Response(409, json={"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409})

    # What happens.

    def claim(self) -> Object:
        self.count += 1
        kind = self.chance.choice(("gpu", "gpu", "fabric", "part"))
        exactly: Object = {"deviceClassName": kind, "allocationMode": "ExactCount", "count": 1}
        if kind == "gpu":
            exactly["count"] = self.chance.choice((1, 1, 2))
        if kind == "part":
            exactly["capacity"] = {"requests": {"memory": str(self.chance.randint(1, 3))}}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        return {**GROUP, "kind": "ResourceClaim", "metadata": {"name": f"c{self.count}"}, "spec": spec}

    def newcomers(self) -> list[Object]:
        """A gang or a few pods, some of which name the same claims."""
        claims = [self.claim() for _ in range(self.chance.randint(1, 2))]
        names = [claim["metadata"]["name"] for claim in claims]
        spec: Object = {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]}
        self.count += 1
        number, cpu = self.chance.randint(1, 4), self.chance.choice(("500m", "1"))
        if self.chance.random() < 0.7:
            group = pod_group(f"g{self.count}", self.chance.randint(1, number))
            return [*claims, group, *members(number, of=f"g{self.count}", cpu=cpu, **spec)]
        return [*claims, *(pod(f"p{self.count}-{place}", cpu, **spec) for place in range(number))]

    async def goes_on(self, scene: Scene) -> None:
        """One thing happens, and some time passes."""
        pause = self.chance.choice((0.01, 0.1, 1.0, 5.0))
        match self.chance.randrange(5):
            case 0 | 1 | 2:
                await scene.has(*self.newcomers(), within=pause)
            case 3:
                names = sorted(scene.pods())
                for name in self.chance.sample(names, min(len(names), self.chance.randint(1, 3))):
                    with suppress(ApiStatus):
                        await scene.loses(name, at_once=self.chance.random() < 0.7, within=0)
                await scene.passes(pause)
            case 4:
                self.writes_fail = not self.writes_fail
                await scene.passes(pause)

    # What must hold.

    def check_nodes(self, scene: Scene) -> None:
        requested: Counter[str] = Counter()
        for obj in scene.api.list(PODS, "default"):
            cpu = obj["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            requested[obj["spec"].get("nodeName", "")] += 500 if cpu == "500m" else 1000
        assert all(requested[name] <= 1000 * cpu for name, cpu in self.cpus.items()), requested

    def check_devices(self, scene: Scene) -> None:
        """No device is in two claims but in parts, and a pod that is bound has its claims where it can use them."""
        holders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        parts = 0
        users: dict[str, set[str]] = {}
        where: dict[str, set[str]] = {}
        of_node = {
            item["spec"]["pool"]["name"]: item["spec"].get("nodeName") for item in scene.api.list(RESOURCE_SLICES, "")
        }
        for claim in scene.api.list(RESOURCE_CLAIMS, "default"):
            status, name = claim.get("status") or {}, claim["metadata"]["name"]
            users[name] = {user["uid"] for user in status.get("reservedFor") or ()}
            where[name] = set()
            for result in (status.get("allocation") or {}).get("devices", {}).get("results") or ():
                if result["driver"] == "part.example.com":
                    parts += int(result["consumedCapacity"]["memory"])
                    continue
                holders[result["pool"], result["device"]].append(name)
                if of_node[result["pool"]]:
                    where[name].add(of_node[result["pool"]])
        assert all(len(names) == 1 for names in holders.values()), holders
        assert parts <= PART_SIZE
        for obj in scene.api.list(PODS, "default"):
            bound_to = obj["spec"].get("nodeName")
            for reference in obj["spec"].get("resourceClaims") or () if bound_to else ():
                assert obj["metadata"]["uid"] in users[reference["resourceClaimName"]]
                assert where[reference["resourceClaimName"]] <= {bound_to}

    def check_waiting(self, scene: Scene) -> None:
        """Counted by hand: neither a pod that waits by itself nor a gang would get nodes, whichever its first took."""
        pods = scene.api.list(PODS, "default")
        waiting: defaultdict[str, list[Object]] = defaultdict(list)
        for obj in pods:
            if not obj["spec"].get("nodeName"):
                waiting[obj["spec"].get("schedulingGroup", {}).get("podGroupName", "")].append(obj)
        for obj in waiting.pop("", []):
            assert not any(room for room in self._rooms(scene, obj)), f"{obj['metadata']['name']} waits, and would fit"
        for group, group_pods in waiting.items():
            min_count = scene.api.get(POD_GROUPS, "default", group)["spec"]["schedulingPolicy"]["gang"]["minCount"]
            running = sum(_is_of(obj, group) and bool(obj["spec"].get("nodeName")) for obj in pods)
            needed = max(1, min_count - running)
            rooms = self._rooms(scene, group_pods[0])
            fits = len(group_pods) >= needed and rooms and all(room >= needed for room in rooms)
            assert not fits, f"{group} waits, and would fit"

    def _rooms(self, scene: Scene, pod: Object) -> list[int]:
        """For each node that the first of such pods may take: how many of them fit then. Empty without devices."""
        size = 500 if pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m" else 1000
        free = {name: 1000 * cpu for name, cpu in self.cpus.items()}
        for obj in scene.api.list(PODS, "default"):
            if obj["spec"].get("nodeName"):
                cpu = obj["spec"]["containers"][0]["resources"]["requests"]["cpu"]
                free[obj["spec"]["nodeName"]] -= 500 if cpu == "500m" else 1000
        claim_names = {reference["resourceClaimName"] for reference in pod["spec"]["resourceClaims"]}
        needed, bound_to, used, parts = Counter[str](), set[str](), set[str](), PART_SIZE
        for claim in scene.api.list(RESOURCE_CLAIMS, "default"):
            results = ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results") or ()
            exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
            kind, is_wanted = exactly["deviceClassName"], claim["metadata"]["name"] in claim_names
            used |= {result["device"] for result in results}
            bound_to |= {result["pool"] for result in results if is_wanted and result["pool"] in self.cpus}
            memory = int(exactly["capacity"]["requests"]["memory"]) if kind == "part" else 0
            parts -= memory if results else 0
            if is_wanted and not results:
                needed[kind] += memory if kind == "part" else exactly["count"]
        if needed["part"] > parts or needed["fabric"] > ("fabric" not in used):
            return []
        gpus = Counter(
            {
                item["spec"]["nodeName"]: sum(device["name"] not in used for device in item["spec"]["devices"])
                for item in scene.api.list(RESOURCE_SLICES, "")
                if item["spec"].get("nodeName")
            }
        )
        may = [name for name in self.cpus if gpus[name] >= needed["gpu"] and free[name] >= size and bound_to <= {name}]
        if needed["gpu"] or bound_to:
            return [free[name] // size for name in may]
        return [sum(room // size for room in free.values())] if may else []


def _is_of(pod: Object, group: str) -> bool:
    return bool(pod["spec"].get("schedulingGroup", {}).get("podGroupName") == group)


async def told(seed: int) -> None:
    tale = Tale(seed)
    async with a_scene(*tale.objects(), interfere=tale.interferes, features=tale.features, seed=seed) as scene:
        for _ in range(tale.chance.randint(3, 12)):
            await tale.goes_on(scene)
            tale.check_nodes(scene)
            tale.check_devices(scene)
        tale.writes_fail = False
        await scene.passes(700)
        tale.check_nodes(scene)
        tale.check_devices(scene)
        tale.check_waiting(scene)


@pytest.mark.parametrize("seed", [0, 1, 2])
async def test_no_device_is_given_twice_and_no_group_waits_for_no_reason(seed: int) -> None:
    await told(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_no_device_is_given_twice_and_no_group_waits_for_no_reason_whatever_happens(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        await told(seed)
