"""The flags of `reprieve serve`: made from the settings, and understood as Go's programs take them.

`--leader-elect=false`, `-v=2` and `--kube_api_qps 1` are understood. kube-scheduler's flags that have no effect here
are ignored with a line in the log, or refused if an operator would rely on them. Flags that mean the same here are
fields of `api.settings.settings.Settings`; docs/flags.md lists both.

Upstream: spf13/pflag; component-base/cli/flag, WordSepNormalizeFunc; cmd/kube-scheduler/app/options;
apiserver/pkg/server/options; component-base/logs/api/v1, metrics, featuregate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, final

import typer
from typer.core import TyperCommand

from api.cli import Options, option
from api.settings.declarations import Declaration, Group
from api.settings.settings import DECLARATIONS
from extender.values.config.feature_gates import parse_bool
from reprieve.errors import StartUpError


@final
@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of kube-scheduler that has no effect here."""

    is_refused: bool
    """Whether it is refused, because the operator would get something else than expected; it is ignored otherwise."""
    why: str
    is_switch: bool = False
    """It needs no value."""


def _ignored(why: str, *names: str, is_switch: bool = False) -> dict[str, ForeignFlag]:
    return {name: ForeignFlag(False, why, is_switch) for name in names}


def _refused(why: str, *names: str, is_switch: bool = False) -> dict[str, ForeignFlag]:
    return {name: ForeignFlag(True, why, is_switch) for name in names}


_GONE: Final = "kube-scheduler removed it years ago"

FOREIGN: Final[Mapping[str, ForeignFlag]] = {
    **_ignored(
        "the API server of the followed cluster reviews callers",
        "authentication-kubeconfig", "authorization-kubeconfig",
    ),
    **_ignored(
        "no front proxy is trusted",
        "requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-extra-headers-prefix",
        "requestheader-group-headers", "requestheader-uid-headers", "requestheader-username-headers",
    ),
    **_ignored(
        "reviews of callers are cached for ten seconds",
        "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ),
    **_ignored(
        "the CA of client certificates is not looked up: give --client-ca-file",
        "authentication-skip-lookup", "authentication-tolerate-lookup-failure", is_switch=True,
    ),
    **_ignored("the service speaks HTTP/1.1", "http2-max-streams-per-connection"),
    **_ignored("the service speaks HTTP/1.1", "disable-http2-serving", is_switch=True),
    **_ignored("the port is not shared", "permit-address-sharing", "permit-port-sharing", is_switch=True),
    **_refused("OpenSSL chooses the curves", "tls-curve-preferences"),
    **_refused("there is one certificate: name it with --tls-cert-file", "tls-sni-cert-key"),
    **_ignored("there is no lock contention", "contention-profiling", is_switch=True),
    **_ignored("the client speaks JSON", "kube-api-content-type"),
    **_ignored("no metric is hidden", "show-hidden-metrics-for-version"),
    **_ignored("labels of metrics are not filtered", "allow-metric-labels", "allow-metric-labels-manifest"),
    **_ignored(
        "every line is written immediately",
        "log-flush-frequency", "log-json-info-buffer-size", "log-text-info-buffer-size",
    ),
    **_ignored("all lines go to stderr", "log-json-split-stream", "log-text-split-stream", is_switch=True),
    **_ignored("no feature gate depends on the version of other parts of Kubernetes", "min-compatibility-version"),
    **_ignored("no API of the scheduler depends on the version", "emulation-forward-compatible", is_switch=True),
    **_refused(
        _GONE,
        "policy-config-file", "policy-configmap", "policy-configmap-namespace", "algorithm-provider", "scheduler-name",
        "address", "hard-pod-affinity-symmetric-weight", "lock-object-name", "lock-object-namespace", "failure-domains",
    ),
    **_refused(_GONE, "use-legacy-policy-config", "disable-preemption", is_switch=True),
}  # fmt: skip


FOREIGN_OPTION: Final = "--foreign-flag"
"""The hidden option that carries the names of flags without an effect from the command line to `reprieve serve`."""

FLAGS: Final = {name: flag for name, flag in DECLARATIONS.items() if flag.option.group is not Group.ENVIRONMENT}
"""Settings that have a flag."""

_SWITCHES: Final = {"--version", *(flag.flag for flag in FLAGS.values() if flag.type is bool)}
"""Flags that need no value."""


def _option(setting: Declaration) -> Any:
    names = [f"{setting.flag}/--no-{setting.flag[2:]}" if setting.type is bool else setting.flag, *setting.option.also]
    default = setting.default_in_words
    panel = None if setting.option.group is Group.OURS else setting.option.group.value
    return typer.Option(*names, help=f"{setting.help}{f' ({default})' if default else ''}.", rich_help_panel=panel)


# A flag that is not given is None, so that the environment or the default holds.
FLAG_OPTIONS: Final = Options(
    [option(name, Annotated[flag.type | None, _option(flag)], None) for name, flag in FLAGS.items()], dict
)


@final
class GoCommand(TyperCommand):
    """A command whose flags may be written as Go's programs take them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(as_options(args)))


def as_options(arguments: Sequence[str]) -> Iterator[str]:
    """Yields the arguments of `reprieve serve` as Typer takes them. Raises StartUpError if a switch gets no bool."""
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-v="):
            yield f"--v{argument[2:]}"
            continue
        if not argument.startswith("--"):
            yield argument
            continue
        name, equals, value = argument[2:].partition("=")
        name = name.replace("_", "-")
        if name in FOREIGN:
            if not (equals or FOREIGN[name].is_switch):
                next(rest, None)
            yield f"{FOREIGN_OPTION}={name}"
        elif (name, value) == ("version", "raw"):
            yield "--version"  # there is no more to say
        elif equals and name == "help":
            yield "--help"
        elif equals and f"--{name}" in _SWITCHES:
            try:
                yield f"--{name}" if parse_bool(value) else f"--no-{name}"
            except ValueError as exc:
                raise StartUpError(f'--{name}: invalid argument "{value}": {exc}') from exc
        else:
            yield f"--{name}{equals}{value}"


def without_effect(names: Sequence[str]) -> Mapping[str, str]:
    """Returns kube-scheduler's flags given without effect, with reasons. Raises StartUpError for others."""
    reasons: dict[str, str] = {}
    for name in names:
        flag = FOREIGN.get(name)
        if flag is None:
            raise StartUpError(f"{FOREIGN_OPTION}: kube-scheduler has no --{name}")
        if flag.is_refused:
            raise StartUpError(f"--{name}: {flag.why}")
        reasons[name] = flag.why
    return reasons
