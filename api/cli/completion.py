"""`reprieve completion`: the script with which a shell completes commands, options and names."""

import os
import sys
from typing import Annotated, Literal

import typer


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="The shell that reads the script.")
    ],
    program: Annotated[str, typer.Option(help="The name by which the command is called.")] = "reprieve",
) -> None:
    """Print the script that makes a shell complete commands, options, and names of pods, nodes and contexts.

    Names are those of the cluster, service or file that the command would ask, if it answers within a second.
    For this session: `source <(reprieve completion bash)`, the same with zsh, or `reprieve completion fish | source`.
    For later ones, write the script to a file that the shell reads at its start. `kubectl reprieve` is completed by
    kubectl's own completion.
    """
    from api.cli import app  # noqa: PLC0415 - it names this module

    os.environ[f"_{program.replace('-', '_').upper()}_COMPLETE"] = f"source_{shell}"
    sys.argv = [program]
    app(prog_name=program)
