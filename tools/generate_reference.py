"""Writes the pages of docs/reference that say what the code says: commands, configuration, requests, plugins, limits.

python -m tools.generate_reference
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from api.cli import SUBCOMMANDS, app
from api.fatal_errors import EXIT_CODES
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import POINTS, implemented_points
from extender.values import limits
from extender.values.config import Configuration, PluginConfig, Profile, load, written
from extender.values.config.configuration import enabled_names
from extender.values.config.plugin_args import ARGS_OF
from extender.values.config.plugin_sets import DEFAULT_PLUGINS

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "reference"

_COMMANDS: Final = """\
# Commands

`make docs` writes this page from the commands themselves. `reprieve COMMAND -h` prints the same, and `kubectl reprieve
COMMAND` is the same command. `reprieve completion bash` (zsh, fish) makes a shell complete all of it. An error that you
can mend is one line on standard error.

## Which cluster is asked

`why`, `whatif`, `victims`, `fits` and the other questions ask what the command line names: a file (`--dump`), a service
(`--server`), the cluster of a kubeconfig (`--kubeconfig`) or of one of its contexts (`--context`), in this order. Else
it is the service that `REPRIEVE_SERVER` names, and else the cluster that kubectl would ask: that of `KUBECONFIG`, of
the pod that the command runs in, of `~/.kube/config`. A service on this machine (http://127.0.0.1:8888) answers in its
place if it follows the same cluster, and if no kubeconfig names any. Where the answer does not come from where
kubectl's would, the first line on standard error says so. A cluster or service that is silent is given up within ten
seconds.

## Exit codes

"""

_OPTIONS: Final = "| option | default | what it does |\n|---|---|---|"

_SEVERAL: Final = 4
"""Options that so many commands have are described once."""

_CONFIGURATION: Final = """\
# Configuration

`make docs` writes this page from the types that read a configuration.

Reprieve reads kube-scheduler's configuration as it is: `KubeSchedulerConfiguration` of
`kubescheduler.config.k8s.io/v1`, with its defaults, its checks and its words for what is wrong. `--config FILE` takes
it for every command that decides; `reprieve print-config --config FILE` prints it with every default. What belongs to
the process rather than to scheduling is a flag or a variable of the environment: [Flags](../flags.md).

A plugin of your own is enabled like any other, at `multiPoint` or at one of its extension points; `reprieve plugins
--all` lists all of them. Its arguments are what `pluginConfig` holds for it, as plain values.
"""

_REST: Final = """\
# Requests

`make docs` writes this page from [openapi.json](../../openapi.json), which has every field of every request. A running
service shows the same at `/docs`, where each request can be tried, and serves the document at `/openapi.json`.
[Access](../access.md) says who may send what. Where a command asks the same, `-o json` prints the body of the answer.
A refusal is a Kubernetes Status, with the reason and the code.
"""

_PLUGINS: Final = """\
# Plugins

`make docs` writes this page from the plugins of kube-scheduler that Reprieve has, in the order of the default profile.
A plugin whose feature gate is off is in no profile by default, and does nothing where one names it, with a line at the
start ([Feature gates](../feature-gates.md)). The arguments of each are in
[Configuration](configuration.md#arguments-of-kube-schedulers-plugins); `reprieve plugins` lists those of your own, too.

| plugin | what it does | extension points | weight |
|---|---|---|---|
"""

_LIMITS: Final = """\
# Limits

`make docs` writes this page from `extender/values/limits.py`, which also has how much answers show: an answer that
leaves something out says so. Every input is bounded where it comes in. Limits that can be set are
[flags](../flags.md), too.
"""

_METHODS: Final = ("get", "put", "post", "patch", "delete")


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
    options = ("## Options of several commands\n", _OPTIONS, *(row for row in rows if row in shared), "")
    said = (line for name, command in commands.items() for line in _command(name, command, shared))
    return "\n".join([_COMMANDS, *codes, *options, *said])


def _options(command: Any) -> dict[str, str]:
    """Returns the first name of each option -> its row in a table."""
    shown = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    return {each.opts[0]: f"| {_names(each)} | {_default(each)} | {_cell(each.help or '')} |" for each in shown}


def _command(name: str, command: Any, shared: set[str]) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    shape = " ".join(each.metavar or each.name.upper() for each in arguments)
    yield f"## reprieve {name}\n"
    if shape:
        yield f"`reprieve {name} {shape}`\n"
    yield from (f"{_paragraph(text)}\n" for text in re.split(r"\n\s*\n", (command.help or "").strip()))
    if arguments:
        yield "| argument | what it is |\n|---|---|"
        yield from (f"| `{each.name}` | {_cell(each.help or '')} |" for each in arguments)
        yield ""
    options = _options(command)
    if name == "serve":
        flags = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")
        options = {option: row for option, row in options.items() if f"`{option}`" not in flags}
        yield "Its options are the settings of [Flags](../flags.md), and:\n"
    own = [row for row in options.values() if row not in shared]
    if own:
        yield _OPTIONS
        yield from own
        yield ""
    others = shared.intersection(options.values())
    if others:
        yield f"It {'also ' if own else ''}takes {_of_the_shared(others, shared)}.\n"


def _of_the_shared(rows: Collection[str], shared: Collection[str]) -> str:
    """Returns which of the shared options these are, by whichever list is the shorter one."""
    all_of_them = "the [options of several commands](#options-of-several-commands)"
    missing = set(shared) - set(rows)
    if len(missing) > len(rows):
        return ", ".join(sorted(row.split("`")[1].join("``") for row in rows))
    but = ", ".join(sorted(row.split("`")[1].join("``") for row in missing))
    return f"{all_of_them}, but not {but}" if but else all_of_them


def _paragraph(text: str) -> str:
    """Returns a paragraph of help; one that begins with \\b is shown as it is."""
    if text.startswith("\b"):
        lines = text.removeprefix("\b").strip("\n")
        return f"```text\n{lines}\n```"
    return " ".join(text.split()).replace("<", "\\<")


def _names(option: Any) -> str:
    names = [f"`{name}`" for name in (*option.opts, *option.secondary_opts)]
    return ", ".join(names)


def _default(option: Any) -> str:
    value = option.default
    if callable(value) or value is None or value in ("", False, ()) or option.secondary_opts:
        return {True: "on", False: "off"}.get(value, "") if isinstance(value, bool) and option.secondary_opts else ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


# Configuration.


def configuration_page() -> str:
    """Returns docs/reference/configuration.md."""
    return "\n".join([_CONFIGURATION, *_defaults(), *_arguments()])


def _defaults() -> Iterator[str]:
    document = written(Configuration())
    document["profiles"] = [{key: value for key, value in document["profiles"][0].items() if key != "pluginConfig"}]
    yield "## All fields, with their defaults\n"
    yield f"```yaml\n{_yaml(document)}```\n"
    yield "## An extender\n"
    yield (
        "Every field of an entry of `extenders`, as Reprieve calls other extenders, and as kube-scheduler calls "
        "Reprieve:\n"
    )
    example = load(_EXTENDER)
    yield f"```yaml\n{_yaml({'extenders': written(example)['extenders']})}```\n"


_EXTENDER: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://10.96.0.42/extender
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  bindVerb: bind
  weight: 1
  enableHTTPS: true
  tlsConfig: {serverName: reprieve.kube-system.svc, caFile: /etc/kubernetes/reprieve/ca.crt}
  httpTimeout: 5s
  nodeCacheCapable: true
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
  ignorable: true
"""


def _arguments() -> Iterator[str]:
    """Yields the default arguments of each plugin that has some."""
    yield "## Arguments of kube-scheduler's plugins\n"
    [profile] = Configuration().profiles
    names = sorted(enabled_names(profile.plugins) & ARGS_OF.keys())
    shown = Configuration(
        profiles=(Profile(plugin_configs=tuple(PluginConfig(name, ARGS_OF[name]()) for name in names)),)
    )
    for config in written(shown)["profiles"][0]["pluginConfig"]:
        arguments: Mapping[str, Any] = {
            key: value for key, value in config["args"].items() if key not in ("apiVersion", "kind")
        }
        summary = " ".join((ARGS_OF[config["name"]].__doc__ or "").split("\n\n")[0].split())
        yield f"### {config['name']}\n"
        yield f"{summary}\n"
        yield f"```yaml\n{_yaml(arguments)}```\n" if arguments else "It has no arguments by default.\n"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=110)


# Requests.


def rest_page() -> str:
    """Returns docs/reference/rest.md."""
    document = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    requests = [
        (f"{method.upper()} {path}", said)
        for path, methods in document["paths"].items()
        for method, said in methods.items()
        if method in _METHODS
    ]
    lines = [_REST, "| request | what it answers |\n|---|---|"]
    lines += [f"| `{name}` | {_cell(said.get('summary') or said.get('description', ''))} |" for name, said in requests]
    lines.append("\n## Refusals\n\n| code | why |\n|---|---|")
    lines += [f"| {code} | {_cell(' '.join(words))} |" for code, words in _refusals(document).items()]
    return "\n".join(lines)


def _refusals(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns what several requests are refused with, and why, by code."""
    said = Counter(
        (code, answer["description"])
        for methods in document["paths"].values()
        for request in methods.values()
        for code, answer in request["responses"].items()
        if code.startswith(("4", "5"))
    )
    refusals: dict[str, list[str]] = {}
    for (code, words), number in sorted(said.items()):
        if number > 1:
            refusals.setdefault(code, []).append(words)
    return refusals


# Plugins and limits.


def plugins_page() -> str:
    """Returns docs/reference/plugins.md."""
    weights = {plugin.name: plugin.weight or 1 for plugin in DEFAULT_PLUGINS["multiPoint"].enabled}
    lines = [_PLUGINS]
    for name, plugin in IN_TREE.items():
        points = [point for point in POINTS if point in implemented_points(plugin)]
        words = _cell((plugin.__doc__ or "").split("\n\n")[0])
        lines.append(f"| {name} | {words} | {', '.join(points)} | {weights[name] if 'score' in points else ''} |\n")
    return "".join(lines)


def limits_page() -> str:
    """Returns docs/reference/limits.md."""
    rows = [each for each in vars(limits).values() if isinstance(each, limits.Limit)]
    lines = [_LIMITS]
    for door in filter(lambda door: door is not limits.Door.ANSWERS, limits.Door):
        at_door = [each for each in rows if each.door is door]
        if at_door:
            lines.append(f"## {door}\n\n| limit | of what | beyond it |\n|---|---|---|")
            lines += [f"| {_amount(each)} | {_cell(each.what)} | {_cell(each.told)} |" for each in at_door]
            lines.append("")
    return "\n".join(lines)


def _amount(limit: limits.Limit) -> str:
    """Returns the number, and how many KiB, MiB or GiB it is where it counts bytes."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if limit >= size and limit % size == 0 and limit.what.startswith("bytes"):
            return f"{limit // size} {unit}"
    return f"{limit:,}"


PAGES: Final = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "rest.md": rest_page,
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
