"""A scheduler of whom many what-ifs are asked decides as one that nobody asks anything: columns, objects, queue and
writes are the same.
"""

import asyncio
from typing import Any

from extender.answers.questions import Questions
from extender.answers.types import WhatIf, WhatIfRequest
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_node, make_pod, virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from tests.extender.engine.cache.snapshot_contents import view
from tests.kit.objects import pod, priority_class
from tests.kit.owners import make_budget, owned_by
from tests.kit.told_scheduler import ToldScheduler

NUM_NODES = 4
ROUNDS = 12
HIGH = priority_class("high", 1000)
URGENT = pod("urgent", "4", "high")


def test_what_ifs_do_not_change_the_decisions_made_beside_them() -> None:
    """Pods come, are decided about, push others out and go; questions are answered in between."""
    (busy, answers), (quiet, none) = virtual_time.run(life(asking=True)), virtual_time.run(life(asking=False))

    assert busy == quiet
    assert (len(answers), len(none)) == (2 * ROUNDS, 0)
    assert any(answer.evictions for answer in answers)


async def life(*, asking: bool) -> tuple[dict[str, Any], list[WhatIf]]:
    """All that is known in the end, and what was answered."""
    scheduling = ToldScheduler()
    questions = Questions(Configuration(), scheduling.cluster, TrialRegistry, queue=scheduling.alone.world.queue)
    requests = [
        WhatIfRequest(create=[HIGH, URGENT], include_pending=True),
        WhatIfRequest(drain_nodes=["n0"], remove_nodes=["n1"]),
    ]
    scheduling.comes(
        make_budget("keep", 1, app="db"),
        *(make_node(f"n{number}").capacity(cpu=4, pods=10) for number in range(NUM_NODES)),
    )
    answers = []
    for number in range(ROUNDS):
        scheduling.comes(arriving(number))
        before = state(scheduling)
        answers += [await asyncio.to_thread(questions.what_if, request) for request in requests if asking]
        assert state(scheduling) == before
        await scheduling.decides()
        if number % 3 == 2:
            leaves(scheduling, number - 2)
    return state(scheduling), answers


def arriving(number: int) -> Pod:
    builder = make_pod(f"p{number}").req(cpu=2 + number % 2).priority(10 * (number % 4))
    return owned_by(builder.label(app="db" if number % 2 else "web").obj(), "ReplicaSet", "rs")


def leaves(scheduling: ToldScheduler, number: int) -> None:
    """The pod goes, wherever it is."""
    pod = scheduling.cluster.find(f"default/p{number}")
    if pod is not None:
        scheduling.goes(pod)


def state(scheduling: ToldScheduler) -> dict[str, Any]:
    """Everything but times."""
    cluster, queue = scheduling.cluster, scheduling.alone.world.queue
    waiting = {
        "active": queue.pods_in_active_q(),
        "backoff": queue.pods_in_backoff_q(),
        "unschedulable": queue.unschedulable_pods(),
        "in flight": queue.in_flight_pods(),
    }
    return {
        "columns": view(cluster.cache.update_snapshot()),
        "assumed": cluster.cache.assumed_pods,
        "pending": list(cluster.pending),
        "budgets": dict(cluster.cache.objects.pdbs),
        "queue": {
            name: [(info.key, info.attempts, info.unschedulable_plugins) for info in infos]
            for name, infos in waiting.items()
        },
        "promised": {node: [pod.key for pod in pods] for node, pods in queue.nominated_pods().items()},
        "written": [repr(call) for call in scheduling.writes.calls],
    }
