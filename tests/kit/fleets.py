"""Random clusters of which whole nodes are to be free, and the most that any moves can free, by arithmetic alone."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.rules.api_resources import Object
from tests.kit.objects import budget, node, owner, pod
from tests.kit.pod_specs import away_from

SIZES: Final = (1, 1, 1, 2, 2, 3, 4)


@final
@dataclass(frozen=True)
class FleetApp:
    """Pods that are alike, made by a ReplicaSet; those that stay were made by nobody.

    Attributes:
        nodes: the places of their nodes.
        keeps_apart: whether no two of them may be on one node.
        zone: where they have to be; empty for anywhere.
        allowed: how many may be away at a time, by their PodDisruptionBudget; None without one.
    """

    name: str
    size: int
    nodes: tuple[int, ...]
    stays: bool = False
    keeps_apart: bool = False
    zone: str = ""
    allowed: int | None = None

    @property
    def may_move(self) -> bool:
        return not self.stays and self.allowed != 0

    def pods(self) -> Iterator[Object]:
        for number, place in enumerate(self.nodes):
            running_pod = pod(f"{self.name}-{number}", str(self.size), labels={"app": self.name})
            running_pod["metadata"]["uid"] = running_pod["metadata"]["name"]
            running_pod["metadata"]["ownerReferences"] = [] if self.stays else [owner(name=self.name)]
            running_pod["spec"] |= {"nodeName": f"n{place}"}
            if self.keeps_apart:
                running_pod["spec"]["affinity"] = away_from(app=self.name)
            if self.zone:
                running_pod["spec"]["nodeSelector"] = {"zone": self.zone}
            running_pod["status"] = {"phase": "Running", "startTime": "2026-11-01T00:00:00Z"}
            yield running_pod


@final
@dataclass(frozen=True)
class Fleet:
    """Nodes, each with its CPUs and its zone, and what runs on them."""

    cpu: tuple[int, ...]
    zones: tuple[str, ...]
    apps: tuple[FleetApp, ...]

    def objects(self) -> list[dict[str, Any]]:
        nodes = [node(f"n{place}", str(cpu), labels={"zone": self.zones[place]}) for place, cpu in enumerate(self.cpu)]
        budgets = []
        for app in self.apps:
            if app.allowed is not None:
                disruption_budget = budget(app.name, {"matchLabels": {"app": app.name}}, maxUnavailable=app.allowed)
                budgets.append({**disruption_budget, "status": {"disruptionsAllowed": app.allowed}})
        return [*nodes, *budgets, *(app_pod for app in self.apps for app_pod in app.pods())]


def random_fleet(seed: int, most_nodes: int = 8, pods_per_node: float = 1.5, most_pods: int = 9) -> Fleet:
    """Returns a cluster of 2 to so many nodes. All its pods fit on their nodes."""
    rng = random.Random(seed)
    number = rng.randint(2, most_nodes)
    cpu, zones = tuple(rng.choice((4, 8, 8)) for _ in range(number)), tuple(rng.choice("ab") for _ in range(number))
    free, apps, pods_left = [*cpu], list[FleetApp](), min(round(number * pods_per_node), most_pods)
    while pods_left > 0:
        size, keeps_apart = rng.choice(SIZES), rng.random() < 0.15
        zone = rng.choice(zones) if rng.random() < 0.15 else ""
        nodes: list[int] = []
        for _ in range(rng.randint(1, 3)):
            fitting = [
                place
                for place in range(number)
                if free[place] >= size and not (keeps_apart and place in nodes) and zone in ("", zones[place])
            ]
            pods_left -= 1
            if fitting and pods_left >= 0:
                nodes.append(rng.choice(fitting))
                free[nodes[-1]] -= size
        allowed = rng.randint(0, 2) if rng.random() < 0.3 else None
        if nodes:
            apps.append(
                FleetApp(f"app-{len(apps)}", size, tuple(nodes), rng.random() < 0.1, keeps_apart, zone, allowed)
            )
    return Fleet(cpu, zones, tuple(apps))


Contents = tuple[int, ...]
"""The apps of the pods of a node that may move, sorted."""
State = tuple[tuple[int, Contents], ...]
"""The kind of each node, and what is on it, sorted: nodes of one kind are alike."""


def fewest_moves(fleet: Fleet) -> tuple[int, int]:
    """Returns how many nodes can be free at a time, and after how few moves, of all distributions that moves lead to.

    It ends early if more nodes have more room than there is.
    """
    fixed: list[list[int]] = [[] for _ in fleet.cpu]
    moving: list[list[int]] = [[] for _ in fleet.cpu]
    for number, app in enumerate(fleet.apps):
        for place in app.nodes:
            (moving if app.may_move else fixed)[place].append(number)
    kinds = [*dict.fromkeys(zip(fleet.cpu, fleet.zones, map(tuple, fixed), strict=True))]
    of_node = [kinds.index(kind) for kind in zip(fleet.cpu, fleet.zones, map(tuple, fixed), strict=True)]
    level = [tuple(sorted((kind, tuple(sorted(pods))) for kind, pods in zip(of_node, moving, strict=True)))]
    visited, best, moves, upper_bound = {*level}, (0, 0), 0, _most_free_nodes(fleet, kinds, of_node)
    while level and best[0] < upper_bound:
        for state in level:
            free = sum(not pods and not kinds[kind][2] for kind, pods in state)
            best = max(best, (free, -moves))
        new_states = {after for state in level for after in _moved(fleet, kinds, state)} - visited
        visited |= new_states
        level, moves = [*new_states], moves + 1
    return best[0], -best[1]


def _most_free_nodes(fleet: Fleet, kinds: Sequence[tuple[int, str, Contents]], of_node: Sequence[int]) -> int:
    rooms = sorted(kinds[kind][0] for kind in of_node if not kinds[kind][2])
    free_cpu = sum(fleet.cpu) - sum(app.size * len(app.nodes) for app in fleet.apps)
    return max(number for number in range(len(rooms) + 1) if sum(rooms[:number]) <= free_cpu)


def _moved(fleet: Fleet, kinds: Sequence[tuple[int, str, Contents]], state: State) -> Iterator[State]:
    for start, (kind, pods) in enumerate(state):
        for number in {*pods}:
            app = fleet.apps[number]
            for end, (other, guests) in enumerate(state):
                cpu, zone, fixed = kinds[other]
                used = sum(fleet.apps[app_number].size for app_number in (*guests, *fixed))
                if (
                    end != start
                    and used + app.size <= cpu
                    and app.zone in ("", zone)
                    and not (app.keeps_apart and number in (*guests, *fixed))
                ):
                    after = [*state]
                    rest = [*pods]
                    rest.remove(number)
                    after[start], after[end] = (kind, tuple(rest)), (other, tuple(sorted((*guests, number))))
                    yield tuple(sorted(after))
