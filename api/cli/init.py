"""`reprieve init`: a project with a plugin, its tests, rules and configurations."""

from pathlib import Path
from typing import Annotated, Final

import typer

from reprieve.sources.new_project import copied

EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "plugin"
"""The project that is copied. It works as it is."""


def init(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the distribution, such as my-policy; its folder is made here."),
    ],
    plugin: Annotated[str, typer.Option(help="Name of the plugin in configurations (MyPolicy for my-policy).")] = "",
) -> None:
    """Make a project with a plugin of your own, its test, scheduling rules, configurations and a Dockerfile.

    `reprieve test` and `reprieve dev` work in it at once; nothing has to be installed.
    """
    module, plugin = copied(EXAMPLE, name, plugin)
    print(f"{name}/{module}.py is your plugin, {plugin}. What it decides, and what it would change:\n")
    print(f"  cd {name}\n  reprieve test\n  reprieve dev --reload")
