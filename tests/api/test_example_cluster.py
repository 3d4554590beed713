"""The cluster that comes with the program has owners: nothing changes in it by itself, and a drain shows where pods go."""

import asyncio
from collections import Counter

from api.settings.settings import EXAMPLE_CLUSTER
from extender.rules.api_resources import PODS
from extender.rules.state_file import load_state
from extender.testing import virtual_time
from reprieve.cluster import own_cluster
from tests.api.in_process import reprieve


def test_its_controllers_find_nothing_to_do() -> None:
    async def names() -> tuple[set[str], set[str]]:
        async with own_cluster(load_state(EXAMPLE_CLUSTER)) as own:
            assert (own.report.refused, own.report.left_out) == ((), {})
            before = {pod["metadata"]["name"] for pod in own.api.registry.list(PODS)}
            await asyncio.sleep(60)
            return before, {pod["metadata"]["name"] for pod in own.api.registry.list(PODS)}

    before, after = virtual_time.run(names())

    assert before == after


def test_pods_of_all_sorts_of_owners_are_in_it() -> None:
    owners = Counter(
        (obj["metadata"].get("ownerReferences") or [{}])[0].get("kind")
        for obj in load_state(EXAMPLE_CLUSTER)
        if obj["kind"] == "Pod"
    )

    assert owners == {"DaemonSet": 12, "ReplicaSet": 10, "StatefulSet": 3, "Job": 12, None: 5}


def test_a_drain_shows_where_pods_land() -> None:
    said = reprieve("whatif", "--dump", str(EXAMPLE_CLUSTER), "--drain", "node-a2").stdout.decode()

    assert said.startswith("4 pods would be evicted (4 would land elsewhere).")
    assert "node-agent" not in said
