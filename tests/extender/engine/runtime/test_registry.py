"""Which plugins there are: the in-tree ones and strangers'. What is wrong with a stranger is said at start, by name and
all at once.
"""

import random
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import ENTRY_POINTS, Registry
from extender.engine.snapshot import Rows
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.config.configuration import ConfigErrors
from extender.values.config.loading import load
from tests.extender.engine.runtime.out_of_tree import Spare
from tests.kit.places import without_place
from tests.kit.tables import cases

STRANGERS = "tests.extender.engine.runtime.out_of_tree"


def entry(name: str, value: str = "") -> EntryPoint:
    """The entry point of a plugin in strangers.py, or of anything else."""
    return EntryPoint(name, value or f"{STRANGERS}:{name}", ENTRY_POINTS)


def registry(*entries: EntryPoint) -> Registry:
    return Registry(IN_TREE, entries)


def refusals(*entries: EntryPoint) -> dict[str, str]:
    """Path -> what is said at start about these entry points."""
    with pytest.raises(ConfigErrors) as caught:
        registry(*entries)
    return {error.field: error.message for error in caught.value.errors}


def frameworks(with_plugins: Registry, *profiles: str) -> dict[str, Framework]:
    """One framework a profile, each as YAML in flow style."""
    listed = "".join(f"\n- {profile}" for profile in profiles)
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:{listed}\n"
    return with_plugins.make_frameworks(load(text), random.Random(0))


def framework(with_plugins: Registry, profile: str) -> Framework:
    (only,) = frameworks(with_plugins, profile).values()
    return only


# A stranger that works.


@pytest.mark.parametrize("name", ["Spare", "OneByOne"])
def test_out_of_tree_plugin_runs_at_the_points_of_its_base_classes(name: str) -> None:
    """Enabled at multiPoint, beside the in-tree plugins and after them."""
    snapshot = make_snapshot(
        *(make_node(f"n{spare}").capacity(cpu=1).label(spare=str(spare)) for spare in range(3)),
        make_node("n").capacity(cpu=1),
    )
    built = framework(registry(entry(name)), f"{{plugins: {{multiPoint: {{enabled: [{{name: {name}, weight: 7}}]}}}}}}")
    state = Cycle(built, snapshot, make_pod().obj())

    state.run_pre_filter_plugins()
    verdicts = state.run_filter_plugins(Rows.of(snapshot))
    feasible = Rows.of(snapshot).take(verdicts.ok)
    state.run_pre_score_plugins(feasible)
    scores = state.run_score_plugins(feasible)

    assert [name for name, _ in built.plugins.filter][-1] == name
    assert verdicts.status_of(2).plugin == name
    assert dict(zip(feasible.names, scores.weighted[name].tolist(), strict=True)) == {"n0": 700, "n1": 0, "n": 700}


def test_out_of_tree_plugin_runs_only_where_it_is_enabled() -> None:
    profile = framework(registry(entry("Spare")), "{plugins: {score: {enabled: [{name: Spare, weight: 2}]}}}")

    assert "Spare" not in [name for name, _ in profile.plugins.filter]
    assert [(scorer.name, scorer.weight) for scorer in profile.plugins.score][-1] == ("Spare", 2)


def test_out_of_tree_plugin_gets_its_arguments_as_written() -> None:
    profile = framework(
        registry(entry("Picky")),
        "{plugins: {filter: {enabled: [{name: Picky}]}}, pluginConfig: [{name: Picky, args: {size: 3, unknown: [a]}}]}",
    )

    name, plugin = profile.plugins.filter[-1]
    assert (name, plugin.arguments) == ("Picky", {"size": 3, "unknown": ["a"]})


def test_a_plugin_goes_by_the_name_it_is_registered_under() -> None:
    """Not by its class's: a profile, a message and the registry must mean the same."""
    profile = framework(
        registry(entry("Reserve-2", f"{STRANGERS}:Spare")), "{plugins: {filter: {enabled: [{name: Reserve-2}]}}}"
    )

    assert [name for name, _ in profile.plugins.filter][-1] == "Reserve-2"


def test_a_plugin_is_made_once_a_profile() -> None:
    enabled = "plugins: {multiPoint: {enabled: [{name: Spare}]}}"

    built = frameworks(registry(entry("Spare")), f"{{schedulerName: a, {enabled}}}", f"{{schedulerName: b, {enabled}}}")

    filters = {profile: framework.plugins.filter[-1][1] for profile, framework in built.items()}
    scorers = {profile: framework.plugins.score[-1].plugin for profile, framework in built.items()}
    assert all(filters[profile] is scorers[profile] for profile in "ab")  # type: ignore[comparison-overlap]
    assert filters["a"] is not filters["b"]


# Strangers that do not work.

NO_PLUGIN_CLASS = "is not a class derived from one of the plugin classes of reprieve.plugin"


@cases(
    "name, refusal",
    ("methods are missing", "Unfinished", "does not implement filter, pre_filter"),
    ("runs nowhere", "Pointless", "implements no extension point"),
    ("no plugin class", "Stray", NO_PLUGIN_CLASS),
    ("no class", "function", f"{NO_PLUGIN_CLASS}; decorate it with @fwk.node_filter or @fwk.node_score"),
    ("waits where it may not", "Hasty", "has an async def where nothing waits for it: write def filter, unreserve"),
)
def test_class_that_is_no_plugin_is_refused_by_name(name: str, refusal: str) -> None:
    assert refusals(entry(name)) == {f'plugin "{name}"': f"{STRANGERS}:{name} {refusal}"}


@cases(
    "source, refusal",
    ("import error", "import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
    ("syntax error", "class Plugin(:", "SyntaxError: "),
    ("anything else", "1 / 0", "ZeroDivisionError: division by zero"),
    ("no such class in it", "", "AttributeError: module 'a_plugin' has no attribute 'Plugin'"),
)
def test_plugin_that_cannot_be_loaded_is_refused_by_name(
    source: str, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_plugin.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_plugin", raising=False)

    refused = refusals(entry("Plugin", "a_plugin:Plugin"))

    assert list(refused) == ['plugin "Plugin"']
    assert refused['plugin "Plugin"'].startswith(f"cannot be loaded from a_plugin:Plugin: {refusal}")


def test_a_module_that_does_not_exist_is_refused_by_name() -> None:
    why = "ModuleNotFoundError: No module named 'no_such_module'"

    assert refusals(entry("Gone", "no_such_module:Gone")) == {
        'plugin "Gone"': f"cannot be loaded from no_such_module:Gone: {why}"
    }


@cases(
    "entries",
    ("by an in-tree plugin", [entry("NodeName", f"{STRANGERS}:Spare")]),
    ("by one of upstream's that is not here", [entry("GangScheduling", f"{STRANGERS}:Spare")]),
    ("by another stranger", [entry("A", f"{STRANGERS}:OneByOne"), entry("A", f"{STRANGERS}:Spare")]),
)
def test_a_name_that_is_taken_is_refused(entries: list[EntryPoint]) -> None:
    assert refusals(*entries) == {
        f'plugin "{entries[-1].name}"': f"the name is taken; {STRANGERS}:Spare must be registered under another one"
    }


@cases(
    "entries",
    ("a stranger", [entry("A", f"{STRANGERS}:Spare"), entry("B", f"{STRANGERS}:Spare")]),
    ("an in-tree plugin", [entry("B", "extender.engine.plugins.node_name:NodeName")]),
)
def test_one_class_has_one_name(entries: list[EntryPoint]) -> None:
    """Else a message that names the plugin would name the wrong one."""
    refused = refusals(*entries)

    assert refused == {
        'plugin "B"': f"{entries[-1].value} is registered under another name already; derive a separate class from it"
    }


def test_all_faulty_plugins_are_reported_at_once() -> None:
    absent, duplicate = entry("Gone", "no_such_module:Gone"), entry("NodeName", f"{STRANGERS}:OneByOne")

    refused = refusals(entry("Unfinished"), entry("Spare"), absent, duplicate)

    assert list(refused) == ['plugin "Unfinished"', 'plugin "Gone"', 'plugin "NodeName"']


# Profiles that ask for what there is not.


def create_error(with_plugins: Registry, *profiles: str) -> str:
    with pytest.raises(ConfigErrors) as caught:
        frameworks(with_plugins, *profiles)
    assert caught.value.stage == "create"
    return str(caught.value)


@cases(
    "plugins, error",
    ("unknown", "filter: {enabled: [{name: Nobody}]}", 'FilterPlugin "Nobody" does not exist'),
    ("not at this point", "permit: {enabled: [{name: Spare}]}", 'plugin "Spare" does not extend PermitPlugin plugin'),
)
def test_a_plugin_that_is_not_there_is_refused(plugins: str, error: str) -> None:
    text = create_error(registry(entry("Spare")), f"{{plugins: {{{plugins}}}}}")

    assert text == f"initializing profiles: creating profile for scheduler name default-scheduler: {error}"


def test_a_plugin_that_refuses_its_arguments_is_named() -> None:
    text = create_error(registry(entry("Picky")), "{plugins: {filter: {enabled: [{name: Picky}]}}}")

    assert text == (
        'initializing profile "default-scheduler": initializing plugin "Picky": size: a number is required '
        "(ValueError, runtime/out_of_tree.py, line 37)"
    )


def test_a_plugin_that_cannot_be_made_is_named() -> None:
    text = create_error(registry(entry("Shy")), "{plugins: {filter: {enabled: [{name: Shy}]}}}")

    assert text.startswith('initializing profile "default-scheduler": initializing plugin "Shy": ')
    assert "takes 1 positional argument but 3 were given" in text


def test_a_plugin_whose_hint_waits_for_something_is_named() -> None:
    text = create_error(registry(entry("Hinting")), "{plugins: {filter: {enabled: [{name: Hinting}]}}}")

    assert without_place(text) == (
        'initializing profile "default-scheduler": initializing plugin "Hinting": '
        "nothing waits for an async def: write def later"
    )


def test_a_queue_sort_plugin_that_cannot_be_made_is_named() -> None:
    text = create_error(
        registry(entry("BrokenQueueSort")),
        "{plugins: {queueSort: {enabled: [{name: BrokenQueueSort}], disabled: [{name: '*'}]}}}",
    )

    assert without_place(text) == (
        'initializing profile "default-scheduler": initializing plugin "BrokenQueueSort": no queue today'
    )


def test_all_plugins_that_cannot_be_made_are_named_at_once() -> None:
    enabled = "plugins: {filter: {enabled: [{name: Picky}, {name: Shy}]}}"

    text = create_error(
        registry(entry("Picky"), entry("Shy")), f"{{schedulerName: a, {enabled}}}", f"{{schedulerName: b, {enabled}}}"
    )

    for profile in "ab":
        for plugin in ("Picky", "Shy"):
            assert f'profile "{profile}": initializing plugin "{plugin}"' in text


def test_plugins_whose_classes_are_at_hand_need_no_entry_point() -> None:
    points = Registry(IN_TREE, (), also={"Spare": Spare}).points_of

    assert points["Spare"] == {"filter", "score"}
