"""The best candidates are the first of all of them in order, though not all are put into order; a chosen one comes
before them.
"""

import random

import numpy as np
import pytest

from extender.engine.framework import Candidates
from extender.engine.preemption import V1_36
from extender.engine.preemption.costs import best, costs_of, ranked
from extender.testing import make_node, make_pod, make_snapshot

LIMIT = 8


@pytest.mark.parametrize("seed", range(20))
def test_the_best_are_the_first_of_all(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"node-{number}" for number in range(chance.randrange(1, 40))]
    running = [
        make_pod(f"{name}-{number}").uid(f"{name}-{number}").node(name).priority(chance.randrange(3)).obj()
        for name in names
        for number in range(chance.randrange(1, 4))
    ]
    snapshot = make_snapshot(*(make_node(name) for name in names), pods=running)
    slots = [[snapshot.pods.slots[pod.uid] for pod in running if pod.spec.node_name == name] for name in names]
    firsts = [sum(map(len, slots[:place])) for place in range(len(names) + 1)]
    candidates = Candidates(
        snapshot,
        np.array([snapshot.nodes.index[name] for name in names], np.intp),
        np.array([slot for of_node in slots for slot in of_node], np.intp),
        np.array(firsts, np.intp),
        np.array([chance.randrange(2) for _ in names], np.int64),
        V1_36,
    )

    chosen = chance.choice([None, *range(len(candidates))])
    found = best(candidates, LIMIT, chosen)
    node = candidates.node.tolist()
    expected = [place for place in ranked(candidates).tolist() if place != chosen]
    if chosen is not None:
        expected = [chosen, *expected]
    assert [found.candidates.node[place] for place in found.order] == [node[place] for place in expected[:LIMIT]]
    assert found.costs == costs_of(candidates.take(np.array(expected[:LIMIT])))
