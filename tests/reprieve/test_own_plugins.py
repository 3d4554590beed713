"""What own plugins do to a trial: they fail in words, and preempt by rules of their own."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from extender.answers import history
from extender.answers.records.record_store import PreemptionRecord
from extender.answers.records.records import Records
from extender.engine.framework import Candidates
from extender.engine.plugins import IN_TREE
from extender.engine.preemption.costs import (
    fewest_victims,
    latest_start_time,
    lowest_first_priority,
    lowest_sum_of_priorities,
)
from extender.engine.preemption.evaluator import Evaluator
from extender.engine.preemption.rules import V1_36
from extender.engine.runtime.registry import Registry
from extender.testing import make_pod
from extender.values.config.configuration import Configuration
from reprieve import Cluster, Placement, plugin as fwk
from reprieve.sources.configurations import with_plugins
from reprieve.sources.manifest_files import state_of
from tests.kit.tables import cases
from tests.kit.told_scheduler import NOON, ToldScheduler
from tests.reprieve.test_library import NO_PREEMPTION, node, pod

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_plugin_that_raises_is_told_in_the_answer_alone() -> None:
    """Not on stderr, where a script or a notebook prints."""
    code = """
from reprieve import Cluster, Placement, plugin as fwk
from tests.reprieve.test_library import node, pod


class Raises(fwk.ReservePlugin, fwk.PreEnqueuePlugin):
    def pre_enqueue(self, pod):
        return fwk.SUCCESS if pod.name == "a" else 1 / 0

    def reserve(self, state, pod, node):
        raise ValueError("no room")

    unreserve = reserve


with Cluster.load([node("n")]).trial(plugins=[Raises]) as trial:
    for name in ("a", "b"):
        print(trial.schedule(pod(name))[0].message)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)

    reserve, enqueue = done.stdout.splitlines()
    assert reserve.startswith('running Reserve plugin "Raises": no room')
    assert enqueue.startswith('running PreEnqueue plugin "Raises": division by zero')
    assert done.stderr == ""


@pytest.mark.slow
def test_trial_that_is_left_open_ends_in_silence() -> None:
    """Also where something was reserved, and the interpreter ends first."""
    code = """
from reprieve import Cluster, Placement, plugin as fwk
from tests.reprieve.test_library import node, pod


class Reserves(fwk.ReservePlugin):
    def reserve(self, state, pod, node):
        return fwk.SUCCESS

    def unreserve(self, state, pod, node):
        print("taken back")


trial = Cluster.load([node("n"), node("m"), pod("a"), pod("b", on="n")]).trial(plugins=[Reserves])
trial.schedule()
for name in ("n", "m"):
    trial.drain(name)
    trial.schedule()
holder = type("Holder", (), {"trial": trial})()
holder.itself = holder
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)

    assert done.stderr == ""


class FailsOnB(fwk.FilterPlugin):
    looks_only_at_node = True
    looks_at_pods = False

    def filter(self, state: Any, pod: Any, rows: Any) -> Any:
        if "b" in rows.names:
            raise ValueError("no answer for b")
        return fwk.reject(np.zeros(len(rows), np.bool_), "")


@cases(
    "b, pods, more, nodes",
    ("too small a node", node("b", "1"), [], {}, None),
    ("a node that is full", node("b"), [pod("full", "4", on="b")], {}, None),
    (
        "a node that is kept for another pod",
        node("b"),
        [pod("first", "4", priority=9) | {"status": {"nominatedNodeName": "b"}}],
        {},
        None,
    ),
    ("others", node("b", **{"kubernetes.io/hostname": "b"}), [], {"nodeSelector": {"zone": "x"}}, None),
    ("a node that is not asked about", node("b"), [], {}, ["a"]),
)
def test_filter_that_fails_on_a_node_that_is_out_of_the_question_fails_no_pod(
    b: dict[str, Any], pods: list[dict[str, Any]], more: dict[str, Any], nodes: list[str] | None
) -> None:
    with Cluster.load([node("a", zone="x"), b, *pods]).trial(plugins=[FailsOnB]) as trial:
        for name in ("one", "two"):
            assert trial.schedule(pod(name, "2", **more), nodes=nodes)[0] == Placement(f"default/{name}", "a")


def test_filter_that_fails_on_a_node_in_question_fails_the_pod() -> None:
    with Cluster.load([node("a"), node("b")]).trial(plugins=[FailsOnB]) as trial:
        assert trial.schedule(pod("one"))[0].message.startswith('running "FailsOnB" filter plugin: no answer for b')


class KeepsCaches(fwk.PostFilterPlugin):
    chooses_candidates = True
    preemption_rules = replace(V1_36, may_go=lambda victim: "keep" not in victim.labels, criteria=[fewest_victims])

    async def post_filter(self, state: Any, pod: Any, statuses: Any) -> Any:
        outcome = await Evaluator(self.handle, lambda num_nodes: (0, num_nodes), self.preemption_rules).preempt(
            state, pod, statuses
        )
        return fwk.PostFilterResult(outcome.status, outcome.nominated_node, outcome.chosen, outcome)


def with_caches() -> Cluster:
    cached_pod = pod("a", "4", on="n0", priority=0)
    cached_pod["metadata"]["labels"]["keep"] = "y"
    few = [pod("b1", "2", on="n1", priority=0), pod("b2", "2", on="n1", priority=0)]
    return Cluster.load([node("n0"), node("n1"), node("n2"), cached_pod, *few, pod("c", "4", on="n2", priority=5)])


def test_own_preemption_takes_the_place_of_the_default_one() -> None:
    with with_caches().trial(plugins=[KeepsCaches]) as trial:
        answer = trial.preempt(pod("w", "4", priority=10))

    assert (answer.node, [victim.pod.key for victim in answer.victims]) == ("n2", ["default/c"])
    assert [(candidate.node, candidate.why_not) for candidate in answer.candidates] == [
        ("n2", ""),
        ("n1", "2 pods would have to go, on n2 1"),
    ]


def test_default_preemption_that_a_configuration_names_stays() -> None:
    profile = {"plugins": {"postFilter": {"enabled": [{"name": "DefaultPreemption"}]}}}
    with with_caches().trial({**NO_PREEMPTION, "profiles": [profile]}, plugins=[KeepsCaches]) as trial:
        assert trial.preempt(pod("w", "4", priority=10)).node == "n0"


def highest_sum_of_priorities(candidates: Candidates) -> Any:
    return -lowest_sum_of_priorities(candidates)


def own_hours(candidates: Candidates) -> Any:
    """A fraction for each candidate."""
    return np.where(np.diff(candidates.first) == 1, 0.75, 0.25)


BY_CRITERIA = pytest.mark.parametrize(
    ("criteria", "node", "why_not"),
    [
        (
            [lowest_sum_of_priorities],
            "n2",
            "evicting its 2 pods costs more priority in all than evicting the 1 pod on n2",
        ),
        ([latest_start_time, lowest_first_priority], "n1", "its most important victim has priority 5, on n1 it is 0"),
        ([highest_sum_of_priorities], "n1", "highest_sum_of_priorities prefers n1"),
        ([latest_start_time], "n1", "ties with n1 on every criterion"),
        ([own_hours], "n2", "own_hours prefers n2"),
        ([], "n1", "ties with n1 on every criterion"),
    ],
)


@BY_CRITERIA
def test_loser_is_told_by_the_criteria_of_an_own_preemption(criteria: list[Any], node: str, why_not: str) -> None:
    rules = {"preemption_rules": replace(KeepsCaches.preemption_rules, criteria=criteria)}
    with with_caches().trial(plugins=[type("ByCriteria", (KeepsCaches,), rules)]) as trial:
        answer = trial.preempt(pod("w", "4", priority=10))

    assert (answer.node, [candidate.why_not for candidate in answer.candidates]) == (node, ["", why_not])


@BY_CRITERIA
async def test_loser_of_an_own_preemption_is_told_alike_from_the_records(
    criteria: list[Any], node: str, why_not: str
) -> None:
    rules = {"preemption_rules": replace(KeepsCaches.preemption_rules, criteria=criteria)}
    plugins: dict[str, Any] = {"ByCriteria": type("ByCriteria", (KeepsCaches,), rules)}
    records = Records(now=NOON.timestamp)
    configuration = with_plugins(Configuration(), plugins, plugins)
    scheduling = ToldScheduler(records, configuration, plugins=Registry(IN_TREE, (), also=plugins))
    with with_caches().trial() as trial:
        scheduling.comes(*state_of(trial.objects()).items(), make_pod("w").uid("w").req(cpu=4).priority(10))
    await scheduling.decides()

    (record,) = records.preemptions()
    read_again = msgspec.json.decode(msgspec.json.encode(record), type=PreemptionRecord)
    for answer in map(history.preemption, (record, read_again)):
        assert (answer.node, [candidate.why_not for candidate in answer.candidates]) == (node, ["", why_not])
