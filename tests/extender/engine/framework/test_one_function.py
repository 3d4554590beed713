"""Plugins of one function: `@fwk.node_filter` and `@fwk.node_score`."""

import random

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.registry import implemented_points, why_not_a_plugin
from extender.testing import check_filter, filter_nodes, make_node, make_pod, make_snapshot, random_cluster, score_nodes
from tests.kit.tables import cases

UP, DOWN = make_node("up").obj(), make_node("down").label({"licences": "down"}).obj()


@fwk.node_filter
def licence_aware(pod, node):
    """Pods keep away from nodes whose licence server is down."""
    return f"licence server of {node.name} is down" if node.labels.get("licences") == "down" else None


@fwk.node_score
def emptiest(pod, node):
    return 100 - len(node.pods)


def test_a_sentence_refuses_and_none_accepts() -> None:
    statuses = filter_nodes(licence_aware(), make_snapshot(UP, DOWN), make_pod("p").obj())

    assert statuses == {"up": fwk.SUCCESS, "down": fwk.unschedulable("licence server of down is down")}


def test_a_status_is_the_answer_as_it_is() -> None:
    @fwk.node_filter
    def never(pod, node):
        return fwk.unresolvable("never")

    assert filter_nodes(never(), make_snapshot(UP), make_pod("p").obj()) == {"up": fwk.unresolvable("never")}


def test_function_that_returns_numbers_scores_nodes() -> None:
    snapshot = make_snapshot(UP, DOWN, pods=[make_pod("other").node("up").obj()])

    assert score_nodes(emptiest(), snapshot, make_pod("p").obj()) == {"up": 99, "down": 100}


def test_the_decorated_name_is_a_plugin_with_the_functions_name_and_words() -> None:
    assert why_not_a_plugin(licence_aware) is None
    assert implemented_points(licence_aware) == {"filter"}
    assert implemented_points(emptiest) == {"score"}
    assert licence_aware.__name__ == licence_aware.name == "licence_aware"
    assert licence_aware.__module__ == __name__
    assert licence_aware.__doc__ == "Pods keep away from nodes whose licence server is down."


def test_plugin_keeps_the_laws_of_filters() -> None:
    chance = random.Random(1)
    cluster = random_cluster(chance)

    check_filter(licence_aware(), cluster.snapshot(), cluster.pod, chance, arrivals=cluster.arrivals)


async def waits(pod, node):
    return None


def test_events_say_what_may_help() -> None:
    events = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.UPDATE_NODE_LABEL)]

    plugin = fwk.node_filter(lambda pod, node: None, events=events)

    assert plugin().events_to_register() == events


@cases(
    "wrong, words",
    ("one argument", lambda node: None, "it takes node"),
    ("three arguments", lambda state, pod, node: None, "it takes state, pod, node"),
    ("an async def", waits, "nothing waits for an async def: write def waits"),
    ("a class", dict, "dict is none: derive the class from fwk.EachNodeFilterPlugin"),
)
def test_wrong_signature_is_refused_with_the_fix(wrong, words: str) -> None:
    with pytest.raises(TypeError, match="@node_filter") as error:
        fwk.node_filter(wrong)

    assert words in str(error.value)


def test_an_answer_that_means_nothing_is_an_error_with_the_fix() -> None:
    @fwk.node_filter
    def doubtful(pod, node):
        return True

    with pytest.raises(TypeError, match="doubtful returned bool: return None to accept the node, or a sentence"):
        doubtful().filter(fwk.CycleState(), make_pod("p").obj(), fwk.NodeInfo(UP, (), 0))


def test_a_function_that_was_not_decorated_is_refused_with_the_fix() -> None:
    def forgotten(pod, node):
        return None

    assert str(why_not_a_plugin(forgotten)).endswith("; decorate it with @fwk.node_filter or @fwk.node_score")
