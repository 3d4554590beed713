"""What a configuration file may look like, and what is said of one that cannot be read."""

import pytest

from extender.values.config.configuration import (
    ClientConnection,
    ConfigErrors,
    Configuration,
    ExtenderManagedResource,
    LeaderElection,
)
from extender.values.config.loading import load, load_file
from extender.values.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    EvictionCost,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PreemptionDelay,
    Protection,
    ResourceSpec,
    ScoringStrategy,
)
from extender.values.config.plugin_sets import PluginSet
from extender.values.golang.times import Duration
from tests.kit.tables import cases

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MISSING_TYPE = (
    r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""
)


def args_of(name, text):
    """The arguments of the only profile's plugin, written as `text`."""
    return load(f"{HEAD}profiles: [{{pluginConfig: [{{name: {name}, args: {text}}}]}}]").profiles[0].plugin_config[name]


def refusal(text):
    """What `load` says of a text that it does not take, and at which stage."""
    with pytest.raises(ConfigErrors) as caught:
        load(text)
    return caught.value.stage, str(caught.value)


def test_empty_configuration_is_the_default():
    assert load(HEAD) == Configuration() == Configuration() == Configuration()


def test_yaml_and_json_are_both_read():
    as_json = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 3}'

    assert load(as_json) == load(f"{HEAD}parallelism: 3\n") == load(f"{HEAD}parallelism: 3\n".encode())


def test_a_file_is_read_from_disk(tmp_path):
    (tmp_path / "config.yaml").write_text(f"{HEAD}parallelism: 3\n")

    assert load_file(tmp_path / "config.yaml").parallelism == 3


def test_a_file_that_is_not_there_is_an_error_of_the_configuration(tmp_path):
    path = tmp_path / "none.yaml"

    with pytest.raises(ConfigErrors, match=f"open {path}: no such file or directory"):
        load_file(path)


@cases(
    "text, attribute, value",
    ("null is as if the member were not there", "parallelism: null", "parallelism", 16),
    ("an explicit zero of a pointer stays", "percentageOfNodesToScore: 0", "percentage_of_nodes_to_score", 0),
    ("contention profiling follows profiling", "enableProfiling: false", "enable_contention_profiling", False),
    (
        "zero means the default",
        "clientConnection: {qps: 0, burst: 0, contentType: ''}",
        "client_connection",
        ClientConnection(),
    ),
    (
        "so does a zero duration",
        "leaderElection: {leaseDuration: 0s, resourceLock: ''}",
        "leader_election",
        LeaderElection(),
    ),
    ("but not false", "leaderElection: {leaderElect: false}", "leader_election", LeaderElection(leader_elect=False)),
    (
        "qps is a float32",
        "clientConnection: {qps: 0.1234567891}",
        "client_connection",
        ClientConnection(qps=0.12345679),
    ),
    ("YAML's whole floats are integers", "parallelism: 16.0", "parallelism", 16),
    ("hexadecimal", "parallelism: 0x10", "parallelism", 16),
    ("a leading zero means octal", "parallelism: 020", "parallelism", 16),
    ("YAML 1.1 has many words for true", "delayCacheUntilActive: y", "delay_cache_until_active", True),
)
def test_values_and_defaults(text, attribute, value):
    assert getattr(load(f"{HEAD}{text}\n"), attribute) == value


@cases(
    "name, text, value",
    ("no arguments", "DefaultPreemption", "null", DefaultPreemptionArgs()),
    ("zero is a value", "DefaultPreemption", "{minCandidateNodesAbsolute: 0}", DefaultPreemptionArgs(100, 0)),
    ("older rules", "DefaultPreemption", "{preemptionRules: v1.12}", DefaultPreemptionArgs(preemption_rules="v1.12")),
    (
        "victim policies",
        "DefaultPreemption",
        "{protect: {maxVictims: 2}, cost: {fixed: '1'}, delay: {byPriorityClass: {a: 1s}}}",
        DefaultPreemptionArgs(
            protect=Protection(max_victims=2),
            cost=EvictionCost(fixed="1"),
            delay=PreemptionDelay(by_priority_class={"a": Duration.of(1)}),
        ),
    ),
    (
        "a zero duration is, too",
        "DynamicResources",
        "{filterTimeout: 0s}",
        DynamicResourcesArgs(Duration(), Duration.of(600)),
    ),
    (
        "null is none",
        "DynamicResources",
        "{filterTimeout: null}",
        DynamicResourcesArgs(Duration.of(10), Duration.of(600)),
    ),
    (
        "a resource weighs 1",
        "NodeResourcesBalancedAllocation",
        "{resources: [{name: a}, {name: b, weight: 0}]}",
        NodeResourcesBalancedAllocationArgs((ResourceSpec("a", 1), ResourceSpec("b", 1))),
    ),
    ("a strategy", "NodeResourcesFit", "{}", NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated"))),
    (
        "but no type in one",
        "NodeResourcesFit",
        "{scoringStrategy: {}}",
        NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("")),
    ),
    ("what is not known is handed on as it is", "SomebodysPlugin", "{a: {b: [1, c]}}", {"a": {"b": [1, "c"]}}),
    ("or nothing, if there is nothing", "SomebodysPlugin", "null", None),
)
def test_arguments_and_their_defaults(name, text, value):
    assert args_of(name, text) == value


def test_arguments_may_say_what_they_are():
    text = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: DefaultPreemptionArgs, minCandidateNodesAbsolute: 1}"

    assert args_of("DefaultPreemption", text) == DefaultPreemptionArgs(min_candidate_nodes_absolute=1)


def test_enabled_plugins_get_default_arguments_after_those_that_were_given():
    configs = (
        load(f"{HEAD}profiles: [{{pluginConfig: [{{name: VolumeBinding}}, {{name: Mine}}]}}]")
        .profiles[0]
        .plugin_configs
    )

    assert [config.name for config in configs] == [
        "VolumeBinding", "Mine", "DefaultPreemption", "DynamicResources", "InterPodAffinity", "NodeAffinity",
        "NodeResourcesBalancedAllocation", "NodeResourcesFit", "PodTopologySpread",
    ]  # fmt: skip


def test_only_a_single_profile_gets_the_default_name():
    assert load(f"{HEAD}profiles: [{{}}]").profiles[0].scheduler_name == "default-scheduler"
    error = ("validation", "profiles[1].schedulerName: Required value")
    assert refusal(f"{HEAD}profiles: [{{schedulerName: a}}, {{}}]") == error


def test_extenders_wait_five_seconds_unless_they_say_otherwise():
    first, second = load(
        f"{HEAD}extenders: [{{httpTimeout: 0s}}, {{httpTimeout: 1m, managedResources: [{{name: a.b/c}}]}}]"
    ).extenders

    assert first.http_timeout == Duration.of(5)
    assert second.http_timeout == Duration.of(60)
    assert second.managed_resources == (ExtenderManagedResource("a.b/c"),)


def test_sets_of_points_that_are_not_written_are_empty():
    plugins = load(f"{HEAD}profiles: [{{plugins: {{filter: {{disabled: [{{name: '*'}}]}}}}}}]").profiles[0].plugins

    assert [plugin.name for plugin in plugins["filter"].disabled] == ["*"]
    assert plugins["score"] == PluginSet()


@cases(
    "text, error",
    ("nothing", "", "Object 'Kind' is missing in ''"),
    (
        "no version",
        "kind: KubeSchedulerConfiguration",
        "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'",
    ),
    (
        "a version that is gone",
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration",
        'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" '
        'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"',
    ),
    (
        "another kind",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs",
        "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs: ",
    ),
    ("a version that is none", "apiVersion: a/b/c\nkind: d", "unexpected GroupVersion string: a/b/c"),
    (
        "a list",
        "- a",
        "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
        f"{MISSING_TYPE}",
    ),
    (
        "what begins with a brace is JSON",
        "{'a': 1}",
        r"couldn't get version/kind; json parse error: invalid character '\'' "
        "looking for beginning of object key string",
    ),
    ("upper and lower case matter", f"{HEAD}Parallelism: 1", 'strict decoding error: unknown field "Parallelism"'),
    (
        "all unknown members are told, sorted as YAML is",
        f"{HEAD}a: 1\nleaderElection: {{b: 1}}\nextenders: [{{}}, {{tlsConfig: {{c: 1}}}}]",
        'strict decoding error: unknown field "a", unknown field "extenders[1].tlsConfig.c", unknown field '
        '"leaderElection.b"',
    ),
    (
        "duplicates in YAML",
        f"{HEAD}parallelism: 1\nleaderElection:\n  retryPeriod: 1s\n  retryPeriod: 2s\nparallelism: 2",
        'strict decoding error: yaml: unmarshal errors:\n  line 6: key "retryPeriod" already set in map\n'
        '  line 7: key "parallelism" already set in map',
    ),
    (
        "duplicates in JSON",
        '{"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": [{}, '
        '{"plugins": '
        '{"bind": {"enabled": [{"name": "a", "name": "b"}]}}}]}',
        'strict decoding error: duplicate field "profiles[1].plugins.bind.enabled[0].name"',
    ),
    (
        "the first wrong type comes before all that is only forbidden",
        f"{HEAD}parallelism: x\npodMaxBackoffSeconds: x\nz: 1",
        "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
    ),
    (
        "and a duration that is none before that",
        f"{HEAD}clientConnection: {{burst: x}}\nleaderElection: {{leaseDuration: 5}}",
        "json: cannot unmarshal number into Go value of type string",
    ),
    ("null is no duration", f"{HEAD}leaderElection: {{leaseDuration: null}}", 'time: invalid duration ""'),
    (
        "out of range",
        f"{HEAD}podInitialBackoffSeconds: 9223372036854775808",
        "json: cannot unmarshal number 9223372036854775808 into Go struct field "
        "KubeSchedulerConfiguration.podInitialBackoffSeconds "
        "of type int64",
    ),
    (
        "out of the range of a float32",
        f"{HEAD}clientConnection: {{qps: 1e40}}",
        "json: cannot unmarshal number 1e+40 into Go struct field "
        "ClientConnectionConfiguration.clientConnection.qps of type float32",
    ),
    (
        "unknown members of arguments come last",
        f"{HEAD}z: 1\nprofiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{a: 1}}}}]}}]",
        'strict decoding error: unknown field "z", decoding .profiles[0].pluginConfig[0]: strict decoding error: '
        'decoding args for plugin NodeAffinity: strict decoding error: unknown field "a"',
    ),
    (
        "arguments of another kind",
        f"{HEAD}z: 1\nprofiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{kind: VolumeBindingArgs}}}}]}}]",
        "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of type "
        "NodeAffinityArgs.kubescheduler.config.k8s.io, got VolumeBindingArgs.kubescheduler.config.k8s.io",
    ),
    (
        "arguments of the wrong type",
        f"{HEAD}profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {{bindTimeoutSeconds: x}}}}]}}]",
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin VolumeBinding: "
        "json: cannot unmarshal string into Go struct field VolumeBindingArgs.bindTimeoutSeconds of type int64",
    ),
)
def test_unreadable_configuration_is_refused_in_upstreams_words(text, error):
    assert refusal(text) == ("load", error)


def test_first_of_several_documents_is_used_with_a_warning(caplog):
    assert load(f"{HEAD}---\nparallelism: 4\n") == Configuration()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "only the first is used" in caplog.text


def test_document_marks_around_the_only_document_do_no_harm():
    assert load(f"---\n{HEAD}---\n") == Configuration()


@cases(
    "text, error",
    ("bytes that are no text", b"\xff", "yaml: the configuration is not UTF-8"),
    ("text that has no bytes", "a: \ud800", "yaml: the configuration is not UTF-8"),
    ("nested lists", "[" * 1_000_000, "yaml: line 1: exceeded max depth of 100"),
    ("nested maps that are no JSON", "{a: " * 100_000 + "x", "couldn't get version/kind; json parse error: "),
    ("nested JSON", '{"a":' * 500 + "1" + "}" * 500, "couldn't get version/kind; json parse error: exceeded max depth"),
    ("deeply nested JSON", '{"a":' * 100_000, "couldn't get version/kind; json parse error: exceeded max depth"),
    ("a long list", "- {}\n" * 200_000, "yaml: document has more than 100000 nodes"),
    (
        "aliases of aliases",
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        "yaml: document contains excessive aliasing",
    ),
    ("a list in itself", "a: &a [*a]", "yaml: anchor 'a' value contains itself"),
    ("an alias of nothing", "a: *b", "yaml: unknown anchor 'b' referenced"),
    ("a list as a key", "? [a]\n: b", "yaml: invalid map key: neither a list nor a map can be one"),
    ("null as a key", "~: b", "yaml: unsupported map key of type: null"),
    ("no number", "a: .nan", "yaml: unsupported value: NaN"),
    ("a tag that is not true", "a: !!int b", "yaml: cannot decode !!str `b` as a !!int"),
    ("no YAML", "a: b: c", "yaml: mapping values are not allowed in this context"),
)
def test_hostile_text_is_refused_without_a_crash(text, error):
    stage, message = refusal(text)

    assert stage == "load"
    assert message.startswith(error)
