"""What is remembered from pod to pod is exact: it is what asking everybody about every node gives."""

import random
from collections.abc import Callable, Hashable, Mapping
from typing import Final, final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.engine import framework as fwk
from extender.engine.cache import Cache
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.findings import diagnosis_of, find
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.memory import KEPT_SIGNATURE_BYTES, KEPT_SIGNATURES, kept_signatures, signature_of
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.registry import Registry
from extender.engine.runtime.scoring import select_host
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod, random_cluster
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import DeviceClass
from extender.values.objects.grouping import Namespace, Service
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.kit.examples import examples
from tests.kit.storage import make_claim, make_volume
from tests.kit.tables import cases


def default_framework() -> Framework:
    (framework,) = Registry(IN_TREE, ()).make_frameworks(Configuration(), random.Random(0)).values()
    return framework


def service(selector: Mapping[str, str]) -> Service:
    return convert(Service, {"metadata": {"name": "s"}, "spec": {"selector": selector}})


# Any sequence of pods and changes.


def variants(pod: Pod, chance: random.Random) -> list[Pod]:
    """Pods that differ from this one in one part of the spec each, which is that of another pod."""
    other = random_cluster(chance).pod
    parts = ("containers", "tolerations", "node_selector", "affinity")
    return [replaced(pod, spec=replaced(pod.spec, **{part: getattr(other.spec, part)})) for part in parts]


@final
class World:
    """A cluster that changes by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        cluster = random_cluster(chance)
        self.cache = make_cache(*cluster.nodes, pods=cluster.pods)
        self.nodes = {node.name: node for node in cluster.nodes}
        self.kinds = [
            cluster.pod,
            make_pod("plain").label(app="plain").req(cpu="500m").obj(),
            *variants(cluster.pod, chance),
        ]
        self.nominated: dict[str, list[Pod]] = {}
        self.count = 0

    def pod(self) -> Pod:
        """One more pod of a kind there was before: another name, perhaps another priority, else the same."""
        self.count += 1
        kind = self.chance.choice(self.kinds)
        meta = replaced(kind.metadata, name=f"p{self.count}", uid=str(self.count))
        spec = replaced(kind.spec, priority=self.chance.choice((None, 1)), node_name="")
        return replaced(kind, metadata=meta, spec=spec)

    def change(self) -> None:
        often = (self.pod_comes, self.pod_goes, self.node_changes)
        seldom = (self.node_comes_or_goes, self.nominate, self.service_changes, self.namespace_changes)
        self.chance.choice(often if self.chance.random() < 0.8 else seldom)()

    def pod_comes(self) -> None:
        pod = self.pod()
        self.cache.assume_pod(replaced(pod, spec=replaced(pod.spec, node_name=self.chance.choice([*self.nodes]))))

    def pod_goes(self) -> None:
        if self.cache.pods:
            self.cache.remove_pod(self.chance.choice(self.cache.pods))

    def node_changes(self) -> None:
        old = self.nodes[self.chance.choice([*self.nodes])]
        other = random_cluster(self.chance).nodes[0]
        self.nodes[old.name] = replaced(other, metadata=replaced(other.metadata, name=old.name))
        self.cache.update_node(old, self.nodes[old.name])

    def node_comes_or_goes(self) -> None:
        if len(self.nodes) > 1 and self.chance.random() < 0.5:
            self.cache.remove_node(self.nodes.pop(self.chance.choice([*self.nodes])))
            return
        self.count += 1
        node = make_node(f"new{self.count}").capacity(cpu=self.chance.choice((1, 4)), memory="4Gi").obj()
        self.nodes[node.name] = node
        self.cache.add_node(node)

    def nominate(self) -> None:
        self.nominated.setdefault(self.chance.choice([*self.nodes]), []).append(self.pod())

    def service_changes(self) -> None:
        kind = self.chance.choice(self.kinds)
        services = self.cache.objects.services
        if services.pop((kind.namespace, "s"), None) is None:
            services[kind.namespace, "s"] = service(kind.labels)

    def namespace_changes(self) -> None:
        kind = self.chance.choice(self.kinds)
        labels = {"team": self.chance.choice("ab")}
        self.cache.objects.namespaces[kind.namespace] = convert(
            Namespace, {"metadata": {"name": kind.namespace, "labels": labels}}
        )

    def nominations(self) -> Nominations:
        return Nominations(
            {node: tuple((self.cache.nominate(pod), pod) for pod in pods) for node, pods in self.nominated.items()}
        )


@settings(deadline=None, max_examples=examples(150))
@given(st.randoms(use_true_random=False))
def test_remembering_changes_no_answer(chance: random.Random) -> None:
    """Pods of a few kinds are asked about while pods come and go and nodes change. A framework that remembers says the
    same of each as one that does not: which nodes are feasible, and how good each is, or why none is.
    """
    world, remembering, plain = World(chance), default_framework(), default_framework()
    for _ in range(chance.randrange(1, 16)):
        for _ in range(chance.choice((0, 1, 1, 2))):
            world.change()
        pod, nominations = world.pod(), world.nominations()
        snapshot = world.cache.update_snapshot()

        remembered = Cycle(remembering, snapshot, pod, nominations)
        remembered.pod_signature = signature_of(pod)
        outcome = remembered.run_pre_filter_plugins()
        state = Cycle(plain, snapshot, pod, nominations)
        assert state.run_pre_filter_plugins() == outcome
        assert state.skip_filter_plugins == remembered.skip_filter_plugins
        if not outcome.status.is_success:
            continue
        rows = remembered.feasible_rows()
        totals = None
        if len(rows) > 1:
            remembered.run_pre_score_plugins(rows)
            totals = remembered.ranking(rows).total

        every = Rows.of(snapshot, state.within)
        feasible = every.take(state.run_filters_with_nominated_pods(every).ok)
        assert rows.names == feasible.names
        if not len(rows):
            with pytest.raises(FitError) as refused:
                SchedulingAlgorithm().schedule_pod(Cycle(remembering, snapshot, pod, nominations))
            why = diagnosis_of(state, find(state))
            assert refused.value.diagnosis.statuses.explicit == why.statuses.explicit
            assert refused.value.diagnosis.unschedulable_plugins == why.unschedulable_plugins
            assert str(refused.value) == fwk.fit_error_message(len(snapshot.nodes), why)
        if totals is not None:
            state.run_pre_score_plugins(feasible)
            assert state.skip_score_plugins == remembered.skip_score_plugins
            scores = state.run_score_plugins(feasible)
            assert totals.tolist() == scores.total.tolist()
            seed = chance.random()
            best = remembered.ranking(rows).best(random.Random(seed))
            assert best == feasible.node[select_host(scores.total, random.Random(seed))]
            few = np.array(chance.sample(range(len(rows)), min(3, len(rows))), np.intp)
            parts = remembered.scores_at(rows, few)
            assert parts.total.tolist() == totals[few].tolist()
            for part, whole in ((parts.raw, scores.raw), (parts.weighted, scores.weighted)):
                assert {name: per_row.tolist() for name, per_row in part.items()} == {
                    name: per_row[few].tolist() for name, per_row in whole.items()
                }


# What is not asked again.


@final
class Counts(fwk.FilterPlugin, fwk.ScorePlugin):
    """Looks only at the node, and notes which nodes it was asked about."""

    looks_only_at_node = True

    def __init__(self, *, fails: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self._fails = fails
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.filtered += rows.names
        if self._fails():
            raise RuntimeError("out of order")
        return fwk.reject(rows.pod_count > 1, "full")

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        self.scored += rows.names
        return np.asarray(100 - rows.pod_count)

    def nodes_asked(self) -> tuple[list[str], list[str]]:
        """The nodes it was asked about since the last time, by Filter and by Score."""
        answer = sorted(self.filtered), sorted(self.scored)
        self.filtered, self.scored = [], []
        return answer


def three_nodes() -> Cache:
    return make_cache(*(make_node(name) for name in "abc"))


def cycle(framework: Framework, cache: Cache, pod: Pod) -> tuple[list[str], list[int]]:
    """Feasible nodes and their totals."""
    state = Cycle(framework, cache.update_snapshot(), pod, NO_NOMINATIONS)
    state.run_pre_filter_plugins()
    rows = state.feasible_rows()
    state.run_pre_score_plugins(rows)
    return rows.names, state.ranking(rows).total.tolist()


def test_an_equal_pod_asks_about_nothing() -> None:
    plugin, cache = Counts(), three_nodes()
    framework = make_framework(plugin)
    first = cycle(framework, cache, make_pod("p").uid("1").obj())
    asked_first = plugin.nodes_asked()
    second = cycle(framework, cache, make_pod("q").uid("2").obj())

    assert first == second == (["a", "b", "c"], [100, 100, 100])
    assert asked_first == (["a", "b", "c"], ["a", "b", "c"])
    assert plugin.nodes_asked() == ([], [])


def test_only_the_nodes_that_changed_are_asked_about_again() -> None:
    plugin, cache = Counts(), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    plugin.nodes_asked()
    cache.assume_pod(make_pod("p").node("b").obj())

    assert cycle(framework, cache, make_pod("q").obj()) == (["a", "b", "c"], [100, 99, 100])
    assert plugin.nodes_asked() == (["b"], ["b"])


@final
class OnlyNode(fwk.FilterPlugin):
    """Looks only at the node, and at none of its pods."""

    looks_only_at_node = True
    looks_at_pods = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.asked.append(rows.names)
        return fwk.reject(rows.unschedulable, "cordoned")


def test_placed_pod_does_not_invalidate_a_filter_that_reads_nodes_only() -> None:
    """Every pod that is placed changes a node; such a Filter is asked again only when the node itself has changed."""
    plugin, cache = OnlyNode(), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    cache.assume_pod(make_pod("p").node("b").obj())
    cycle(framework, cache, make_pod("q").obj())
    cache.update_node(make_node("c").obj(), make_node("c").unschedulable().obj())

    assert cycle(framework, cache, make_pod("r").obj())[0] == ["a", "b"]
    assert plugin.asked == [["a", "b", "c"], ["c"]]


@cases(
    "other",
    ("other labels", make_pod("q").label(app="web")),
    ("other annotations", make_pod("q").annotation(team="red")),
    ("another namespace", make_pod("q").namespace("elsewhere")),
    ("another spec", make_pod("q").req(cpu=1)),
)
def test_another_kind_of_pod_asks_about_every_node(other: PodBuilder) -> None:
    plugin, cache = Counts(), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    plugin.nodes_asked()
    cycle(framework, cache, other.obj())

    assert plugin.nodes_asked() == (["a", "b", "c"], ["a", "b", "c"])


def test_when_the_nodes_are_numbered_anew_everything_is_asked_again() -> None:
    plugin, cache = Counts(), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    plugin.nodes_asked()
    cache.remove_node(make_node("a").obj())
    cache.add_node(make_node("z").obj())

    assert cycle(framework, cache, make_pod("q").obj())[0] == ["b", "c", "z"]
    assert plugin.nodes_asked() == (["b", "c", "z"], ["b", "c", "z"])


def test_another_cluster_has_another_memory() -> None:
    """Two caches count their generations apart."""
    plugin, cache, other_cache = Counts(), three_nodes(), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    for name in ("x", "y"):
        other_cache.add_pod(make_pod(name).node("a").obj())

    assert cycle(framework, other_cache, make_pod("q").obj())[0] == ["b", "c"]
    assert cycle(framework, cache, make_pod("r").obj())[0] == ["a", "b", "c"]


def test_a_plugin_that_failed_is_asked_again() -> None:
    """Half an answer is not remembered."""
    fails = iter((False, True, True, False))  # alone, and among the others
    plugin, cache = Counts(fails=lambda: next(fails)), three_nodes()
    framework = make_framework(plugin)
    cycle(framework, cache, make_pod("p").obj())
    for name in ("x", "y"):
        cache.add_pod(make_pod(name).node("a").obj())
    with pytest.raises(PluginError):
        cycle(framework, cache, make_pod("q").obj())

    assert cycle(framework, cache, make_pod("r").obj())[0] == ["b", "c"]


def test_skipped_filter_is_not_remembered_for_the_next_pod() -> None:
    class Sometimes(fwk.PreFilterPlugin, fwk.FilterPlugin):
        looks_only_at_node = True

        def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
            return fwk.PreFilterResult(fwk.SKIP if pod.name == "lucky" else fwk.SUCCESS)

        def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
            return fwk.reject(np.ones(len(rows), np.bool_), "no")

    framework, cache = make_framework(Sometimes, Counts()), three_nodes()

    feasible = [cycle(framework, cache, make_pod(name).obj())[0] for name in ("p", "lucky", "q", "lucky")]
    assert [len(names) for names in feasible] == [0, 3, 0, 3]


def test_no_more_than_so_many_kinds_are_remembered() -> None:
    """The kind longest unasked is forgotten, which costs asking and changes nothing."""
    plugin, cache = Counts(), three_nodes()
    framework = make_framework(plugin)
    capacity = kept_signatures(num_nodes=3)
    for number in (0, *range(1, capacity), 0, capacity):
        cycle(framework, cache, make_pod("p").label(kind=str(number)).obj())
    plugin.nodes_asked()
    cycle(framework, cache, make_pod("p").label(kind="0").obj())
    remembered = plugin.nodes_asked()
    cycle(framework, cache, make_pod("p").label(kind="1").obj())

    assert remembered == ([], [])
    assert plugin.nodes_asked() == (["a", "b", "c"], ["a", "b", "c"])


@pytest.mark.parametrize(("num_nodes", "expected"), [(0, 1024), (100, 1024), (5_000, 209), (100_000, KEPT_SIGNATURES)])
def test_fewer_kinds_are_remembered_the_more_nodes_there_are(num_nodes: int, expected: int) -> None:
    assert kept_signatures(num_nodes) == expected


def test_a_large_pod_has_no_large_signature() -> None:
    large = [signature_of(make_pod("p").annotation(text=KEPT_SIGNATURE_BYTES * letter).obj()) for letter in "aab"]

    assert large[0] == large[1] != large[2]
    assert len(large[0]) < KEPT_SIGNATURE_BYTES


# Pods that a plugin cannot tell apart share what it answered.


@final
class LooksAtOneLabel(fwk.SignPlugin, fwk.FilterPlugin, fwk.ScorePlugin):
    """Looks at one label of the pod, and notes which nodes it was asked about."""

    looks_only_at_node = True

    def __init__(self, *, signs: Callable[[str], object] = lambda tier: tier) -> None:
        super().__init__()
        self._signs = signs
        self.asked: list[str] = []

    def sign_pod(self, pod: fwk.Pod) -> Hashable:
        return self._signs(pod.labels.get("tier", ""))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        self.asked += rows.names
        return fwk.reject(rows.pod_count >= (2 if "tier" in pod.labels else 1), "full")

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        self.asked += rows.names
        return np.asarray(len(pod.labels.get("tier", "")) - rows.pod_count + 10)


def test_pods_that_a_plugin_cannot_tell_apart_share_what_it_answered() -> None:
    plugin, cache = LooksAtOneLabel(), three_nodes()
    framework = make_framework(plugin)
    first = cycle(framework, cache, make_pod("p").label(tier="web", app="one").obj())
    plugin.asked.clear()
    cache.assume_pod(make_pod("p").node("b").obj())
    second = cycle(framework, cache, make_pod("q").label(tier="web", app="two").obj())

    assert (first, second) == ((["a", "b", "c"], [13, 13, 13]), (["a", "b", "c"], [13, 12, 13]))
    assert plugin.asked == ["b", "b"]


def test_pods_that_a_plugin_can_tell_apart_do_not() -> None:
    plugin, cache = LooksAtOneLabel(), three_nodes()
    framework = make_framework(plugin)
    cache.assume_pod(make_pod("p").node("b").obj())
    with_tier = cycle(framework, cache, make_pod("p").label(tier="web").obj())
    without_tier = cycle(framework, cache, make_pod("q").obj())

    assert (with_tier, without_tier) == ((["a", "b", "c"], [13, 12, 13]), (["a", "c"], [10, 10]))


def test_a_plugin_that_does_not_sign_pods_keeps_those_beside_it_from_sharing() -> None:
    """Their answers are kept as one, for equal pods only."""
    plugin, other, cache = LooksAtOneLabel(), Counts(), three_nodes()
    framework = make_framework(plugin, other)
    cycle(framework, cache, make_pod("p").label(app="one").obj())
    plugin.asked.clear()
    cycle(framework, cache, make_pod("q").label(app="two").obj())

    assert plugin.asked == ["a", "b", "c", "a", "b", "c"]


@cases("signs", ("a list", lambda tier: [tier]), ("raises", lambda tier: tier.missing))
def test_a_signature_that_cannot_be_compared_is_the_fault_of_the_plugin(signs: Callable[[str], object]) -> None:
    framework, cache = make_framework(LooksAtOneLabel(signs=signs)), three_nodes()
    with pytest.raises(PluginError, match="LooksAtOneLabel"):
        cycle(framework, cache, make_pod("p").obj())


def test_an_image_that_more_nodes_have_counts_for_more_once_the_node_gets_a_pod() -> None:
    """As upstream, which counts the nodes with an image again for a node that changed."""

    def node(name: str, image: str) -> Node:
        return make_node(name).capacity(cpu=8, memory="8Gi", pods=9).image(image, size=900 * 2**20).obj()

    framework, cache = default_framework(), make_cache(node("a", "app:1"), node("b", "other:1"), node("c", "other:1"))
    pods = [make_pod(name).image("app:1").obj() for name in "pq"]
    before = signed_cycle(framework, cache, pods[0])
    cache.update_node(node("b", "other:1"), node("b", "app:1"))
    cache.assume_pod(make_pod("x").node("a").obj())
    after = signed_cycle(framework, cache, pods[1])
    fresh = signed_cycle(default_framework(), cache, pods[1])

    assert before[1:] != after[1:] == fresh[1:]


# Plugins that skip equal pods.


@final
class SkipsUnlabelled(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin):
    """Skips pods without labels, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.times_asked = 0

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(self._answer(pod))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.node > 0, "not the first")

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        return self._answer(pod)

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.full(len(rows), 7)

    def _answer(self, pod: fwk.Pod) -> fwk.Status:
        self.times_asked += 1
        return fwk.SUCCESS if pod.labels else fwk.SKIP_EQUAL_PODS


@final
class RefusesWhenTold(fwk.PreFilterPlugin):
    """Refuses every pod for good, from when it is told to."""

    refuses = False

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(fwk.unresolvable("told to") if self.refuses else fwk.SUCCESS)


def signed_cycle(framework: Framework, cache: Cache, pod: Pod) -> tuple[Cycle, list[str], list[int]]:
    """The cycle, its feasible nodes and their totals, as the scheduler runs it."""
    state = Cycle(framework, cache.update_snapshot(), pod)
    state.pod_signature = signature_of(pod)
    if not state.run_pre_filter_plugins().status.is_success:
        return state, [], []
    rows = state.feasible_rows()
    state.run_pre_score_plugins(rows)
    return state, rows.names, state.ranking(rows).total.tolist()


def test_equal_pods_have_equal_totals_where_a_node_is_full() -> None:
    """The scores of the full node are taken out of the totals of a decision, and not of what is remembered."""
    cache = make_cache(*(make_node(name) for name in "abc"), pods=[make_pod(f"p{n}").node("a") for n in range(2)])
    framework = make_framework(Counts())
    answers = [signed_cycle(framework, cache, make_pod(f"q{n}").uid(str(n)).obj())[1:] for n in range(3)]

    assert answers == [(["b", "c"], [100, 100])] * 3


def test_no_node_is_feasible_where_there_is_none() -> None:
    state = Cycle(make_framework(Counts()), make_cache().update_snapshot(), make_pod("p").obj())
    state.run_pre_filter_plugins()

    assert state.feasible_rows().names == []


def test_a_plugin_that_skips_equal_pods_is_asked_about_the_first_of_them_only() -> None:
    plugin, cache = SkipsUnlabelled(), three_nodes()
    framework = make_framework(plugin)
    first = signed_cycle(framework, cache, make_pod("p").uid("1").obj())
    assert first[1:] == (["a", "b", "c"], [0, 0, 0])
    times = plugin.times_asked
    second = signed_cycle(framework, cache, make_pod("q").uid("2").obj())
    assert second[1:] == first[1:]
    assert second[0].skip_filter_plugins == second[0].skip_score_plugins == {"SkipsUnlabelled"}
    assert plugin.times_asked == times


def test_a_plugin_that_skips_equal_pods_is_asked_about_other_pods() -> None:
    plugin, cache = SkipsUnlabelled(), three_nodes()
    framework = make_framework(plugin)
    signed_cycle(framework, cache, make_pod("p").uid("1").obj())
    labelled = signed_cycle(framework, cache, make_pod("q").uid("2").label(a="b").obj())
    assert labelled[1:] == (["a"], [7])


def test_a_plugin_after_one_that_refuses_a_pod_did_not_skip_it_even_if_it_skips_equal_pods() -> None:
    """As upstream, where the points after a refusal find that the plugin did not run."""
    refusing, skipping, cache = RefusesWhenTold(), SkipsUnlabelled(), three_nodes()
    framework = make_framework(refusing, skipping)
    assert signed_cycle(framework, cache, make_pod("p").uid("1").obj())[0].skip_filter_plugins == {"SkipsUnlabelled"}
    refusing.refuses = True
    assert signed_cycle(framework, cache, make_pod("q").uid("2").obj())[0].skip_filter_plugins == frozenset()


def test_a_sampled_cycle_measures_the_plugins_that_run_and_none_whose_answer_is_kept() -> None:
    plugin, cache, observed = SkipsUnlabelled(), three_nodes(), list[tuple[str, str]]()
    framework = make_framework(plugin)
    for number in range(2):
        pod = make_pod("p").uid(str(number)).obj()
        state = Cycle(
            framework, cache.update_snapshot(), pod, observe=lambda *call: observed.append((call[1], call[3]))
        )
        state.pod_signature = signature_of(pod)
        state.run_pre_filter_plugins()
    assert observed == [("SkipsUnlabelled", "Skip")]


@final
class KeepsTheNamespace(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin):
    """Lets a pod pass only where the state holds what PreFilter and PreScore wrote; counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.times_asked = 0

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(self._answer(state, pod, FILTERED_NAMESPACE))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(np.full(len(rows), state.read(FILTERED_NAMESPACE) != pod.namespace), "of another namespace")

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        return self._answer(state, pod, SCORED_NAMESPACE)

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.full(len(rows), len(state.read(SCORED_NAMESPACE)))

    def _answer(self, state: fwk.CycleState, pod: fwk.Pod, key: fwk.StateKey[str]) -> fwk.Status:
        self.times_asked += 1
        state.write(key, pod.namespace)
        return fwk.SUCCESS_EQUAL_PODS


FILTERED_NAMESPACE: Final = fwk.StateKey[str]("filtered namespace")
SCORED_NAMESPACE: Final = fwk.StateKey[str]("scored namespace")


def test_a_plugin_that_succeeds_for_equal_pods_is_asked_once_and_its_state_is_in_all_their_cycles() -> None:
    plugin, cache = KeepsTheNamespace(), three_nodes()
    framework = make_framework(plugin)
    for uid in "123":
        result = signed_cycle(framework, cache, make_pod("p").namespace("ns").uid(uid).obj())
        assert result[1:] == (["a", "b", "c"], [2, 2, 2])
    assert plugin.times_asked == 2
    assert signed_cycle(framework, cache, make_pod("p").namespace("other").uid("4").obj())[2] == [5, 5, 5]
    assert plugin.times_asked == 4


def test_a_plugin_after_one_that_refuses_a_pod_has_no_state_even_if_it_succeeds_for_equal_pods() -> None:
    """As upstream, where PostFilter finds no state of a plugin that did not run."""
    refusing, keeping, cache = RefusesWhenTold(), KeepsTheNamespace(), three_nodes()
    framework = make_framework(refusing, keeping)
    assert signed_cycle(framework, cache, make_pod("p").uid("1").obj())[0].find(FILTERED_NAMESPACE) == "default"
    refusing.refuses = True
    assert signed_cycle(framework, cache, make_pod("q").uid("2").obj())[0].find(FILTERED_NAMESPACE) is None


def test_a_pod_has_default_spread_constraints_as_soon_as_a_service_selects_it() -> None:
    """Which of them a pod has does not follow from the pod alone, so that PodTopologySpread is asked about each pod."""
    framework, cache = default_framework(), three_nodes()
    pod = make_pod("p").label(app="a")
    assert "PodTopologySpread" in signed_cycle(framework, cache, pod.uid("1").obj())[0].skip_score_plugins
    cache.objects.services["default", "s"] = service({"app": "a"})
    assert "PodTopologySpread" not in signed_cycle(framework, cache, pod.uid("2").obj())[0].skip_score_plugins


def test_a_pod_needs_devices_as_soon_as_a_device_class_backs_its_extended_resource() -> None:
    framework, cache = default_framework(), make_cache(make_node("a").capacity({"example.com/gpu": 1}))
    pod = make_pod("p").req({"example.com/gpu": "1"})
    assert "DynamicResources" in signed_cycle(framework, cache, pod.uid("1").obj())[0].skip_filter_plugins
    backing = convert(DeviceClass, {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": "example.com/gpu"}})
    cache.objects.device_classes["gpus"] = backing
    assert "DynamicResources" not in signed_cycle(framework, cache, pod.uid("2").obj())[0].skip_filter_plugins
    del cache.objects.device_classes["gpus"]
    assert "DynamicResources" in signed_cycle(framework, cache, pod.uid("3").obj())[0].skip_filter_plugins


def test_a_pod_is_asked_about_as_soon_as_its_volume_has_a_zone() -> None:
    framework, cache = default_framework(), three_nodes()
    cache.objects.pvs["v"] = make_volume("v", claim="c")
    cache.objects.pvcs["default", "c"] = make_claim("c", volume="v")
    pod = make_pod("p").claim("c")
    assert "VolumeZone" in signed_cycle(framework, cache, pod.uid("1").obj())[0].skip_filter_plugins
    cache.objects.pvs["v"] = make_volume("v", claim="c", labels={"topology.kubernetes.io/zone": "z"})
    assert "VolumeZone" not in signed_cycle(framework, cache, pod.uid("2").obj())[0].skip_filter_plugins
