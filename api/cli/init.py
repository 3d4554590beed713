"""`reprieve init`: a project with a plugin, its tests, rules and configurations."""

import keyword
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from extender import __version__
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError

EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "plugin"
"""The project that is copied. It works as it is."""


def plugin_name(module: str) -> str:
    """Returns what a plugin is called if nobody says it: MyPolicy of my-policy and of my_policy."""
    return "".join(part.capitalize() for part in re.split(r"[-_.]", module))


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
    plugin = plugin or plugin_name(name)
    module = re.sub(r"[-.]", "_", name).lower()
    if (
        not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name)
        or not module.isidentifier()
        or keyword.iskeyword(module)
    ):
        raise StartUpError(
            f"{name}: not a name; take letters, digits and dashes, beginning with a letter, such as my-policy"
        )
    if not plugin.isidentifier() or keyword.iskeyword(plugin):
        raise StartUpError(f"--plugin {plugin}: not the name of a Python class, such as MyPolicy")
    folder = Path(name)
    words = {"my-policy": name, "my_policy": module, "MyPolicy": plugin, "reprieve:VERSION": f"reprieve:{__version__}"}
    try:
        folder.mkdir()
        for source in sorted(EXAMPLE.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                target = folder / _replaced(str(source.relative_to(EXAMPLE)), words)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_replaced(source.read_text(encoding="utf-8"), words), encoding="utf-8")
    except FileExistsError as exc:
        raise StartUpError(f"{folder}: exists already; choose another name, or remove it") from exc
    except OSError as exc:
        raise StartUpError(f"{exc.filename}: {in_one_line(exc)}") from exc
    print(f"{folder}/{module}.py is your plugin, {plugin}. What it decides, and what it would change:\n")
    print(f"  cd {folder}\n  reprieve test\n  reprieve dev --reload")


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)
