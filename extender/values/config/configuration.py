"""KubeSchedulerConfiguration as a frozen value, by default `Configuration()`, and the error for an unusable one.

Upstream: kube-scheduler/config/v1, types.go; component-base/config/v1alpha1, types.go, defaults.go;
pkg/scheduler/apis/config/v1, defaults.go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.config.json_types import BYTES, DURATION, FLOAT32, struct_of, wire
from extender.values.config.plugin_args import ARGS_OF, DynamicResourcesArgs, VolumeBindingArgs
from extender.values.config.plugin_sets import DEFAULT_PLUGINS, Plugins, default_plugins
from extender.values.golang.field_errors import FieldError, aggregate
from extender.values.golang.schema import BOOL, INT32, INT64, STRING, ListOf, Presence
from extender.values.golang.times import Duration
from extender.values.objects.pod import DEFAULT_SCHEDULER_NAME
from extender.values.reasons import InputError

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"


Stage = Literal["load", "validation", "create"]
"""The step at which a configuration fails: reading it, checking its values, or building profiles and extenders from it.
"""


class ConfigErrors(InputError):  # noqa: N818  it carries all of them
    """The configuration cannot be used. Its text is upstream's aggregate of all errors."""

    def __init__(self, errors: Iterable[FieldError | str], stage: Stage = "validation") -> None:
        """Takes errors, of which a text is about the whole configuration."""
        self.errors: Final = tuple(
            FieldError("", detail=error) if isinstance(error, str) else error for error in errors
        )
        self.stage: Final = stage
        super().__init__(aggregate(self.errors))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors, self.stage), self.__dict__


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """The election of the replica that schedules. Upstream: LeaderElectionConfiguration."""

    leader_elect: bool = field(default=True, metadata=wire(BOOL))
    lease_duration: Duration = field(default=Duration.of(15), metadata=wire(DURATION, zero_is_default=True))
    renew_deadline: Duration = field(default=Duration.of(10), metadata=wire(DURATION, zero_is_default=True))
    retry_period: Duration = field(default=Duration.of(2), metadata=wire(DURATION, zero_is_default=True))
    resource_lock: str = field(default="leases", metadata=wire(STRING, zero_is_default=True))
    resource_name: str = field(default="kube-scheduler", metadata=wire(STRING, zero_is_default=True))
    resource_namespace: str = field(default="kube-system", metadata=wire(STRING, zero_is_default=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection:
    """The connection to the API server; `qps` and `burst` limit the rate of requests."""

    kubeconfig: str = field(default="", metadata=wire(STRING))
    accept_content_types: str = field(default="", metadata=wire(STRING))
    content_type: str = field(
        default="application/vnd.kubernetes.protobuf", metadata=wire(STRING, zero_is_default=True)
    )
    qps: float = field(default=50.0, metadata=wire(FLOAT32, zero_is_default=True))
    burst: int = field(default=100, metadata=wire(INT32, zero_is_default=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderTLSConfig:
    """The TLS settings for an extender. Data takes precedence over files, and is PEM."""

    insecure: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))
    server_name: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    cert_file: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    key_file: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    ca_file: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    cert_data: bytes = field(default=b"", metadata=wire(BYTES, Presence.OMIT), repr=False)
    key_data: bytes = field(default=b"", metadata=wire(BYTES, Presence.OMIT), repr=False)
    ca_data: bytes = field(default=b"", metadata=wire(BYTES, Presence.OMIT), repr=False)

    @property
    def has_ca(self) -> bool:
        return bool(self.ca_file or self.ca_data)


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource that the extender manages. The scheduler itself may ignore it."""

    name: str = field(default="", metadata=wire(STRING))
    ignored_by_scheduler: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    """An HTTP extender. Verbs that are empty are not called; without managed resources every pod is sent."""

    url_prefix: str = field(default="", metadata=wire(STRING))
    filter_verb: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    preempt_verb: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    prioritize_verb: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    weight: int = field(default=0, metadata=wire(INT64, Presence.OMIT))
    bind_verb: str = field(default="", metadata=wire(STRING, Presence.OMIT))
    enable_https: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT, name="enableHTTPS"))
    tls_config: ExtenderTLSConfig | None = field(
        default=None, metadata=wire(struct_of(ExtenderTLSConfig), Presence.KEEP)
    )
    http_timeout: Duration = field(default=Duration.of(5), metadata=wire(DURATION, zero_is_default=True))
    node_cache_capable: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))
    managed_resources: tuple[ExtenderManagedResource, ...] = field(
        default=(),
        metadata=wire(ListOf(struct_of(ExtenderManagedResource), make=tuple), Presence.OMIT),
    )
    ignorable: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The arguments of one plugin: of its own type, else plain JSON; None if nothing was given."""

    name: str
    args: object = None


def with_default_args(
    plugins: Plugins, configs: Iterable[PluginConfig] = (), features: FeatureGates = DEFAULT_FEATURES
) -> tuple[PluginConfig, ...]:
    """Returns the arguments given, then default ones of other enabled plugins (setDefaults_KubeSchedulerProfile)."""
    configs = tuple(configs)
    defaulted = enabled_names(plugins) & ARGS_OF.keys() - {config.name for config in configs}
    configs = (*configs, *(PluginConfig(name, ARGS_OF[name]()) for name in sorted(defaulted)))
    by_gates = DynamicResourcesArgs | VolumeBindingArgs
    return tuple(
        PluginConfig(config.name, config.args.completed(features)) if isinstance(config.args, by_gates) else config
        for config in configs
    )


def enabled_names(plugins: Plugins) -> set[str]:
    """Returns the names of plugins that are enabled at any extension point."""
    return {plugin.name for point in plugins.values() for plugin in point.enabled}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One of the schedulers in this process; pods choose it by its name.

    `plugins` are the defaults merged with what was written, which `extender.engine.runtime.profiles` resolves.
    `percentage_of_nodes_to_score` None takes the configuration's. `plugin_configs` are as written, then defaulted.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = field(default_factory=lambda: DEFAULT_PLUGINS)
    plugin_configs: tuple[PluginConfig, ...] = with_default_args(DEFAULT_PLUGINS)

    @property
    def plugin_config(self) -> Mapping[str, object]:
        return {config.name: config.args for config in self.plugin_configs}


def default_profiles(features: FeatureGates) -> tuple[Profile, ...]:
    """Returns the profiles of a configuration that names none."""
    plugins = default_plugins(features)
    return (Profile(plugins=plugins, plugin_configs=with_default_args(plugins, features=features)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The contents of a configuration file. Upstream: KubeSchedulerConfiguration."""

    parallelism: int = field(default=16, metadata=wire(INT32))
    leader_election: LeaderElection = field(
        default=LeaderElection(), metadata=wire(struct_of(LeaderElection, "v1alpha1.LeaderElectionConfiguration"))
    )
    client_connection: ClientConnection = field(
        default=ClientConnection(), metadata=wire(struct_of(ClientConnection, "v1alpha1.ClientConnectionConfiguration"))
    )
    enable_profiling: bool = field(default=True, metadata=wire(BOOL))
    enable_contention_profiling: bool = field(default=True, metadata=wire(BOOL))
    percentage_of_nodes_to_score: int = field(default=0, metadata=wire(INT32))
    pod_initial_backoff_seconds: int = field(default=1, metadata=wire(INT64))
    pod_max_backoff_seconds: int = field(default=10, metadata=wire(INT64))
    profiles: tuple[Profile, ...] = default_profiles(DEFAULT_FEATURES)
    extenders: tuple[Extender, ...] = field(
        default=(), metadata=wire(ListOf(struct_of(Extender), make=tuple), Presence.OMIT)
    )
    delay_cache_until_active: bool = field(default=False, metadata=wire(BOOL, Presence.OMIT))
    feature_gates: FeatureGates = DEFAULT_FEATURES
    """The features that are on. A configuration file does not name them; flags do."""
