"""`reprieve plugins`: which plugins are there?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from api.cli.showing import OutputOption, show, table
from reprieve.sources.installed_plugins import InstalledPlugins, installed_plugins


def plugins(
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration that enables them (the defaults of kube-scheduler).")
    ] = None,
    in_tree: Annotated[bool, typer.Option("--all", help="List kube-scheduler's own plugins, too.")] = False,
    output: OutputOption = "table",
) -> None:
    """List the plugins that are installed, their extension points, and the profiles that enable them.

    In the folder of a plugin's project its plugins are listed, too. The exit code is 1 if one of them cannot be loaded.
    """
    plugin_list = installed_plugins(config, in_tree=in_tree)
    show(plugin_list, output, _in_words)
    if any(item.error for item in plugin_list.items):
        raise typer.Exit(1)


def _in_words(console: Console, answer: InstalledPlugins, wide: bool) -> None:
    if not answer.items:
        console.print(
            "No plugin of another distribution is installed here; `reprieve init my-policy` makes one. --all lists "
            "kube-scheduler's."
        )
        return
    lines = table("plugin", "from", "points", "enabled in", *(("arguments", "what it does") if wide else ()))
    for item in answer.items:
        what = Text(item.error, style="red") if item.error else ", ".join(item.points)
        more = (str(item.arguments or ""), item.summary) if wide else ()
        lines.add_row(item.name, item.source, what, ", ".join(item.enabled_in), *more)
    console.print(lines)
