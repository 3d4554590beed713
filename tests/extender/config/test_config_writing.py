"""What extenders change in a configuration, and how it is written."""

import json

import pytest

from extender.config import ConfigErrors, Configuration, Extender, calling_order, complete, load, written
from extender.config.extender_checks import check_extenders_strictly

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_what_is_written_means_the_same_when_it_is_read():
    configuration = load(f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: NodeAffinity, weight: 7}}]}}}}}}]\nextenders: [{{}}]")

    assert written(load(json.dumps(written(configuration)))) == written(configuration)


def test_only_arguments_of_enabled_plugins_are_written_in_the_order_of_their_names():
    (profile,) = written(
        load(
            f"{HEAD}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: [{{name: B}}, {{name: A}}, {{name: C}}]}}}}, "
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
    text = json.dumps({"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}]})[1:-1]

    configs = written(load(HEAD + text))["profiles"][0]["pluginConfig"]

    assert next(config["args"]["addedAffinity"] for config in configs if config["name"] == "NodeAffinity") == affinity


@pytest.mark.parametrize(("terms", "shown"), [("{}", None), ("{nodeSelectorTerms: []}", [])])
def test_a_selector_without_terms_is_written_as_go_has_it(terms, shown):
    affinity = f"{{requiredDuringSchedulingIgnoredDuringExecution: {terms}}}"
    text = f"profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{addedAffinity: {affinity}}}}}]}}]"

    configs = written(load(HEAD + text))["profiles"][0]["pluginConfig"]

    args = next(config["args"] for config in configs if config["name"] == "NodeAffinity")
    assert args["addedAffinity"] == {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": shown}}


def test_what_extenders_tell_to_ignore_takes_the_place_of_what_a_profile_ignores():
    configuration = load(
        f"{HEAD}profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{ignoredResources: [a.b/c]}}}}]}}]\n"
        "extenders: [{managedResources: [{name: x.y/z, ignoredByScheduler: true}, {name: x.y/kept}]}]"
    )

    (profile,) = complete(configuration).profiles

    assert profile.plugin_config["NodeResourcesFit"].ignored_resources == ("x.y/z",)


def test_without_extenders_nothing_changes():
    assert complete(Configuration()) == Configuration()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(
            "extenders: [{managedResources: [{name: x.y/z, ignoredByScheduler: true}]}]\n"
            "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]",
            "can't find NodeResourcesFitArgs in plugin config",
            id="a profile that does not use NodeResourcesFit",
        ),
        pytest.param(
            "extenders: [{tlsConfig: {insecure: true, caFile: ca.pem}}]",
            "specifying a root certificates file with the insecure flag is not allowed",
            id="a CA that is not looked at",
        ),
        pytest.param(
            "extenders: [{tlsConfig: {caData: Zm9v}}]",
            "unable to load root certificates: unable to parse bytes as PEM block",
            id="a CA that is none",
        ),
    ],
)
def test_extenders_that_cannot_be_made(text, error):
    with pytest.raises(ConfigErrors) as caught:
        complete(load(HEAD + text))

    assert caught.value.stage == "create"
    assert str(caught.value) == f"couldn't build extenders: {error}"


def test_extenders_that_may_fail_are_asked_last():
    extenders = [Extender(url_prefix=name, ignorable=name in "ac") for name in "abcd"]

    assert [extender.url_prefix for extender in calling_order(extenders)] == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("extender", "errors"),
    [
        pytest.param("{urlPrefix: 'http://a:80/b'}", [], id="plain HTTP"),
        pytest.param("{urlPrefix: 'https://a', enableHTTPS: true, tlsConfig: {caFile: ca.pem}}", [], id="HTTPS with a CA"),
        pytest.param("{}", ["extenders[0].urlPrefix: Required value: where is the extender?"], id="no address"),
        pytest.param(
            "{urlPrefix: 'ftp://a'}",
            ['extenders[0].urlPrefix: Invalid value: "ftp://a": must be an http or https URL with a host'],
            id="another scheme",
        ),
        pytest.param(
            "{urlPrefix: 'http://[a'}", ['extenders[0].urlPrefix: Invalid value: "http://[a": is no URL: Invalid IPv6 URL'], id="no URL"
        ),
        pytest.param(
            "{urlPrefix: 'http://u:secret@a'}",
            ["extenders[0].urlPrefix: Invalid value: must not have a user, a query or a fragment"],
            id="a password, which is not repeated",
        ),
        pytest.param(
            "{urlPrefix: 'https://a', httpTimeout: 1m, tlsConfig: {certFile: c}}",
            [
                'extenders[0].urlPrefix: Invalid value: "https://a": https goes with `enableHTTPS: true`, http without it',
                'extenders[0].httpTimeout: Invalid value: "1m0s": must be greater than 0s and at most 30s',
                "extenders[0].tlsConfig: Required value: a certificate and its key go together",
            ],
            id="several errors",
        ),
        pytest.param(
            "{urlPrefix: 'https://a', enableHTTPS: true}",
            ["extenders[0].tlsConfig: Required value: name a CA for HTTPS, or say `insecure: true`"],
            id="HTTPS that trusts anybody",
        ),
    ],
)
def test_strict_checks_find_what_upstream_lets_pass(extender, errors):
    extenders = load(f"{HEAD}extenders: [{extender}]").extenders

    assert [error.text for error in check_extenders_strictly(extenders)] == errors
