"""Writes the pages of docs/reference that say what the code says: commands, configuration, plugins, limits.

python -m tools.generate_reference
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from api.cli import SUBCOMMANDS, app
from api.cli.examples import LINES
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import POINTS, implemented_points
from extender.values import limits
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration, PluginConfig, Profile, enabled_names
from extender.values.config.plugin_args import ARGS_OF
from extender.values.config.plugin_sets import DEFAULT_PLUGINS
from reprieve.cluster import limits as cluster_limits
from reprieve.errors import EXIT_CODES
from reprieve.lab import limits as lab_limits

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "reference"

_COMMANDS: Final = """\
# Commands

`reprieve COMMAND -h` prints the same, and `kubectl reprieve COMMAND` is the same command.

## Which cluster is asked

The first of these that is given: a file (`--dump`), a service (`--server`), the cluster of a kubeconfig
(`--kubeconfig`) or of one of its contexts (`--context`), the service that `REPRIEVE_SERVER` names. Without any, it is
the cluster that kubectl would ask: that of `KUBECONFIG`, of the pod that the command runs in, of `~/.kube/config`. A
service on this machine (http://127.0.0.1:8888) answers in its place if it follows the same cluster, or if there is no
kubeconfig. If the answer does not come from kubectl's cluster, the first line on standard error says so.

## Exit codes

"""

_SEVERAL: Final = 4
"""Options that so many commands have are described once."""

_CONFIGURATION: Final = """\
# Configuration

Reprieve reads kube-scheduler's configuration, `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, with
its defaults, its checks and its error messages. Every command that decides takes `--config FILE`; `reprieve
print-config --config FILE` prints it with every default. What belongs to the process rather than to scheduling is a
[flag](../flags.md).

A plugin of your own is enabled like any other, at `multiPoint` or at one of its extension points, and gets what
`pluginConfig` holds for it as plain values. `reprieve plugins --all` lists all plugins. `extenders` are called as
kube-scheduler calls them; `reprieve print-scheduler-config` prints [an entry](../how-to/beside-kube-scheduler.md).
"""

_PLUGINS: Final = """\
# Plugins

kube-scheduler's plugins, in the order of the default profile; the [reference of
Kubernetes](https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins) says what they do. A plugin
whose [feature gate](../feature-gates.md) is off is in no profile by default, and does nothing in one that names it.
[Configuration](configuration.md) has the arguments; `reprieve plugins` lists your own plugins.

| plugin | extension points | weight |
|---|---|---|
"""

_LIMITS: Final = """\
# Limits

Every input is bounded where it comes in, and so is what answers show and what is kept. Some limits can be set by
[flags](../flags.md).
"""


# Commands.


def commands_page() -> str:
    """Returns docs/reference/commands.md."""
    group: Any = typer.main.get_command(app)
    commands = {name: group.commands[name].load() for name in SUBCOMMANDS}
    rows = Counter(row for name, command in commands.items() if name != "serve" for row in _options(command).values())
    shared = {row for row, number in rows.items() if number >= _SEVERAL}
    codes = (
        "| code | what it means |\n|---|---|",
        *(f"| {code} | {words} |" for code, words in EXIT_CODES.items()),
        "",
    )
    options = ("## Common options\n", *(row for row in rows if row in shared), "")
    lines = (line for name, command in commands.items() for line in _command(name, command, shared))
    return "\n".join([_COMMANDS, *codes, *options, *lines])


def _options(command: Any) -> dict[str, str]:
    """Returns the first name of each option -> its line."""
    options = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
    return {option.opts[0]: f"- {_names(option)}: {_cell(option.help or '')}{_default(option)}" for option in options}


def _command(name: str, command: Any, shared: set[str]) -> Iterator[str]:
    arguments = [argument for argument in command.params if argument.param_type_name == "argument"]
    shape = " ".join(argument.metavar or argument.name.upper() for argument in arguments)
    yield f"## reprieve {name}\n"
    if shape:
        words = (_paragraph(argument.help or "") for argument in arguments)
        yield f"`reprieve {name} {shape}`: {' '.join(words)}\n"
    yield from (f"{_paragraph(text)}\n" for text in re.split(r"\n\s*\n", (command.help or "").strip()))
    lines = "\n".join(LINES[name])
    yield f"```sh\n{lines}\n```\n"
    options = _options(command)
    if name == "serve":
        flags = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")
        options = {option: row for option, row in options.items() if f"`{option}`" not in flags}
        yield "Its options are the settings of [Flags](../flags.md), and:\n"
    rows = [row for row in options.values() if row not in shared]
    if rows:
        yield from rows
        yield ""
    common = shared.intersection(options.values())
    if common:
        yield f"{'Also' if rows else 'It takes'} {_of_the_shared(common, shared)}.\n"


def _of_the_shared(rows: Collection[str], shared: Collection[str]) -> str:
    """Returns these of the shared options in words, by the shorter list: these, or all but the others."""
    all_of_them = "the [common options](#common-options)"
    absent = set(shared) - set(rows)
    if len(absent) > len(rows):
        return ", ".join(sorted(row.split("`")[1].join("``") for row in rows))
    but = ", ".join(sorted(row.split("`")[1].join("``") for row in absent))
    return f"{all_of_them} without {but}" if but else all_of_them


def _paragraph(text: str) -> str:
    """Returns a paragraph of help; one that begins with \\b is shown as it is."""
    if text.startswith("\b"):
        lines = text.removeprefix("\b").strip("\n")
        return f"```text\n{lines}\n```"
    return _outside_code(" ".join(text.split()))


def _outside_code(text: str) -> str:
    """Returns the text with its < escaped where it is not code, which shows a backslash."""
    return "`".join(part if is_code % 2 else part.replace("<", "\\<") for is_code, part in enumerate(text.split("`")))


def _names(option: Any) -> str:
    names = [f"`{name}`" for name in (*option.opts, *option.secondary_opts)]
    return ", ".join(names)


def _default(option: Any) -> str:
    value = option.default
    if callable(value) or value is None or value in ("", False, ()) or option.secondary_opts:
        is_switch = isinstance(value, bool) and option.secondary_opts
        return f" Default: {'on' if value else 'off'}." if is_switch else ""
    return f" Default: `{getattr(value, 'value', value)}`."


def _cell(text: str) -> str:
    return _outside_code(" ".join(text.split()).replace("|", "\\|"))


# Configuration.


def configuration_page() -> str:
    """Returns docs/reference/configuration.md."""
    return "\n".join([_CONFIGURATION, *_defaults(), *_arguments()])


def _defaults() -> Iterator[str]:
    document = written(Configuration())
    del document["profiles"]
    yield "## Defaults\n"
    yield "The plugins of a profile are [here](plugins.md), their arguments below.\n"
    yield f"```yaml\n{_yaml(document)}```\n"


def _arguments() -> Iterator[str]:
    """Yields the default arguments of each plugin that has some."""
    yield "## Arguments of kube-scheduler's plugins\n"
    [profile] = Configuration().profiles
    names = sorted(enabled_names(profile.plugins) & ARGS_OF.keys())
    configuration = Configuration(
        profiles=(Profile(plugin_configs=tuple(PluginConfig(name, ARGS_OF[name]()) for name in names)),)
    )
    for config in written(configuration)["profiles"][0]["pluginConfig"]:
        arguments: Mapping[str, Any] = {
            key: value for key, value in config["args"].items() if key not in ("apiVersion", "kind")
        }
        summary = " ".join((ARGS_OF[config["name"]].__doc__ or "").split("\n\n")[0].split())
        yield f"### {config['name']}\n"
        yield f"{summary}\n"
        yield f"```yaml\n{_yaml(arguments)}```\n" if arguments else "It has no arguments by default.\n"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=110)


# Plugins and limits.


def plugins_page() -> str:
    """Returns docs/reference/plugins.md."""
    weights = {plugin.name: plugin.weight or 1 for plugin in DEFAULT_PLUGINS["multiPoint"].enabled}
    lines = [_PLUGINS]
    for name, plugin in IN_TREE.items():
        points = [point for point in POINTS if point in implemented_points(plugin)]
        lines.append(f"| {name} | {', '.join(points)} | {weights[name] if 'score' in points else ''} |\n")
    return "".join(lines)


def limits_page() -> str:
    """Returns docs/reference/limits.md."""
    tables = (limits, lab_limits, cluster_limits)
    rows = [limit for table in tables for limit in vars(table).values() if isinstance(limit, limits.Limit)]
    lines = [_LIMITS]
    for door in limits.Door:
        at_door = [limit for limit in rows if limit.door is door]
        lines.append(f"## {door}\n\n| at most | beyond it |\n|---|---|")
        lines += [f"| {_amount(limit)} | {_cell(limit.told)} |" for limit in at_door]
        lines.append("")
    return "\n".join(lines)


def _amount(limit: limits.Limit) -> str:
    """Returns the number and what it counts; bytes in KiB, MiB or GiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if limit >= size and limit % size == 0 and limit.what.startswith("bytes "):
            return f"{limit // size} {unit} {_cell(limit.what.removeprefix('bytes '))}"
    return f"{limit:,} {_cell(re.sub('^seconds', 's', limit.what))}"


PAGES: Final = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "plugins.md": plugins_page,
    "limits.md": limits_page,
}
"""Name of the file in docs/reference -> what makes it."""


def main() -> None:
    """Writes the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page().rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
