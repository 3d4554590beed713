"""Flags as Go's programs take them: `--leader-elect=false`, `-v=2`, `--kube_api_qps 1`; and kube-scheduler's that mean nothing here.

Upstream: spf13/pflag; component-base/cli/flag, WordSepNormalizeFunc.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api.cli.foreign_flags import FOREIGN, Effect
from api.fatal_errors import StartUpError
from api.feature_gates import parse_bool

FOREIGN_OPTION: Final = "--foreign-flag"
"""Tells `reprieve serve` the name of a flag that was given and means nothing here."""

SWITCHES: Final = frozenset(("schedule", "leader-elect", "kubelet", "profiling"))
"""Options of `reprieve serve` that need no value."""


def as_options(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments of `reprieve serve`, as our own command line takes them.

    Raises:
        StartUpError: a switch is given what is neither true nor false.
    """
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
        elif equals and name in SWITCHES:
            try:
                yield f"--{name}" if parse_bool(value) else f"--no-{name}"
            except ValueError as exc:
                raise StartUpError(f'--{name}: invalid argument "{value}": {exc}') from exc
        else:
            yield f"--{name}{equals}{value}"


def passed_over(names: Sequence[str], host: str) -> Mapping[str, str]:
    """The flags that were given and mean nothing here, and why that is so.

    Arguments:
        host: on which we listen.

    Raises:
        StartUpError: one of them asks for something that must not be passed over.
    """
    found: dict[str, str] = {}
    for name in names:
        flag = FOREIGN.get(name)
        if flag is None:
            raise StartUpError(f"{FOREIGN_OPTION}: kube-scheduler has no --{name}")
        if flag.effect is Effect.REFUSED:
            raise StartUpError(f"--{name}: {flag.why}")
        if flag.effect is Effect.GUARDS and not _is_of_this_machine(host):
            raise StartUpError(f"--{name}: {flag.why}; leave it out, or listen on 127.0.0.1")
        found[name] = flag.why
    return found


def _is_of_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
