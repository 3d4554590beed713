"""Reading a configuration file: its text is decoded strictly, defaulted, and validated.

Upstream: cmd/kube-scheduler/app/options, configfile.go, LoadConfigFromFile; kube-scheduler/config/v1, types.go,
DecodeNestedObjects; apimachinery, runtime/serializer/json, json.go; pkg/scheduler/apis/config/v1, defaults.go.
"""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from extender.values.byte_order_marks import in_utf8
from extender.values.config.configuration import (
    API_VERSION,
    KIND,
    ConfigErrors,
    Configuration,
    PluginConfig,
    Profile,
    default_profiles,
    with_default_args,
)
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.config.json_types import RAW, fields_of, struct_of, wire
from extender.values.config.plugin_args import ARGS_OF, ARGS_TYPES
from extender.values.config.plugin_sets import PLUGINS, Plugins, default_plugins, merge
from extender.values.config.validation import validate
from extender.values.golang.json import Json, JsonError, marshal, parse_json, plain
from extender.values.golang.quoting import quoted
from extender.values.golang.schema import INT32, NO_TYPE_META, STRING, Field, ListOf, Struct, read_as, type_meta
from extender.values.golang.yaml import YamlDocument, YamlError, read_yaml
from extender.values.objects.pod import DEFAULT_SCHEDULER_NAME
from extender.values.reasons import in_one_line

_SCHEME: Final = "pkg/scheduler/apis/config/scheme/scheme.go:29"
_INTERNAL: Final = "__internal"
_LOGGER: Final = logging.getLogger(__name__)


def load(text: str | bytes, features: FeatureGates = DEFAULT_FEATURES) -> Configuration:
    """Returns the configuration that a text holds. Of several YAML documents the first is read, with a warning.

    Features decide which plugins are there by default, and which arguments are valid.

    Raises ConfigErrors if the text cannot be read (stage `load`), or values in it are wrong (stage `validation`, all
    errors at once).
    """
    configuration = _decode(text, features)
    errors = validate(configuration)
    if errors:
        raise ConfigErrors(errors, "validation")
    return configuration


def load_file(path: str | Path, features: FeatureGates = DEFAULT_FEATURES) -> Configuration:
    """Returns the configuration that a file holds. Raises as `load`, also if the file cannot be read."""
    try:
        text = in_utf8(Path(path).read_bytes())
    except (OSError, UnicodeDecodeError) as exc:
        _refuse(f"open {path}: {in_one_line(exc)}", exc)
    return load(text, features)


@dataclass(frozen=True, slots=True)
class _PluginConfigAsWritten:
    name: str = field(default="", metadata=wire(STRING))
    args: Json = field(default=None, metadata=wire(RAW))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfileAsWritten:
    scheduler_name: str | None = field(default=None, metadata=wire(STRING))
    percentage_of_nodes_to_score: int | None = field(default=None, metadata=wire(INT32))
    plugins: Plugins | None = field(default=None, metadata=wire(PLUGINS))
    plugin_config: tuple[_PluginConfigAsWritten, ...] = field(
        default=(), metadata=wire(ListOf(struct_of(_PluginConfigAsWritten, "v1.PluginConfig"), make=tuple))
    )


_CONFIGURATION: Final = Struct(
    f"v1.{KIND}",
    {
        "kind": Field(STRING),
        "apiVersion": Field(STRING, attribute="api_version"),
        "profiles": Field(ListOf(struct_of(_ProfileAsWritten, "v1.KubeSchedulerProfile"), make=tuple)),
        **fields_of(Configuration),
    },
    make=dict,
)
_TYPES: Final[dict[str, Struct]] = {KIND: _CONFIGURATION, **ARGS_TYPES}


class _UnreadableError(Exception):
    """A document, or arguments in it, cannot be decoded."""


class _GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """The group and kind as upstream prints a GroupKind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def _decode(text: str | bytes, features: FeatureGates) -> Configuration:
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text.encode().decode("utf-8-sig")
        document = _document(text)
        kind, members, forbidden = _read_object(document.value, text, _GroupVersionKind("", "", ""))
    except UnicodeError as exc:
        _refuse("yaml: the configuration is not UTF-8", exc)
    except (_UnreadableError, YamlError) as exc:
        _refuse(str(exc), exc)
    if document.has_more:
        _LOGGER.warning("The configuration holds several YAML documents; only the first is used, as in kube-scheduler")
    if document.duplicates:
        forbidden.insert(0, "\n  ".join(("yaml: unmarshal errors:", *document.duplicates)))
    profiles = (
        _profiles(members["profiles"], features, forbidden) if kind.kind == KIND and "profiles" in members else ()
    )
    if forbidden:
        _refuse(_strict_error(forbidden))
    if kind.kind != KIND:
        _refuse(f"couldn't decode as {KIND}, got {kind.api_version}, Kind={kind.kind}: ")
    return _defaulted(members, profiles or default_profiles(features), features)


def _refuse(text: str, cause: BaseException | None = None) -> NoReturn:
    raise ConfigErrors([text], "load") from cause


def _strict_error(forbidden: list[str]) -> str:
    return "strict decoding error: " + ", ".join(forbidden)


def _document(text: str) -> YamlDocument:
    """Returns the document in a text that is JSON if it begins with a brace, and YAML otherwise."""
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return YamlDocument(parse_json(text))
    except JsonError as exc:
        raise _UnreadableError(f"{NO_TYPE_META}{exc}") from exc


def _read_object(value: Json, text: str, default: _GroupVersionKind) -> tuple[_GroupVersionKind, Any, list[str]]:
    """Returns an object of the kind that it names, or of the default one, and the forbidden parts of it."""
    kind = _interpret(value, default)
    if not kind.kind:
        raise _UnreadableError(f"Object 'Kind' is missing in '{text}'")
    if not kind.version:
        raise _UnreadableError(f"Object 'apiVersion' is missing in '{text}'")
    if kind.api_version != API_VERSION or kind.kind not in _TYPES:
        version = f"version {quoted(kind.api_version)}"
        if kind.version == _INTERNAL:
            version = f"the internal version of group {quoted(kind.group)}"
        raise _UnreadableError(f"no kind {quoted(kind.kind)} is registered for {version} in scheme {quoted(_SCHEME)}")
    try:
        return kind, *read_as(_TYPES[kind.kind], {} if value is None else value)
    except JsonError as exc:
        raise _UnreadableError(str(exc)) from exc


def _interpret(value: Json, default: _GroupVersionKind) -> _GroupVersionKind:
    """Returns the kind that the object names, with defaults for what it leaves out (gvkWithDefaults)."""
    try:
        api_version, kind = type_meta(value)
    except JsonError as exc:
        raise _UnreadableError(str(exc)) from exc
    group, version = _group_version(api_version)
    if not version and group in ("", default.group):
        group, version = default.group, default.version
    return _GroupVersionKind(group, version, kind or default.kind)


def _group_version(text: str) -> tuple[str, str]:
    if text in ("", "/"):
        return "", ""
    if text.count("/") > 1:
        raise _UnreadableError(f"unexpected GroupVersion string: {text}")
    group, _, version = text.rpartition("/")
    return group, version


def _profiles(
    documents: tuple[_ProfileAsWritten, ...], features: FeatureGates, forbidden: list[str]
) -> tuple[Profile, ...]:
    """Returns the profiles with arguments decoded and defaults merged; adds forbidden arguments to `forbidden`."""
    profiles = []
    defaults = default_plugins(features)
    for index, profile in enumerate(documents):
        plugins = merge(defaults, profile.plugins) if profile.plugins is not None else defaults
        configs = []
        for position, config in enumerate(profile.plugin_config):
            where = f"decoding .profiles[{index}].pluginConfig[{position}]"
            try:
                args, wrong = _args(config)
            except _UnreadableError as exc:
                _refuse(f"{where}: {exc}", exc)
            if wrong:
                forbidden.append(
                    f"{where}: {_strict_error([f'decoding args for plugin {config.name}: {_strict_error(wrong)}'])}"
                )
            configs.append(PluginConfig(config.name, args))
        name = profile.scheduler_name
        if name is None:
            # A single profile gets the default name. Of several profiles, validation requires names.
            name = DEFAULT_SCHEDULER_NAME if len(documents) == 1 else ""
        profiles.append(
            Profile(
                scheduler_name=name,
                percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
                plugins=plugins,
                plugin_configs=with_default_args(plugins, configs, features),
            )
        )
    return tuple(profiles)


def _args(config: _PluginConfigAsWritten) -> tuple[object, list[str]]:
    """Returns the arguments of one plugin, and the forbidden parts of them (PluginConfig.decodeNestedObjects)."""
    if config.name not in ARGS_OF:
        return plain(config.args), []
    expected = _GroupVersionKind(*_group_version(API_VERSION), f"{config.name}Args")
    try:
        kind, args, forbidden = _read_object(config.args, marshal(config.args), expected)
    except _UnreadableError as exc:
        raise _UnreadableError(f"decoding args for plugin {config.name}: {exc}") from exc
    if kind.group_kind != expected.group_kind:
        raise _UnreadableError(
            f"args for plugin {config.name} were not of type {expected.group_kind}, got {kind.group_kind}"
        )
    return args, forbidden


def _defaulted(members: dict[str, Any], profiles: tuple[Profile, ...], features: FeatureGates) -> Configuration:
    """Returns the configuration with defaults that depend on others (SetDefaults_KubeSchedulerConfiguration)."""
    settings = {name: value for name, value in members.items() if name not in ("kind", "api_version", "profiles")}
    settings.setdefault("enable_contention_profiling", settings.get("enable_profiling", True))
    return Configuration(**settings, profiles=profiles, feature_gates=features)
