"""The flags of `reprieve serve`: made from the settings, and understood as Go's programs take them.

`--leader-elect=false`, `-v=2` and `--kube_api_qps 1` are understood. kube-scheduler's flags without an effect here are
ignored or refused.

Upstream: spf13/pflag; component-base/cli/flag, WordSepNormalizeFunc.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, final

import typer
from typer.core import TyperCommand

from api.cli.foreign_flags import FOREIGN, Effect
from api.cli.signatures import Options, option
from api.fatal_errors import StartUpError
from api.settings.declarations import Declaration, Group
from api.settings.settings import DECLARATIONS
from extender.values.config.feature_gates import parse_bool

FOREIGN_OPTION: Final = "--foreign-flag"
"""The hidden option that carries the names of flags without an effect from the command line to `reprieve serve`."""

FLAGS: Final = {name: each for name, each in DECLARATIONS.items() if each.option.group is not Group.ENVIRONMENT}
"""Settings that have a flag."""

_SWITCHES: Final = frozenset(each.flag for each in FLAGS.values() if each.type is bool)
"""Flags that need no value."""


def _option(setting: Declaration) -> Any:
    names = [f"{setting.flag}/--no-{setting.flag[2:]}" if setting.type is bool else setting.flag, *setting.option.also]
    default = setting.default_in_words
    panel = None if setting.option.group is Group.OURS else setting.option.group.value
    return typer.Option(*names, help=f"{setting.help}{f' ({default})' if default else ''}.", rich_help_panel=panel)


# A flag that is not given is None, so that the environment or the default holds.
FLAG_OPTIONS: Final = Options(
    [option(name, Annotated[each.type | None, _option(each)], None) for name, each in FLAGS.items()], dict
)


@final
class GoCommand(TyperCommand):
    """A command whose flags may be written as Go's programs take them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(as_options(args)))


def as_options(arguments: Sequence[str]) -> Iterator[str]:
    """Yields the arguments of `reprieve serve` in the form that Typer takes.

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
        elif equals and f"--{name}" in _SWITCHES:
            try:
                yield f"--{name}" if parse_bool(value) else f"--no-{name}"
            except ValueError as exc:
                raise StartUpError(f'--{name}: invalid argument "{value}": {exc}') from exc
        else:
            yield f"--{name}{equals}{value}"


def without_effect(names: Sequence[str]) -> Mapping[str, str]:
    """Returns the flags of kube-scheduler that were given and have no effect here, with the reasons.

    Raises:
        StartUpError: one of them asks for something that must not be ignored.
    """
    found: dict[str, str] = {}
    for name in names:
        flag = FOREIGN.get(name)
        if flag is None:
            raise StartUpError(f"{FOREIGN_OPTION}: kube-scheduler has no --{name}")
        if flag.effect is Effect.REFUSED:
            raise StartUpError(f"--{name}: {flag.why}")
        found[name] = flag.why
    return found
