"""FeatureGates: which features are on, by the version that is emulated and the gates that were given.

Upstream: component-base/featuregate, feature_gate.go, SetFromMap; component-base/compatibility, registry.go;
pkg/scheduler/framework/ plugins/feature, feature.go, Features.
"""

from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

from extender.values.config.feature_gate_table import (
    DEFAULT_VERSION,
    GATES,
    OTHER_GATES,
    VERSIONS,
    FeatureSpec,
    Stage,
    number,
)
from extender.values.golang.field_errors import aggregate

_ALL: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
"""Gates that stand for all gates of a stage that are not given by name."""

_COMPONENT: Final = "kube"
_BOOLEANS: Final = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)


def _known(version: str) -> dict[str, FeatureSpec]:
    return {name: spec for name, gate in GATES.items() if (spec := gate.at(version)) is not None}


def _on_at(version: str, settings: Mapping[str, bool]) -> frozenset[str]:
    """Returns the gates that are on: as given, else as they always are here, else by default."""
    on = set()
    for name, spec in _known(version).items():
        only = GATES[name].only
        if settings.get(name, spec.default if only is None else only):
            on.add(name)
    removed = {name: gate for name, gate in GATES.items() if gate.is_gone(version)}
    # A gate goes when its feature is always there, or with another one.
    on |= {name for name, gate in removed.items() if gate.part_of in on or gate.history[-1].locked}
    # What is always on here has no effect without what it needs.
    on -= {name for name in on if name not in settings and GATES[name].only and not on.issuperset(GATES[name].needs)}
    return frozenset(on | {every for every in _ALL if settings.get(every)})


_DEFAULTS: Final = {version: _on_at(version, {}) for version in VERSIONS}


@final
class FeatureGates(msgspec.Struct, frozen=True):
    """The features that are on. `FeatureGates()` has the defaults of the default version."""

    version: str = DEFAULT_VERSION
    """The version of kube-scheduler that is emulated."""
    on: frozenset[str] = _DEFAULTS[DEFAULT_VERSION]
    """The names of the gates that are on."""

    @classmethod
    def of(cls, settings: Mapping[str, bool], version: str = DEFAULT_VERSION) -> "FeatureGates":
        """Returns the defaults of a version with the gates over them that are given.

        Raises ValueError, in upstream's words where it has any, if a gate is unknown, locked, or has another value
        here, or a gate that it needs is off.
        """
        errors = list(_errors(settings, version))
        if not errors:
            gates = cls(version, _on_at(version, _spelled_out(settings, version)))
            errors = list(gates._missing())
        if errors:
            raise ValueError(aggregate(errors))
        return gates

    def changed(self, settings: Mapping[str, bool]) -> "FeatureGates":
        """Returns these features with further gates over them. Raises as `of`."""
        specs, default = _known(self.version), _DEFAULTS[self.version]
        free = (name for name in specs if GATES[name].only is None)
        own_settings = {name: name in self.on for name in free if (name in self.on) is not (name in default)}
        return FeatureGates.of({**own_settings, **settings}, self.version)

    def enabled(self, name: str) -> bool:
        """Returns whether a feature is on; KeyError if there is none. Ask once a plugin, not once a pod."""
        if name not in GATES:
            raise KeyError(f'feature "{name}" is not registered in FeatureGates')
        return name in self.on

    def stages(self) -> Iterator[tuple[str, Stage, bool]]:
        """Yields (name, stage, whether it is on) for every gate that the version knows, by name."""
        stages = _ALL | {name: spec.stage for name, spec in _known(self.version).items()}
        for name in sorted(stages):
            yield name, stages[name], name in self.on

    def _missing(self) -> Iterator[str]:
        for name in sorted(self.on - _ALL.keys()):
            off = [needed for needed in GATES[name].needs if needed not in self.on]
            if off:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"


DEFAULT_FEATURES: Final = FeatureGates()
"""The features that are on unless something else is asked for."""


def _errors(settings: Mapping[str, bool], version: str) -> Iterator[str]:
    for name, is_on in settings.items():
        if name in _ALL or name in OTHER_GATES:
            continue
        if name not in GATES or GATES[name].is_gone(version):
            yield f"unrecognized feature gate: {name}"
            return
        spec, gate, text = GATES[name].at(version), GATES[name], str(is_on).lower()
        if spec is None:
            yield f"cannot set feature gate {name} to {text}, feature is PreAlpha at emulated version {version}"
        elif spec.locked and is_on is not spec.default:
            yield f"cannot set feature gate {name} to {text}, feature is locked to {str(spec.default).lower()}"
        elif gate.only is not None and is_on is not gate.only:
            yield f"{name} cannot be turned {'on' if is_on else 'off'} here: {gate.why}"
    for name, stage in _ALL.items():
        if name in settings:
            yield from _errors_of_all(name, settings[name], settings, stage, version)


def _errors_of_all(every: str, is_on: bool, settings: Mapping[str, bool], stage: Stage, version: str) -> Iterator[str]:
    """Yields an error if AllAlpha or AllBeta asks for what cannot be had, with the gates to give instead."""
    fixed = [
        name
        for name, spec in _known(version).items()
        if spec.stage is stage and GATES[name].only is (not is_on) and name not in settings
    ]
    if fixed:
        yield (
            f"{every}={str(is_on).lower()} cannot be had for {', '.join(sorted(fixed))}; give these as "
            f"{str(not is_on).lower()}, too"
        )


def _spelled_out(settings: Mapping[str, bool], version: str) -> dict[str, bool]:
    spelled = {
        name: settings[every]
        for every, stage in _ALL.items()
        if every in settings
        for name, spec in _known(version).items()
        if spec.stage is stage
    }
    return spelled | dict(settings)


def parse_bool(text: str) -> bool:
    """Returns the boolean as Go's programs read it (strconv.ParseBool). Raises ValueError in Go's words."""
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax') from None


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Returns the gates that a flag gives: `A=true,kube:B=false`. Raises ValueError."""
    settings: dict[str, bool] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, has_value, value = pair.removeprefix(f"{_COMPONENT}:").partition("=")
        if not has_value:
            raise ValueError(f"missing bool value for {name.strip()}")
        try:
            settings[name.strip()] = parse_bool(value.strip())
        except ValueError as exc:
            raise ValueError(f"invalid value of {name.strip()}={value.strip()}, err: {exc}") from exc
    return settings


def parse_version(text: str) -> str:
    """Returns the version of `1.37` or `kube=1.37`. Raises ValueError if it cannot be emulated."""
    component, equals, version = text.strip().rpartition("=")
    if equals and component != _COMPONENT:
        raise ValueError(f"component not registered: {component}")
    try:
        major_and_minor = number(version.removeprefix("v"))
    except ValueError:
        raise ValueError(f"illegal version string {version!r}; give one of {', '.join(VERSIONS)}") from None
    normalized = "{}.{}".format(*major_and_minor)
    if normalized not in VERSIONS:
        raise ValueError(f"emulation version {normalized} is not between [{VERSIONS[0]}, {VERSIONS[-1]}]")
    return normalized


def remarks(settings: Mapping[str, bool], version: str) -> Iterator[tuple[str, str]]:
    """Yields (gate, remark) for the gates given that make no difference. They have been checked."""
    for name in sorted(OTHER_GATES & settings.keys()):
        yield name, "it is for other parts of Kubernetes"
    for name, gate in GATES.items():
        spec = gate.at(version)
        if spec is None or name not in settings:
            continue
        if gate.only is None and gate.why:
            yield name, gate.why
        elif spec.stage is Stage.GA and settings[name] is spec.default:
            state = str(settings[name]).lower()
            yield name, f"setting GA feature gate {name}={state}. It will be removed in a future release."


def differences(version: str) -> Iterator[tuple[str, bool, str]]:
    """Yields (gate, the value it always has here, why) for gates with another default in this version."""
    for name, spec in sorted(_known(version).items()):
        only = GATES[name].only
        if only is not None and only is not spec.default and (name in _DEFAULTS[version]) is not spec.default:
            yield name, only, GATES[name].why
