"""What the extenders of a configuration change in it, and what keeps them from being made.

Upstream: pkg/scheduler/scheduler.go, buildExtenders; extender.go, makeTransport; client-go/transport, transport.go, TLSConfigFor.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NoReturn

from extender.config.configuration import Configuration, PluginConfig, Profile
from extender.config.errors import ConfigErrors
from extender.config.extenders import Extender, ExtenderTLSConfig
from extender.config.plugin_args import NodeResourcesFitArgs

_FIT: Final = "NodeResourcesFit"
_PEM_BLOCK: Final = b"-----BEGIN "


def complete(configuration: Configuration) -> Configuration:
    """The configuration as the scheduler runs it: resources that extenders tell the scheduler to ignore are ignored by every profile.

    They take the place of what the profile itself ignores.

    Raises:
        ConfigErrors: an extender's TLS settings contradict each other, or a profile has no arguments for NodeResourcesFit (stage `create`).
    """
    for extender in configuration.extenders:
        _check_tls(extender)
    ignored = tuple(
        resource.name for extender in configuration.extenders for resource in extender.managed_resources if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration
    return replace(configuration, profiles=tuple(_ignoring(profile, ignored) for profile in configuration.profiles))


def calling_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """The extenders in the order in which they are asked: those that may fail come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def _ignoring(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    configs = list(profile.plugin_configs)
    position = next((index for index, config in enumerate(configs) if config.name == _FIT), None)
    args = None if position is None else configs[position].args
    if position is None or not isinstance(args, NodeResourcesFitArgs):
        _refuse("can't find NodeResourcesFitArgs in plugin config")
    configs[position] = PluginConfig(_FIT, replace(args, ignored_resources=ignored))
    return replace(profile, plugin_configs=tuple(configs))


def _check_tls(extender: Extender) -> None:
    tls = extender.tls_config or ExtenderTLSConfig()
    is_insecure = tls.insecure or (extender.enable_https and not tls.has_ca)
    if tls.has_ca and is_insecure:
        _refuse("specifying a root certificates file with the insecure flag is not allowed")
    if tls.ca_data and _PEM_BLOCK not in tls.ca_data:
        _refuse("unable to load root certificates: unable to parse bytes as PEM block")


def _refuse(text: str) -> NoReturn:
    raise ConfigErrors([f"couldn't build extenders: {text}"], "create")
