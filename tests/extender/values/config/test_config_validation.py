"""What may be wrong with the values of a configuration: all at once, in upstream's words."""

import pytest

from extender.values.config.args_validation import check_args
from extender.values.config.configuration import ConfigErrors, Configuration, Extender, LeaderElection
from extender.values.config.loading import load
from extender.values.config.plugin_args import NodeResourcesFitArgs
from extender.values.config.validation import validate, without_effect
from extender.values.golang.field_errors import required
from tests.kit.tables import cases

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
ARGS = "profiles[0].pluginConfig[0].args"
TERM = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


def errors_in(text):
    """What validation says of a configuration; nothing if it is fine."""
    try:
        load(HEAD + text)
    except ConfigErrors as exc:
        assert exc.stage == "validation"
        return [str(error) for error in exc.errors]
    return []


def errors_in_args(name, text):
    return errors_in(f"profiles: [{{pluginConfig: [{{name: {name}, args: {text}}}]}}]")


@cases(
    "text, errors",
    ("the default", "", []),
    ("burst", "clientConnection: {burst: -1}", ["clientConnection.burst: Invalid value: -1: must be non-negative"]),
    (
        "leader election",
        "leaderElection: {leaseDuration: -1s, renewDeadline: 1s, resourceLock: endpoints}",
        [
            'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
            'leaderElection.leaseDuration: Invalid value: "1s": must be greater than `RenewDeadline`',
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ],
    ),
    ("that is not looked at when off", "leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}", []),
    ("parallelism", "parallelism: 0", ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
    (
        "percentages",
        "percentageOfNodesToScore: 101\nprofiles: [{percentageOfNodesToScore: -1}]",
        [
            "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ],
    ),
    (
        "backoff",
        "podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1",
        [
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
        ],
    ),
    (
        "a name twice",
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        ["profiles[1].schedulerName: Duplicate value: {}"],
    ),
    (
        "plugins that are gone",
        "profiles: [{plugins: {score: {enabled: [{name: CinderLimits}]}, bind: {enabled: [{name: x}, {name: "
        "EBSLimits}]}}, "
        "pluginConfig: [{name: GCEPDLimits}]}]",
        [
            f'profiles[0].{place}: Invalid value: "{name}": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            for place, name in (
                ("plugins.bind.enabled[1]", "EBSLimits"),
                ("plugins.score.enabled[0]", "CinderLimits"),
                ("pluginConfig[0]", "GCEPDLimits"),
            )
        ],
    ),
    (
        "arguments twice",
        "profiles: [{pluginConfig: [{name: a}, {name: a}]}]",
        ['profiles[0].pluginConfig[1]: Duplicate value: "a"'],
    ),
    (
        "one queue is sorted in one way",
        "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: A}, {name: B, weight: 2}]}}}, "
        "{schedulerName: b, plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
        [
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":[{"Name":"*","Weight":0}]}: '
            "must be the same for all profiles",
        ],
    ),
    (
        "and with the same arguments",
        "profiles: [{schedulerName: a, plugins: &p {queueSort: {enabled: [{name: A}]}}}, "
        "{schedulerName: b, plugins: *p, pluginConfig: [{name: A, args: {x: '<'}}]}]",
        [
            r'profiles[1].pluginConfig.args: Invalid value: {"x":"\u003c"}: queueSort must be the same for all '
            r"profiles"
        ],
    ),
    (
        "extenders",
        "extenders: [{prioritizeVerb: p}, {bindVerb: b, managedResources: [{name: a b}, {name: cpu}, {name: "
        "x.y/z}]}, "
        "{bindVerb: b, managedResources: [{name: x.y/z}, {name: kubernetes.io/a}]}]",
        [
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            f'extenders[1].managedResources[0].name: Invalid value: "a b": {NAME}',
            'extenders[1].managedResources[1].name: Invalid value: "cpu": is an invalid extended resource name',
            'extenders[2].managedResources[0].name: Invalid value: "x.y/z": duplicate extender managed resource name',
            'extenders[2].managedResources[1].name: Invalid value: "kubernetes.io/a": is an invalid extended '
            "resource name",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ],
    ),
)
def test_values_of_the_configuration(text, errors):
    assert errors_in(text) == errors


@pytest.mark.parametrize(
    ("name", "text", "errors"),
    [
        pytest.param(
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}",
            [
                f"{ARGS}.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
                f"{ARGS}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="candidates",
        ),
        pytest.param(
            "DefaultPreemption",
            "{preemptionRules: v1.13}",
            [
                f'{ARGS}.preemptionRules: Unsupported value: "v1.13": supported values: "v1.12", "v1.17", "v1.25", '
                '"v1.36"'
            ],
            id="rules that there are not",
        ),
        pytest.param(
            "DynamicResources",
            "{filterTimeout: -1s, bindingTimeout: 999ms}",
            [
                f'{ARGS}.filterTimeout: Invalid value: "-1s": must be zero or positive',
                f'{ARGS}.bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
            id="timeouts",
        ),
        pytest.param(
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            [f"{ARGS}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="a weight",
        ),
        *(
            pytest.param(
                "NodeAffinity",
                "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                "[{matchExpressions: "
                f"[{{key: a, operator: {operator}{values}}}]}}]}}}}}}",
                [f"{TERM}.matchExpressions[0].values: Invalid value: {value_text}: {error}"],
                id=f"{operator} without values, {form}",
            )
            for operator, error in (
                ("In", "for 'in', 'notin' operators, values set can't be empty"),
                ("Gt", "for 'Gt', 'Lt' operators, exactly one value is required"),
            )
            for values, value_text, form in (
                ("", "null", "which are not there"),
                (", values: null", "null", "null"),
                (", values: []", "[]", "an empty list"),
            )
        ),
        pytest.param(
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
            "[{key: a, operator: In, values: []}, {key: a, operator: In}, {key: a, operator: '>'}]}]}, "
            "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchFields: [{operator: "
            "X}]}}, "
            "{weight: 1, preference: {matchFields: [{key: a, operator: In}]}}]}}",
            [
                f"{TERM}.matchExpressions[0].values: Invalid value: []: for 'in', 'notin' operators, values set can't "
                "be empty",
                f"{TERM}.matchExpressions[1].values: Invalid value: null: for 'in', 'notin' operators, values set "
                "can't be empty",
                rf'{TERM}.matchExpressions[2].operator: Unsupported value: "\u003e": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
                f"{ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchFields[0].values: "
                "Invalid value: null: must have one element",
            ],
            id="an affinity; an empty list is told from none",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: a, weight: 2}, {name: a}]}",
            [
                f"{ARGS}.resources[0].weight: Invalid value: 2: must be 1",
                f'{ARGS}.resources[1].name: Duplicate value: "a"',
            ],
            id="resources",
        ),
        pytest.param(
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 0, topologyKey: a b, whenUnsatisfiable: X, labelSelector: {}}, "
            "{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: X}, {maxSkew: 1}]}",
            [
                f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
                f"{ARGS}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                f'{ARGS}.defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME}',
                f'{ARGS}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"',
                f"{ARGS}.defaultConstraints[0].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod",
                f'{ARGS}.defaultConstraints[1].topologyKey: Invalid value: "a b": {NAME}',
                f'{ARGS}.defaultConstraints[1].whenUnsatisfiable: Unsupported value: "X": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"',
                f'{ARGS}.defaultConstraints[1]: Duplicate value: "{{a b, X}}"',
                f"{ARGS}.defaultConstraints[2].topologyKey: Required value: can not be empty",
                f"{ARGS}.defaultConstraints[2].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="constraints",
        ),
        pytest.param(
            "VolumeBinding",
            "{bindTimeoutSeconds: -1, shape: []}",
            [
                f"{ARGS}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative "
                "value",
                f"{ARGS}.shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature gate "
                "StorageCapacityScoring",
            ],
            id="volumes",
        ),
        pytest.param(
            "NodeResourcesFit",
            "{scoringStrategy: {type: X}}",
            [],
            id="Fit, though, is looked at only when the plugin is made",
        ),
    ],
)
def test_arguments(name, text, errors):
    assert errors_in_args(name, text) == errors


def test_a_plugin_that_is_made_refuses_arguments_with_paths_that_begin_at_them():
    with pytest.raises(ConfigErrors) as caught:
        check_args(NodeResourcesFitArgs(ignored_resource_groups=("a/b",), scoring_strategy=None))

    assert caught.value.stage == "create"
    assert str(caught.value) == (
        "[ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/', "
        "scoringStrategy: Required value: ScoringStrategy field is required]"
    )


def test_errors_are_pairs_and_their_text_has_no_repetition():
    error = required("a")

    errors = ConfigErrors([error, error, required("b")])

    assert list(errors.errors) == [error, error, required("b")]
    assert str(errors) == "[a: Required value, b: Required value]"
    assert str(ConfigErrors([error, error])) == "a: Required value"


def test_values_that_were_made_in_python_are_validated_alike():
    configuration = Configuration(
        profiles=(), leader_election=LeaderElection(resource_name=""), extenders=(Extender(prioritize_verb="p"),)
    )

    assert [str(error) for error in validate(configuration)] == [
        "leaderElection.resourceName: Required value",
        "profiles: Required value",
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ]


@cases(
    "configuration, fields",
    ("the default", "", []),
    ("the default, written", "parallelism: 16", []),
    ("parallelism", "parallelism: 4", ["parallelism"]),
    (
        "plugins behind gates",
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: {enabled: "
        "[{name: GangScheduling}, {name: PodGroupPodsCount}]}}}]",
        ["profiles[1].plugins", "profiles[1].plugins"],
    ),
)
def test_accepted_fields_without_effect_are_named(configuration: str, fields: list[str]) -> None:
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{configuration}\n"

    assert [path for path, _ in without_effect(load(text))] == fields
