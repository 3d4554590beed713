"""Whatever happens, no card of a shared GPU is promised twice, and no pod waits for which there is room on a card."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import httpx
import pytest

from extender.rules.api_resources import NODES, PODS, Object
from extender.rules.statuses import ApiStatus
from tests.kit.objects import PRIORITIES, node, pod
from tests.kit.scene import Scene, a_scene
from tests.kit.shared_gpu import ARGUMENTS, cards_of, limits, shared_gpu, with_cards

SEEDS: Final = 500
AT_ONCE: Final = 25
SIZES: Final = (8192, 16384)
DEMANDS: Final[Sequence[dict[str, int]]] = (
    {"memory": 2048}, {"memory": 6144, "cores": 30}, {"cores": 60}, {"memory": 10240}, {"cards": 1}, {"cards": 2},
    {"cards": 2, "memory": 4096}, {"cards": 3, "memory": 1024, "cores": 10}, {},
)  # fmt: skip
VALUES: Final = {priority_class["metadata"]["name"]: priority_class["value"] for priority_class in PRIORITIES}


class Tale:
    """A cluster to which things happen at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bindings_fail = False
        self.demands: dict[str, dict[str, int]] = {}
        self.sizes: dict[str, list[int]] = {
            f"n{number}": self.chance.choices(SIZES, k=self.chance.randint(1, 4))
            for number in range(self.chance.randint(1, 3))
        }
        self.nodes = [self._node(name, sizes) for name, sizes in self.sizes.items()]

    @staticmethod
    def _node(name: str, sizes: list[int]) -> Object:
        obj = with_cards(node(name, "16"), 0)
        obj["metadata"]["annotations"][shared_gpu.CARDS] = ",".join(f"{size}/100" for size in sizes)
        return obj

    def interferes(self, request: httpx.Request) -> httpx.Response | None:
        if not (self.bindings_fail and request.url.path.endswith("/binding") and self.chance.random() < 0.5):
            return None
        if self.chance.random() < 0.5:
            raise httpx.ReadError("the connection is gone")
        return httpx.Response(403, json={"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})

    def new_pod(self) -> Object:
        name, demand = f"p{len(self.demands)}", self.chance.choice(DEMANDS)
        self.demands[name] = demand
        priority = self.chance.choice(("low", "middle", "high"))
        return pod(name, priority=priority, container=limits(**demand), terminationGracePeriodSeconds=2)

    async def goes_on(self, scene: Scene) -> None:
        """One thing happens, and some time passes."""
        pause = self.chance.choice((0.01, 0.1, 1.0, 5.0))
        match self.chance.randrange(4):
            case 0 | 1:
                await scene.has(*(self.new_pod() for _ in range(self.chance.randint(1, 4))), within=pause)
            case 2:
                leaving = sorted(scene.pods())[: self.chance.randint(0, 3)]
                for name in leaving:
                    with suppress(ApiStatus):
                        await scene.loses(name, at_once=self.chance.random() < 0.5, within=0)
                await scene.passes(pause)
            case 3:
                self.bindings_fail = not self.bindings_fail
                await scene.passes(pause)

    # What must hold.

    def check_promises(self, scene: Scene) -> None:
        promised_by_node: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for obj in scene.api.list(PODS, "default"):
            demand, where = self.demands[obj["metadata"]["name"]], obj["spec"].get("nodeName")
            if where and demand:
                cards = cards_of(obj)
                assert len(cards) == demand.get("cards", 1), f"{obj['metadata']['name']} has {cards} for {demand}"
                promised_by_node[where] += [(card, *amounts) for card, amounts in cards.items()]
        for name, promised in promised_by_node.items():
            for card, size in enumerate(self.sizes[name]):
                on_card = [share for share in promised if share[0] == card]
                assert sum(memory for _, memory, _ in on_card) <= size, f"card {card} of {name}: {on_card}"
                assert sum(cores for _, _, cores in on_card) <= 100, f"card {card} of {name}: {on_card}"

    def check_waiting(self, scene: Scene) -> None:
        """Even where all pods of lower priority were gone, no pod that waits would fit."""
        pods = scene.api.list(PODS, "default")
        for obj in pods:
            name = obj["metadata"]["name"]
            if obj["spec"].get("nodeName"):
                continue
            value = obj["spec"]["priority"]
            for where in self.sizes:
                staying = [it for it in pods if it["spec"].get("nodeName") == where and it["spec"]["priority"] >= value]
                free = sum(1 for _ in self._fitting(where, staying, self.demands[name]))
                assert free < self.demands[name].get("cards", 1), f"{name} waits, though {where} would take it"

    def _fitting(self, where: str, pods: list[Any], demand: dict[str, int]) -> Iterator[int]:
        memory, cores, number = Counter[int](), Counter[int](), Counter[int]()
        for obj in pods:
            for card, amounts in cards_of(obj).items():
                memory[card] += amounts[0]
                cores[card] += amounts[1]
                number[card] += 1
        is_whole = not demand.get("memory") and not demand.get("cores")
        for card, size in enumerate(self.sizes[where]):
            parts = memory[card] + demand.get("memory", 0) <= size and cores[card] + demand.get("cores", 0) <= 100
            if parts and not (is_whole and number[card]):
                yield card


async def told(seed: int) -> None:
    tale = Tale(seed)
    objects: list[Object] = tale.nodes
    for life in range(3):  # of the scheduler, which knows nothing of the one before
        async with a_scene(
            *objects, plugins=[shared_gpu.SharedGpu], arguments=ARGUMENTS, interfere=tale.interferes, seed=seed + life
        ) as scene:
            for _ in range(tale.chance.randint(1, 5)):
                await tale.goes_on(scene)
                tale.check_promises(scene)
            if life == 2:
                tale.bindings_fail = False
                await scene.passes(600)
                tale.check_promises(scene)
                tale.check_waiting(scene)
            objects = [*scene.api.list(NODES), *scene.api.list(PODS, "default")]
            for number, obj in enumerate(objects):  # a new cluster gives out the same UIDs again
                obj["metadata"]["uid"] = f"of-life-{life}-{number}"


@pytest.mark.parametrize("seed", [0, 1])
async def test_no_card_is_promised_twice_and_room_is_used(seed: int) -> None:
    await told(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_no_card_is_promised_twice_and_room_is_used_whatever_happens(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        await told(seed)
