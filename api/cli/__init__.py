"""The `reprieve` command, one file a subcommand.

Nothing is decided here: every command reads, asks the engine, prints. A subcommand's module is imported when the
subcommand runs, so that `reprieve --version` costs what Typer costs, and asking a service needs neither an engine nor a
web framework.
"""

import errno
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, final, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from api.cli.examples import LINES
from extender import __version__
from extender.values.concurrency.process import fill_standard_descriptors, loading_modules
from extender.values.reasons import InputError
from reprieve.errors import StartUpError

_PLAIN: Final[dict[str, Any]] = {
    "rich_markup_mode": None,  # its boxes cut names of options on a terminal of 80 columns
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Annotates a parameter that stands for several options."""

    parameters: Sequence[inspect.Parameter]
    """The options, each annotated as Typer reads it."""
    make: Callable[..., object]
    """Makes the parameter's value from theirs, given by name."""

    @classmethod
    def of(cls, kind: type[Any], only: Sequence[str] = ()) -> "Options":
        """Returns an option for each field of a dataclass, or only for these fields."""
        hints = get_type_hints(kind, include_extras=True)
        return cls(
            [
                option(field.name, hints[field.name], field.default)
                for field in fields(kind)
                if field.name in (only or hints)
            ],
            kind,
        )


def option(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with a signature in which every parameter that stands for options is replaced by them."""
    parameters: list[inspect.Parameter] = []
    stand_ins: dict[str, Options] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        notes = get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()
        options = next((note for note in notes if isinstance(note, Options)), None)
        if options is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            parameters += options.parameters
            stand_ins[parameter.name] = options

    def run(**values: object) -> None:
        for name, options in stand_ins.items():
            values[name] = options.make(
                **{parameter.name: values.pop(parameter.name) for parameter in options.parameters}
            )
        command(**values)

    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


GROUPS: Final = {
    "Ask": ("why", "pending", "top", "who-preempted"),
    "Try": ("whatif", "victims", "fits", "plan", "simulate", "tune", "replay", "shadow"),
    "Develop": ("init", "test", "dev", "plugins", "verify", "evaluate"),
    "Run": ("serve", "mcp"),
    "Set up": ("print-scheduler-config", "doctor", "print-config", "completion"),
}
"""The subcommands as help lists them."""

SUBCOMMANDS: Final = {name: (name.replace("-", "_"),) * 2 for names in GROUPS.values() for name in names} | {
    "whatif": ("what_if", "what_if"),
    "victims": ("what_if", "victims"),
    "print-scheduler-config": ("print_config", "print_scheduler_config"),
    "top": ("with_extras", "top"),
    "mcp": ("with_extras", "mcp"),
    "test": ("plugin_checks", "check_project"),
    "verify": ("verify", "verify_rules"),
}
"""Name -> the module in this package and the function in it that run the subcommand."""

_LOAD_THE_ENGINE: Final = {*GROUPS["Develop"], *GROUPS["Set up"], "simulate", "tune", "replay"} - {"init", "completion"}
"""Subcommands that load the engine before they do anything."""


@final
class _Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns what follows the command's name in its usage, without Typer's braces around what has to be given."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


@final
class _Subcommand(TyperCommand):
    """A subcommand that is imported to run or to show its help. Its module may name a COMMAND_CLASS to parse it."""

    def __init__(self, name: str) -> None:
        self._module, self._function = SUBCOMMANDS[name]
        summary = self._summary()
        super().__init__(name, help=summary, short_help=summary)

    def _summary(self) -> str:
        """Returns the first paragraph of the function's docstring, for which its module is not imported."""
        source = Path(__file__).with_name(f"{self._module}.py").read_text(encoding="utf-8")
        docstring = source.partition(f"\ndef {self._function}(")[2].partition('"""')[2].partition('"""')[0]
        return " ".join(docstring.partition("\n\n")[0].split())

    def load(self) -> Any:
        with self._waiting_line(), loading_modules():  # there is no garbage while modules are loaded
            module = vars(import_module(f"api.cli.{self._module}"))
        alone = typer.Typer(add_completion=False, **_PLAIN)
        kind, ending = module.get("COMMAND_CLASS", _Command), "\n  ".join(("\b\nExamples:", *LINES[self.name or ""]))
        alone.command(self.name, cls=kind, epilog=ending)(spelled_out(module[self._function]))
        return typer.main.get_command(alone)

    def _waiting_line(self) -> AbstractContextManager[object]:
        if self.name not in _LOAD_THE_ENGINE or _is_completing():
            return nullcontext()
        from api.cli.showing import WaitingLine  # noqa: PLC0415 - other commands show it when they wait for an answer

        return WaitingLine(f"loading {self.name}")

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)


@final
class _Reprieve(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name in SUBCOMMANDS:
            self.add_command(_Subcommand(name))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the subcommands as kubectl does, in groups."""
        room = formatter.width - 6 - max(map(len, SUBCOMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(room)) for name in names])


app: Final = typer.Typer(name="reprieve", cls=_Reprieve, no_args_is_help=True, **_PLAIN)


def print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"reprieve {__version__}")
        raise typer.Exit


@app.callback()
def reprieve(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Says why a pod is pending, who would be evicted and what a drain would do, as kube-scheduler 1.36 decides."""


def main() -> None:
    """Runs the command line. An operator's error is one line, if it can be, with the exit code of its class."""
    fill_standard_descriptors()
    if _is_completing():
        # Help that goes over several lines would be taken for further candidates.
        os.environ["COLUMNS"] = "1000"
    try:
        try:
            app()
        finally:
            # None where the caller has opened no standard output.
            if sys.stdout is not None:
                sys.stdout.flush()
    except StartUpError as exc:
        _print_error(str(exc))
        sys.exit(exc.exit_code)
    except InputError as exc:
        from reprieve.sources.configurations import with_fix  # noqa: PLC0415 - the engine is loaded by then

        _print_error(" ".join(with_fix(exc).split()))
        sys.exit(StartUpError.exit_code)
    except BrokenPipeError:
        # The reader, such as `head`, has enough.
        _discard_buffered_output()
        sys.exit(1)
    except OSError as exc:
        if exc.errno not in _CANNOT_WRITE or exc.filename is not None:
            raise
        _discard_buffered_output()
        _print_error(f"the answer cannot be written: {os.strerror(exc.errno).lower()}")
        sys.exit(1)


def _is_completing() -> bool:
    return any(name.endswith("REPRIEVE_COMPLETE") for name in os.environ)


def _print_error(message: str) -> None:
    """Writes a line to standard error, without a buffer: what cannot be written must not change the exit code."""
    from extender.values.klog.setup import escaped  # noqa: PLC0415 - loaded only where something went wrong

    with suppress(OSError):
        os.write(2, f"reprieve: {escaped(message, len(message))}\n".encode())


def _discard_buffered_output() -> None:
    """Points standard output at /dev/null, so that flushing it once more at the end of the process cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
