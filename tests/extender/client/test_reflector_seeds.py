"""Faults by chance, all mixed, while objects change: when they end, reflectors and cache are what a new list would make
them.

Each seed is one history, the same in every run; a seed that fails is in the name of its test.
"""

import asyncio
from random import Random

import pytest

from tests.extender.client.reflector_world import WATCHED, World, a_world
from tests.kit.faults import Action, Fault, answers, watches

STEPS = 80


def a_fault(chance: Random) -> Fault:
    """Of any kind, for any resource, once or for a while."""
    code = chance.choice((403, 404, 410, 429, 500, 503, 504))
    one_of_two = _with_chance(chance.getrandbits(32))
    on_watches: list[Action] = [
        answers.status(code),
        answers.status(429, retry_after=chance.randint(1, 20)),
        answers.too_large_resource_version(),
        answers.refused(),
        answers.drop_before_commit(),
        answers.black_hole(),
        answers.login_page(),
        answers.delay(chance.uniform(0, 20)),
        watches.close_after(chance.randint(0, 5)),
        watches.reset_after(chance.randint(0, 3), partial=chance.choice((0, 40))),
        watches.silent_after(chance.randint(0, 5)),
        watches.error_after(chance.randint(0, 5), code),
        watches.line_after(chance.randint(0, 5), chance.choice((b"{]\n", b"{}\n", b"null\n"))),
        watches.skipping(one_of_two),
        watches.repeating(chance.randint(2, 3), one_of_two),
        watches.reordered(chance.randint(1, 4), one_of_two),
        watches.delayed(chance.uniform(0, 5)),
    ]
    on_lists: list[Action] = [
        answers.status(code),
        answers.too_large_resource_version(),
        answers.refused(),
        answers.commit_then_drop(),
        answers.black_hole(),
        answers.login_page(),
        answers.truncate(chance.randint(0, 500)),
        answers.first_time_again(),
    ]
    resource = chance.choice((None, "nodes", "pods", "persistentvolumeclaims"))
    verb, actions = chance.choice((("watch", on_watches), ("list", on_lists)))
    return Fault(chance.choice(actions), verb=verb, resource=resource, times=chance.randint(1, 3))


def _with_chance(seed: int) -> watches.Which:
    chance = Random(seed)
    return lambda event: event["type"] != "BOOKMARK" and chance.random() < 0.5


def a_step(world: World, chance: Random, number: int) -> None:
    """Something happens in the cluster, or to the server."""
    server, table = world.server, chance.choice(list(WATCHED))
    names = server.names_in(table)
    happening = chance.random()
    if happening < 0.4 or not names:
        server.new(table, f"x{number}")
    elif happening < 0.5:
        server.new_pod(f"x{number}", nodeName=chance.choice(server.names_in("nodes") or [""]))
    elif happening < 0.7:
        server.label(table, chance.choice(names), str(number))
    elif happening < 0.9:
        name = chance.choice(names)
        server.end(table, name)
        if chance.random() < 0.5:
            server.new(table, name)
    elif happening < 0.95:
        world.faults.cut(cleanly=chance.random() < 0.5)
    else:
        server.compact()


@pytest.mark.parametrize("seed", range(16))
async def test_reflector_agrees_with_a_new_list_after_random_faults(seed: int) -> None:
    chance = Random(seed)
    # Twice the time between lists: the first of them may still be under way to a server that says nothing.
    async with a_world(
        seed=seed, streams_lists=bool(seed % 2), page_size=3, relist_period=300, seconds=800, misses=True
    ) as world:
        for number in range(STEPS):
            a_step(world, chance, number)
            if chance.random() < 0.2:
                world.faults.add(a_fault(chance))
            if chance.random() < 0.03:
                world.faults.go_down()
            if chance.random() < 0.3:
                world.faults.come_up()
            await asyncio.sleep(chance.choice((0, 0, 0.1, 1, 30)))
        world.faults.faults.clear()
        world.faults.come_up()
