"""How what a profile says is merged with the defaults, and who runs where in the end."""

import pytest

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.profiles import resolve, resolve_all
from extender.engine.runtime.registry import Registry
from extender.values.config.completion import complete
from extender.values.config.configuration import (
    ConfigErrors,
    Configuration,
    Extender,
    ExtenderManagedResource,
    PluginConfig,
    Profile,
)
from extender.values.config.plugin_args import NodeResourcesFitArgs
from extender.values.config.plugin_sets import (
    DEFAULT_PLUGINS,
    EXTENSION_POINTS,
    PluginRef,
    PluginSet,
    merge_set,
    plugins,
)
from tests.kit.tables import cases

POINTS_OF = {
    "Queue": {"queueSort"},
    "Binder": {"bind"},
    "A": {"filter", "score"},
    "B": {"filter", "score"},
    "C": {"filter", "score"},
    "Filter": {"filter"},
}
NEEDED = "Queue Binder"
NO_STRATEGY = NodeResourcesFitArgs(scoring_strategy=None)

POINTS = Registry(IN_TREE, []).points_of


def listed(text):
    """Plugins as in `A B=3`: with the weight after the equals sign."""
    pairs = [item.partition("=") for item in text.split()]
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def plugin_set(enabled="", disabled=""):
    return PluginSet(listed(enabled), listed(disabled))


def profile(name="p", args=(), **sets):
    """A profile with just these sets; Queue and Binder are at `multiPoint` unless that is given."""
    return Profile(
        scheduler_name=name, plugins=plugins(**{"multiPoint": plugin_set(NEEDED), **sets}), plugin_configs=tuple(args)
    )


def refusal(act):
    with pytest.raises(ConfigErrors) as caught:
        act()
    assert caught.value.stage == "create"
    return str(caught.value)


@cases(
    "default, custom, enabled, disabled",
    ("nothing said, nothing changed", "A=1 B=2", ("", ""), "A=1 B=2", ""),
    ("what is added comes last", "A=1 B=2", ("C=3", ""), "A=1 B=2 C=3", ""),
    ("a new weight leaves a plugin in its place", "A=1 B=2", ("A=9", ""), "A=9 B=2", ""),
    ("what is disabled is gone", "A=1 B=2", ("", "A"), "B=2", "A"),
    ("an asterisk disables all", "A=1 B=2", ("", "*"), "", "*"),
    ("but what is enabled", "A=1 B=2", ("B=5 A=6", "*"), "B=5 A=6", "*"),
    ("disabled and enabled: moved to the end", "A=1 B=2", ("A=3", "A"), "B=2 A=3", "A"),
    ("of two the last replaces; the other stays to be refused later", "A=1", ("A=2 A=3", ""), "A=3 A=2", ""),
    ("a disabled plugin has no weight", "A=1 B=2", ("", "B=7"), "A=1", "B"),
)
def test_a_set_is_merged_with_the_default_one(default, custom, enabled, disabled):
    assert merge_set(plugin_set(default), plugin_set(*custom)) == plugin_set(enabled, disabled)


def test_default_disabled_plugins_stay_disabled():
    assert merge_set(plugin_set("A B", "B"), plugin_set("", "C")) == plugin_set("A", "C B")


@cases(
    "multi_point, enabled, disabled, runs",
    ("multiPoint in its order", "A Filter B", "", "", "A Filter B"),
    ("only those that implement the point, and not the queue sort and bind plugins, too", "A", "", "", "A"),
    ("named ones come after", "A B", "C", "", "A B C"),
    ("unless multiPoint has them, too: then before, in the order in which they are named", "A B C", "C B", "", "C B A"),
    ("all three parts", "A B", "Filter B C", "", "B A Filter C"),
    ("disabled at the point", "A B C", "", "B", "A C"),
    ("disabled and named at the point: last", "A B C", "B", "B", "A C B"),
    ("with an asterisk multiPoint adds nothing", "A B C", "C", "*", "C"),
)
def test_multi_point_is_expanded_at_every_point(multi_point, enabled, disabled, runs):
    at_all_points = plugin_set(f"{NEEDED} {multi_point}")

    resolved = resolve(profile(multiPoint=at_all_points, filter=plugin_set(enabled, disabled)), POINTS_OF)

    assert resolved.plugins["filter"] == tuple(runs.split())


@cases(
    "multi_point, score, disabled, weights",
    ("from multiPoint", "A=2 B=3", "", "", {"A": 2, "B": 3}),
    ("none is 1", "A B", "", "", {"A": 1, "B": 1}),
    ("the point's own weight goes before", "A=2 B=3", "B=7", "", {"B": 7, "A": 2}),
    ("even if it is not given", "A=2 B=3", "B", "", {"B": 1, "A": 2}),
    ("disabled plugins have none", "A=2 B=3", "", "A", {"B": 3}),
    ("a negative weight passes where it is the last", "Filter=5 A=-2", "", "", {"A": -2}),
)
def test_weights(multi_point, score, disabled, weights):
    at_all_points = plugin_set(f"{NEEDED} {multi_point}")

    resolved = resolve(profile(multiPoint=at_all_points, score=plugin_set(score, disabled)), POINTS_OF)

    assert list(resolved.score_weights.items()) == list(weights.items())


@cases(
    "sets, error",
    ("unknown", {"filter": plugin_set("X")}, 'FilterPlugin "X" does not exist'),
    ("unknown at multiPoint", {"multiPoint": plugin_set("X")}, 'PreFilterPlugin "X" does not exist'),
    ("cannot run there", {"permit": plugin_set("A")}, 'plugin "A" does not extend PermitPlugin plugin'),
    ("nor there", {"placementGenerate": plugin_set("A")}, 'plugin "A" does not extend PlacementGeneratePlugin plugin'),
    ("named twice", {"score": plugin_set("A A")}, 'plugin "A" already registered as "ScorePlugin"'),
    (
        "twice at multiPoint",
        {"multiPoint": plugin_set(f"{NEEDED} A A")},
        'plugin "A" already registered as "FilterPlugin"',
    ),
    (
        "no queue sort plugin",
        {"multiPoint": plugin_set("Binder")},
        'only one queue sort plugin required for profile with scheduler name "p", but got 0',
    ),
    (
        "no bind plugin",
        {"multiPoint": plugin_set("Queue")},
        'at least one bind plugin is needed for profile with scheduler name "p"',
    ),
    (
        "negative, and not the last",
        {"score": plugin_set("A=-1 B")},
        "score plugins: total score of Score plugins could overflow",
    ),
    (
        "the first point's error",
        {"score": plugin_set("X"), "filter": plugin_set("Y")},
        'FilterPlugin "Y" does not exist',
    ),
)
def test_invalid_plugin_set_is_refused_in_upstreams_words(sets, error):
    assert refusal(lambda: resolve(profile(**sets), POINTS_OF)) == error


def test_every_default_plugin_runs_wherever_it_can():
    resolved = resolve(Profile(), POINTS)

    names = [plugin.name for plugin in DEFAULT_PLUGINS["multiPoint"].enabled]
    assert resolved.plugins == {
        point: tuple(name for name in names if point in POINTS[name]) for point in EXTENSION_POINTS
    }


def test_profiles_are_worked_out_by_name():
    resolved = resolve_all(Configuration(profiles=(profile("a"), profile("b"))), POINTS_OF)

    assert list(resolved) == ["a", "b"]


@cases(
    "profiles, error",
    (
        "the profile is named",
        [profile("a"), profile("b", filter=plugin_set("X"))],
        'creating profile for scheduler name b: FilterPlugin "X" does not exist',
    ),
    (
        "another queue sort plugin",
        [profile("a"), profile("b", multiPoint=plugin_set("Binder Other"))],
        'different queue sort plugins for profile "b": "Other", first: "Queue"',
    ),
    (
        "other arguments for it",
        [profile("a"), profile("b", [PluginConfig("Queue", {"x": 1})])],
        'different queue sort plugin args for profile "b"',
    ),
    ("two of one name", [profile("a"), profile("a")], 'duplicate profile with scheduler name "a"'),
    (
        "arguments twice",
        [profile("a", [PluginConfig("A"), PluginConfig("A")])],
        "creating profile for scheduler name a: repeated config for plugin A",
    ),
    (
        "arguments of plugins that do not exist are not looked at",
        [Profile(scheduler_name="a", plugin_configs=(PluginConfig("NodeResourcesFit", NO_STRATEGY),))],
        'creating profile for scheduler name a: PreFilterPlugin "SchedulingGates" does not exist',
    ),
)
def test_profiles_that_do_not_go_together(profiles, error):
    points_of = {**POINTS_OF, "Other": {"queueSort"}}

    message = refusal(lambda: resolve_all(Configuration(profiles=tuple(profiles)), points_of))

    assert message == f"initializing profiles: {error}"


@cases(
    "args, error",
    ("wrong", NO_STRATEGY, "scoringStrategy: Required value: ScoringStrategy field is required"),
    ("not its own", {}, "want args to be of type NodeResourcesFitArgs, got dict"),
)
def test_a_plugin_that_would_refuse_its_arguments_stops_the_profile(args, error):
    configs = tuple(
        PluginConfig(config.name, args) if config.name == "NodeResourcesFit" else config
        for config in Profile().plugin_configs
    )

    message = refusal(lambda: resolve_all(complete(Configuration(profiles=(Profile(plugin_configs=configs),))), POINTS))

    assert message == (
        "initializing profiles: creating profile for scheduler name default-scheduler: initializing plugin "
        f'"NodeResourcesFit": {error}'
    )


def test_extenders_come_before_profiles():
    extender = Extender(managed_resources=(ExtenderManagedResource("a.b/c", ignored_by_scheduler=True),))

    message = refusal(lambda: resolve_all(complete(Configuration(profiles=(profile(),), extenders=(extender,))), {}))

    assert message == "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
