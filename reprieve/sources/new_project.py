"""A new project with a plugin: a copy of an example under other names."""

import keyword
import re
from pathlib import Path

from extender import __version__
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.sources.plugin_project import plugin_name


def copied(example: Path, name: str, plugin: str) -> tuple[str, str]:
    """Copies the example, MyPolicy of my-policy, into a new folder of the name, and returns the module and the plugin.
    Raises StartUpError for other than names, and if there is such a folder.
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
        for source in sorted(example.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                target = folder / _replaced(str(source.relative_to(example)), words)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_replaced(source.read_text(encoding="utf-8"), words), encoding="utf-8")
    except FileExistsError as exc:
        raise StartUpError(f"{folder}: exists already; choose another name, or remove it") from exc
    except OSError as exc:
        raise StartUpError(f"{exc.filename}: {in_one_line(exc)}") from exc
    return module, plugin


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda match: words[match[0]], text)
