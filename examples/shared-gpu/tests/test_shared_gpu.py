"""What the plugin decides. `reprieve test` runs this, and so does pytest."""

import random

import pytest
from shared_gpu import CARD, CARDS, CORES, MEMORY, NO_CARD, NO_SUCH_CARD, SharedGpu

from reprieve.plugin import replaced
from reprieve.testing import check_filter, make_node, make_pod, make_snapshot, refusals, score_nodes


def node(name, cards):
    built = make_node(name).obj()
    return replaced(built, metadata=replaced(built.metadata, annotations={CARDS: cards}))


def pod(name, node="", card="", priority=0, **asked):
    requests = {{"cards": CARDS, "memory": MEMORY, "cores": CORES}[what]: str(much) for what, much in asked.items()}
    built = make_pod(name).priority(priority).req(requests).node(node)
    return (built.annotation({CARD: card}) if card else built).obj()


TWO = "16384/100,16384/100"


@pytest.mark.parametrize(
    ("asked", "running", "refused"),
    [
        pytest.param({"memory": 10240}, ["0=10240/0"], {}, id="another card has room"),
        pytest.param(
            {"memory": 10240}, ["0=8192/0", "1=8192/0"], {"n": NO_CARD}, id="no card has, though the node has"
        ),
        pytest.param({"memory": 1, "cores": 50}, ["0=1/60", "1=1/60"], {"n": NO_CARD}, id="cores run out"),
        pytest.param({"cards": 1}, ["0=1/0", "1=1/0"], {"n": NO_CARD}, id="a whole card must be untouched"),
        pytest.param({"cards": 2, "memory": 8192}, ["0=8192/0"], {}, id="parts on two cards"),
        pytest.param({"cards": 2, "memory": 8192}, ["0=9216/0"], {"n": NO_CARD}, id="never two parts on one card"),
        pytest.param({"memory": 20000}, [], {"n": NO_SUCH_CARD}, id="no card is so large"),
        pytest.param({}, ["0=16384/100", "1=16384/100"], {}, id="others need none"),
        pytest.param({"memory": 10240}, ["nonsense"], {}, id="an annotation that says nothing takes nothing"),
    ],
)
def test_who_is_refused(asked, running, refused):
    pods = [pod(f"p{number}", "n", card) for number, card in enumerate(running)]

    assert refusals(SharedGpu(), make_snapshot(node("n", TWO), pods=pods), pod("new", **asked)) == refused


def test_a_pod_without_a_card_keeps_the_room_that_it_needs():
    """It is one that somebody else has bound, or that is nominated."""
    running = [pod("bound", "n", memory=16384), pod("p", "n", "0=8192/0")]

    assert refusals(SharedGpu(), make_snapshot(node("n", TWO), pods=running), pod("new", memory=8192)) == {}
    assert refusals(SharedGpu(), make_snapshot(node("n", TWO), pods=running), pod("new", memory=8193)) == {"n": NO_CARD}


@pytest.mark.parametrize(("place", "best"), [("pack", "used"), ("spread", "empty")])
def test_the_argument_says_which_node_is_best(place, best):
    snapshot = make_snapshot(node("used", TWO), node("empty", TWO), pods=[pod("p", "used", "0=8192/0,1=8192/0")])

    scores = score_nodes(SharedGpu({"place": place}), snapshot, pod("new", memory=4096))

    assert max(scores, key=scores.get) == best


@pytest.mark.parametrize("seed", range(20))
def test_plugin_keeps_the_laws_of_filters(seed):
    chance = random.Random(seed)
    asked = [{"memory": 4096}, {"memory": 10240, "cores": 30}, {"cards": 1}, {"cards": 2, "memory": 2048}]
    texts = ["0=4096/0", "1=8192/40", "0=16384/100", "", "0=2048/0,1=2048/0"]
    pods = [pod(f"p{at}", chance.choice("ab"), chance.choice(texts), at % 3, **chance.choice(asked)) for at in range(6)]
    arrivals = [pod(f"new{number}", **each) for number, each in enumerate(asked)]
    snapshot = make_snapshot(node("a", TWO), node("b", TWO), pods=pods)

    check_filter(SharedGpu(), snapshot, pod("new", **chance.choice(asked)), chance, arrivals=arrivals)
