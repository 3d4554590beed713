"""The `reprieve` command, one file a subcommand.

Not here: anything that decides. Every command reads, asks the engine, prints.
"""

import errno
import os
import sys
from typing import Annotated, Final

import typer

from api.cli import doctor, evaluate, fits, print_config, serve, verify, what_if, who_preempted, why
from api.cli.go_flags import as_options
from api.server import ServiceOverError
from api.settings import StartUpError
from extender import __version__
from extender.klog.outlet import fill_standard_descriptors

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app: Final = typer.Typer(
    name="reprieve",
    help="A Kubernetes scheduler extender that decides as kube-scheduler 1.36 does.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("evaluate")(evaluate.evaluate)
app.command("why")(why.why)
app.command("whatif")(what_if.what_if)
app.command("victims")(what_if.victims)
app.command("who-preempted")(who_preempted.who_preempted)
app.command("fits")(fits.fits)
app.command("doctor")(doctor.doctor)
app.command("verify")(verify.verify_rules)
app.command("print-config")(print_config.print_config)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"reprieve {__version__}")
        raise typer.Exit


@app.callback()
def reprieve(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)] = False,
) -> None:
    """A Kubernetes scheduler extender that decides as kube-scheduler 1.36 does."""


def main() -> None:
    """Run the command line; what keeps it from starting, or from going on, is said in one line, with exit code 1."""
    fill_standard_descriptors()
    arguments = sys.argv[1:]
    try:
        try:
            app([arguments[0], *as_options(arguments[1:])] if arguments[:1] == ["serve"] else arguments)
        finally:
            # None for whom nobody has opened one.
            if sys.stdout is not None:
                sys.stdout.flush()
    except (StartUpError, ServiceOverError) as exc:
        print(f"reprieve: {exc}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has enough of it.
        _print_nowhere()
        sys.exit(1)
    except OSError as exc:
        if exc.errno not in _CANNOT_WRITE or exc.filename is not None:
            raise
        _print_nowhere()
        print(f"reprieve: the answer cannot be written: {os.strerror(exc.errno).lower()}", file=sys.stderr)
        sys.exit(1)


def _print_nowhere() -> None:
    """What is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
