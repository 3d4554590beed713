"""Feature gates: the table by version, what may be given, and that the code asks for no gate that the table does not
know.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.values.config.configuration import ConfigErrors
from extender.values.config.feature_gate_table import DEFAULT_VERSION, GATES, OTHER_GATES, VERSIONS
from extender.values.config.feature_gates import FeatureGates, differences, parse_feature_gates, remarks
from extender.values.config.loading import load
from extender.values.config.plugin_args import DynamicResourcesArgs, UtilizationShapePoint, VolumeBindingArgs
from extender.values.config.plugin_sets import DEFAULT_PLUGINS, GATE_OF, default_plugins
from tests.kit.tables import cases

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_defaults_of_each_version_are_consistent(version: str) -> None:
    """They can be given by name, and no gate that is on needs one that is off."""
    defaults = FeatureGates.of({}, version)

    by_name = {name: is_on for name, _, is_on in defaults.stages() if name in GATES and GATES[name].only is None}
    assert FeatureGates.of(by_name, version) == defaults


@pytest.mark.parametrize("name", GATES)
def test_gate_that_cannot_be_switched_has_a_reason(name: str) -> None:
    gate = GATES[name]

    assert gate.why or gate.only is None
    assert [spec.since for spec in gate.history] == sorted({spec.since for spec in gate.history})
    assert not set(gate.needs) - GATES.keys()
    assert not gate.is_always_locked or not gate.why


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PodLevelResources=true",
        "kube:GangScheduling=false, ImageVolume=t",
        "AllAlpha=false,DRAAdminAccess=true",
        "OpportunisticBatching=0",
    ],
)
def test_gates_may_be_asked_for_what_holds(text: str) -> None:
    settings = parse_feature_gates(text)

    gates = FeatureGates.of(settings)

    assert {name: name in gates.on for name in settings} == settings


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "CompositePodGroup=true",
            "cannot set feature gate CompositePodGroup to true, feature is PreAlpha at emulated version 1.36",
        ),
        ("DRAListTypeAttributes=true", "DRAListTypeAttributes cannot be turned on here: attributes are single values"),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "SchedulerQueueingHints=false,ImageVolume=false",
            "[cannot set feature gate SchedulerQueueingHints to false, feature is locked to true, "
            "cannot set feature gate ImageVolume to false, feature is locked to true]",
        ),
    ],
)
def test_gates_that_cannot_be_had_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        FeatureGates.of(parse_feature_gates(text))

    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PodLevelResources", "missing bool value for PodLevelResources"),
        (
            "A=true,PodLevelResources=x",
            'invalid value of PodLevelResources=x, err: strconv.ParseBool: parsing "x": invalid syntax',
        ),
    ],
)
def test_a_flag_of_another_form_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_feature_gates(text)

    assert str(refused.value) == why


def test_all_alpha_gates_can_be_had_but_for_those_that_are_given() -> None:
    """Those that cannot be turned on have to be given as off."""
    with pytest.raises(ValueError) as refused:
        FeatureGates.of({"AllAlpha": True})

    assert str(refused.value).startswith("AllAlpha=true cannot be had for ")
    never = {name: False for name, gate in GATES.items() if gate.only is False and gate.at(DEFAULT_VERSION) is not None}
    gates = FeatureGates.of({"AllAlpha": True, **never})
    assert gates.enabled("LoggingAlphaOptions")
    assert not gates.enabled("DRAListTypeAttributes")


def test_gates_without_effect_are_named_with_the_reason() -> None:
    settings = {"OpportunisticBatching": True, "SchedulerQueueingHints": True, "HPAScaleToZero": True}

    assert FeatureGates.of(settings) == FeatureGates()
    assert not OTHER_GATES & GATES.keys()
    assert dict(remarks(settings, DEFAULT_VERSION)) == {
        "OpportunisticBatching": GATES["OpportunisticBatching"].why,
        "SchedulerQueueingHints": "setting GA feature gate SchedulerQueueingHints=true. It will be removed in a future "
        "release.",
        "HPAScaleToZero": "it is for other parts of Kubernetes",
    }


def test_defaults_of_a_version_that_do_not_hold_here_are_known() -> None:
    """The start of the service names them."""
    assert [(name, is_on) for name, is_on, _ in differences("1.33")] == [("PodLevelResources", True)]
    assert all(why for version in VERSIONS for _, _, why in differences(version))


def test_a_gate_that_a_version_no_longer_has_is_unknown_there() -> None:
    with pytest.raises(ValueError, match=r"^unrecognized feature gate: SchedulerQueueingHints$"):
        FeatureGates.of({"SchedulerQueueingHints": True}, "1.37")

    assert "SchedulerQueueingHints" in FeatureGates.of({"SchedulerQueueingHints": True}, "1.36").on


@pytest.mark.parametrize(
    "name", ["DynamicResourceAllocation", "MatchLabelKeysInPodAffinity", "PodSchedulingReadiness", "SidecarContainers"]
)
def test_a_feature_stays_on_when_its_gate_goes(name: str) -> None:
    gates = FeatureGates.of({}, "1.38")

    assert gates.enabled(name)
    assert name not in {gate for gate, _, _ in gates.stages()}
    with pytest.raises(ValueError, match=f"^unrecognized feature gate: {name}$"):
        FeatureGates.of({name: True}, "1.38")


@pytest.mark.parametrize("name", ["DRADeviceTaints", "DRADeviceTaintRules"])
def test_taints_of_devices_cannot_be_switched_off_in_1_38(name: str) -> None:
    assert FeatureGates.of({}, "1.38").enabled(name)
    with pytest.raises(ValueError, match=f"^cannot set feature gate {name} to false, feature is locked to true$"):
        FeatureGates.of({name: False}, "1.38")


def test_hints_before_queueing_are_known_from_1_37_on_and_change_nothing() -> None:
    settings = {"SchedulerPreQueueingHints": True}

    assert FeatureGates.of(settings, "1.37").enabled("SchedulerPreQueueingHints")
    assert dict(remarks(settings, "1.37")) == {"SchedulerPreQueueingHints": GATES["SchedulerPreQueueingHints"].why}
    with pytest.raises(ValueError, match=r"feature is PreAlpha at emulated version 1\.36$"):
        FeatureGates.of(settings)


def test_asking_for_an_unknown_gate_raises() -> None:
    with pytest.raises(KeyError, match="is not registered in FeatureGates"):
        FeatureGates().enabled("Nope")


def test_a_version_with_scored_storage_gives_volume_binding_a_shape() -> None:
    """SetDefaults_VolumeBindingArgs, with StorageCapacityScoring, which is on by default in 1.37."""
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {}}]"

    [old], [new] = (load(text, FeatureGates.of({}, version)).profiles for version in ("1.36", "1.37"))

    assert old.plugin_config["VolumeBinding"] == VolumeBindingArgs()
    assert new.plugin_config["VolumeBinding"] == VolumeBindingArgs(
        shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    )


@cases(
    "off, argument, why",
    ("search", "DRASchedulerFilterTimeout", "filterTimeout: 5s", "DRASchedulingFilterTimeout feature gate is disabled"),
    (
        "binding",
        "DRADeviceBindingConditions",
        "bindingTimeout: 5m",
        "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
    ),
)
def test_a_timeout_may_only_be_given_while_its_gate_is_on_and_has_no_default_otherwise(
    off: str, argument: str, why: str
) -> None:
    """ValidateDynamicResourcesArgs, SetDefaults_DynamicResourcesArgs."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: "
    features = FeatureGates.of({off: False})
    [profile] = load(f"{head}[{{plugins: {{}}}}]", features).profiles
    args = profile.plugin_config["DynamicResources"]
    assert isinstance(args, DynamicResourcesArgs)
    assert [args.filter_timeout, args.binding_timeout].count(None) == 1
    with pytest.raises(ConfigErrors, match=rf"Forbidden: {why}$"):
        load(f"{head}[{{pluginConfig: [{{name: DynamicResources, args: {{{argument}}}}}]}}]", features)


@pytest.mark.parametrize(
    ("version", "left_out"),
    [("1.33", {"DynamicResources", "NodeDeclaredFeatures"}), ("1.35", {"NodeDeclaredFeatures"}), ("1.36", set())],
)
def test_plugins_behind_gates_that_are_off_are_in_no_profile(version: str, left_out: set[str]) -> None:
    names = {plugin.name for plugin in DEFAULT_PLUGINS["multiPoint"].enabled}

    enabled_names = {plugin.name for plugin in default_plugins(FeatureGates.of({}, version))["multiPoint"].enabled}

    assert names - enabled_names == left_out


def _asked_for() -> Iterator[str]:
    """Yields the names of gates that the code asks for."""
    for file in (*(ROOT / "extender").rglob("*.py"), *(ROOT / "api").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            if isinstance(node, ast.Call) and name in ("enabled", "_settings_if"):
                yield from (
                    arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                )


@pytest.mark.slow
def test_the_code_asks_for_every_gate_that_switches_and_for_no_other() -> None:
    switching = {
        name for name, gate in GATES.items() if gate.only is None and not gate.why and not gate.is_always_locked
    }

    assert {*_asked_for(), *GATE_OF.values()} - GATES.keys() == set()
    assert switching - {*_asked_for(), *GATE_OF.values()} == set()
    assert {name for name in _asked_for() if name not in switching} == set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("settings", [{}, {"OpportunisticBatching": False}, {"DRAPrioritizedList": False}])
@pytest.mark.parametrize("overrides", [{}, {"OpportunisticBatching": True}, {"GenericWorkload": False}, {"Nope": True}])
def test_gates_over_others_are_as_if_all_had_been_given_at_once(
    version: str, settings: dict[str, bool], overrides: dict[str, bool]
) -> None:
    def outcome(make: Callable[[], FeatureGates]) -> FeatureGates | str:
        try:
            return make()
        except ValueError as exc:
            return str(exc)

    try:
        gates = FeatureGates.of(settings, version)
    except ValueError:
        return  # the version does not know one of them

    at_once = outcome(lambda: FeatureGates.of({**settings, **overrides}, version))
    assert outcome(lambda: gates.changed(overrides)) == at_once
