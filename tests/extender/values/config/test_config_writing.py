"""What extenders change in a configuration, and how it is written."""

import json

import pytest

from extender.values.config.completion import calling_order, complete, written
from extender.values.config.configuration import ConfigErrors, Configuration, Extender
from extender.values.config.loading import load
from extender.values.config.plugin_args import NodeResourcesFitArgs
from tests.kit.tables import cases

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_written_configuration_reads_back_with_the_same_meaning():
    configuration = load(
        f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: NodeAffinity, weight: 7}}]}}}}}}]\nextenders: [{{}}]"
    )

    assert written(load(json.dumps(written(configuration)))) == written(configuration)


def test_only_arguments_of_enabled_plugins_are_written_in_the_order_of_their_names():
    (profile,) = written(
        load(
            f"{HEAD}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: [{{name: B}}, {{name: "
            f"A}}, {{name: C}}]}}}}, "
            "pluginConfig: [{name: B, args: {x: [1]}}, {name: A, args: 1}, {name: C}, {name: VolumeBinding}]}]"
        )
    )["profiles"]

    assert profile["pluginConfig"] == [{"name": "A", "args": 1}, {"name": "B", "args": {"x": [1]}}]


def test_an_added_affinity_is_written_as_it_was():
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": {}}],
    }
    text = json.dumps(
        {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}]}
    )[1:-1]

    configs = written(load(HEAD + text))["profiles"][0]["pluginConfig"]

    assert next(config["args"]["addedAffinity"] for config in configs if config["name"] == "NodeAffinity") == affinity


@pytest.mark.parametrize(("terms", "expected"), [("{}", None), ("{nodeSelectorTerms: []}", [])])
def test_a_selector_without_terms_is_written_as_go_has_it(terms, expected):
    affinity = f"{{requiredDuringSchedulingIgnoredDuringExecution: {terms}}}"
    text = f"profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{addedAffinity: {affinity}}}}}]}}]"

    configs = written(load(HEAD + text))["profiles"][0]["pluginConfig"]

    args = next(config["args"] for config in configs if config["name"] == "NodeAffinity")
    assert args["addedAffinity"] == {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expected}}


def test_ignored_resources_of_extenders_replace_those_of_the_profile():
    configuration = load(
        f"{HEAD}profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{ignoredResources: [a.b/c]}}}}]}}]\n"
        "extenders: [{managedResources: [{name: x.y/z, ignoredByScheduler: true}, {name: x.y/kept}]}]"
    )

    (profile,) = complete(configuration).profiles

    arguments = profile.plugin_config["NodeResourcesFit"]
    assert isinstance(arguments, NodeResourcesFitArgs)
    assert arguments.ignored_resources == ("x.y/z",)


def test_without_extenders_nothing_changes():
    assert complete(Configuration()) == Configuration()


@cases(
    "text, error",
    (
        "a profile that does not use NodeResourcesFit",
        "extenders: [{managedResources: [{name: x.y/z, ignoredByScheduler: true}]}]\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]",
        "can't find NodeResourcesFitArgs in plugin config",
    ),
    (
        "a CA that is not looked at",
        "extenders: [{tlsConfig: {insecure: true, caFile: ca.pem}}]",
        "specifying a root certificates file with the insecure flag is not allowed",
    ),
    (
        "a CA that is none",
        "extenders: [{tlsConfig: {caData: Zm9v}}]",
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
)
def test_extenders_that_cannot_be_made(text, error):
    with pytest.raises(ConfigErrors) as caught:
        complete(load(HEAD + text))

    assert caught.value.stage == "create"
    assert str(caught.value) == f"couldn't build extenders: {error}"


def test_extenders_that_may_fail_are_asked_last():
    extenders = [Extender(url_prefix=name, ignorable=name in "ac") for name in "abcd"]

    assert [extender.url_prefix for extender in calling_order(extenders)] == ["b", "d", "a", "c"]
