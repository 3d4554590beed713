"""Whatever is asked about whatever cluster: in the end nobody could do better, and everybody is where the answer
says.
"""

import asyncio
import random

from hypothesis import Phase, given, settings, strategies as st

from extender.answers.profiles import simulated_frameworks
from extender.answers.trial import Trial
from extender.answers.what_if.simulation import Simulation
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.testing import random_cluster
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from tests.kit.examples import examples
from tests.kit.owners import owned_by


def with_owner(pod: Pod, chance: random.Random) -> Pod:
    """Most pods are a controller's, and priorities differ."""
    owned = owned_by(pod, "ReplicaSet", "rs") if chance.random() < 0.8 else pod
    return replaced(owned, spec=replaced(pod.spec, priority=chance.choice((0, 0, 10, 20))))


@settings(deadline=None, max_examples=examples(40), phases=[phase for phase in Phase if phase is not Phase.shrink])
@given(st.integers(0, 2**32))
def test_random_simulation_ends_in_a_state_in_which_no_pending_pod_fits(seed: int) -> None:
    """Who has no place is told so by the scheduler itself, about the cluster as it is in the end; and nothing is
    counted twice or lost.
    """
    chance = random.Random(seed)
    before = random_cluster(chance)
    running = [with_owner(pod, chance) for pod in before.pods]
    arriving = [with_owner(pod, chance) for pod in (before.pod, *before.arrivals)]
    cluster = Cluster.of(
        ClusterState(nodes=before.nodes, pods=[*running, *(pod for pod in arriving if not pod.spec.node_name)])
    )
    frameworks = simulated_frameworks(Configuration(), cluster)
    simulation = Simulation(Trial(cluster, frameworks))
    for pod in list(cluster.pending.values()):
        simulation.submit(pod, "pending")
    if chance.random() < 0.3:
        simulation.drain_node(before.nodes[0].name)
    elif chance.random() < 0.3:
        simulation.remove_node(before.nodes[0].name)

    asyncio.run(simulation.run())

    assert simulation.is_complete
    where = {pod.uid: pod.spec.node_name for pod in cluster.cache.pods}
    assert {place.pod.uid: place.node for place in simulation.placements if place.node}.items() <= where.items()
    for place in simulation.placements:
        waiting = cluster.pending.get(place.pod.uid)
        if place.node or waiting is None or waiting.spec.scheduling_gates or waiting.scheduler_name not in frameworks:
            continue
        snapshot = cluster.cache.update_snapshot()
        nominated = Nominations(cluster.nominees(frameworks))
        end = asyncio.run(evaluate(Cycle(frameworks[waiting.scheduler_name], snapshot, waiting, nominated)))
        assert (end.feasible, end.error or end.message) == ((), place.message)
    evicted_uids = {eviction.victim.pod.uid for eviction in simulation.evictions if not eviction.returns}
    everybody = {pod.uid for pod in (*running, *arriving)}
    assert {*where, *cluster.pending} >= everybody - evicted_uids - {
        pod.uid for pod in running if pod.spec.node_name == before.nodes[0].name
    }
    for eviction in simulation.evictions:
        assert eviction.by is None or eviction.by.priority > eviction.victim.pod.priority
