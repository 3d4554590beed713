"""Compares what users hold on to with another commit: python -m tools.compare_surface [COMMIT]

Commands, options, requests, pages, settings, metrics, reasons of events, values of the chart, targets of make, fields
of answers, names for plugin authors, the library with the parameters of its calls, files below deploy and addresses of
the documentation. It prints what went and what came since the commit (by default that of the last release, or before
the first one a commit of today's layout), and fails if something went that `GONE` gives no reason for. The other
tree is imported with the packages that are installed here.
"""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Final

import msgspec
import typer

from api.cli import SUBCOMMANDS, app as commands_of_reprieve
from api.settings.settings import DECLARATIONS, Settings
from tools.generate_openapi import document_text

ROOT: Final = Path(__file__).parents[1]
BEFORE_THE_FIRST_RELEASE: Final = "37cd44c6"

GONE: Final[dict[str, str]] = {
    "answers: Lasting.*": "now RandomLifetime, a type of workload files, whose fields stayed",
}
"""`kind: name` of each deliberate removal -> the reason. A name may end with `*`."""

Tree = Path


def commands(tree: Tree) -> Iterator[str]:
    """Subcommands of `reprieve`, with their arguments and options."""
    group: Any = typer.main.get_command(commands_of_reprieve)
    for name in SUBCOMMANDS:
        yield name
        for parameter in group.commands[name].load().params:
            names = (
                (parameter.name.upper(),)
                if parameter.param_type_name == "argument"
                else (*parameter.opts, *parameter.secondary_opts)
            )
            yield from (f"{name} {option}" for option in names)


def _openapi() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(document_text())
    return document


def requests(tree: Tree) -> Iterator[str]:
    """Endpoints that openapi.json describes, with their operationIds, parameters and codes of answers."""
    for path, methods in _openapi()["paths"].items():
        for method, operation in methods.items():
            request = f"{method.upper()} {path}"
            yield f"{request} ({operation['operationId']})"
            yield from (f"{request} ?{parameter['name']}" for parameter in operation.get("parameters", ()))
            yield from (f"{request} -> {code}" for code in operation["responses"])


def schemas(tree: Tree) -> Iterator[str]:
    """Schemas of openapi.json, with their fields."""
    for name, schema in _openapi()["components"]["schemas"].items():
        yield name
        yield from (f"{name}.{field}" for field in schema.get("properties", {}))


def routes(tree: Tree) -> Iterator[str]:
    """All paths that the service answers, pages included."""
    is_older = find_spec("api.routing") is None
    routed = import_module("api.app").create_app if is_older else import_module("api.routing").routed
    for path, methods in _paths(routed(Settings()).routes):
        yield f"{' '.join(sorted(methods))} {path}"


def _paths(entries: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yields the paths of routes, and of the routers that a FastAPI of this version keeps as they were included."""
    for entry in entries:
        router = getattr(entry, "original_router", None)
        if router is not None:
            yield from _paths(router.routes, prefix + str(getattr(entry.include_context, "prefix", "")))
        elif getattr(entry, "path", None) is not None:
            yield prefix + entry.path, set(getattr(entry, "methods", None) or {"*"})


def flags(tree: Tree) -> Iterator[str]:
    """Flags of `serve`, those of kube-scheduler included that have no effect."""
    yield from re.findall(r"`(--[\w-]+)`", (tree / "docs/flags.md").read_text(encoding="utf-8"))


def variables(tree: Tree) -> Iterator[str]:
    """Variables of the environment."""
    yield from (setting.variable for setting in DECLARATIONS.values())
    for folder in ("api", "extender", "reprieve", "deploy", "docs", "tests", "bench", "tools", "examples"):
        for file in (tree / folder).rglob("*"):
            if file.suffix in (".py", ".yaml", ".md", ".tpl", ".txt", ".toml", ".html"):
                yield from re.findall(r"\bREPRIEVE_[A-Z0-9_]*[A-Z0-9]\b", file.read_text(encoding="utf-8"))


def metrics(tree: Tree) -> Iterator[str]:
    """Metrics, with their types and labels."""
    for line in (tree / "docs/metrics.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| (`\w+`) \| (\w+) \| ([^|]*) \|", line):
            yield f"{row[1]} {row[2]} {row[3]}".replace("`", "").strip()


def event_reasons(tree: Tree) -> Iterator[str]:
    """Reasons of the events that are written: what follows the type of an event in a call."""
    for file in (*(tree / "extender").rglob("*.py"), *(tree / "reprieve").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                arguments = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
                for kind, reason in pairwise(arguments):
                    if kind in ("Normal", "Warning") and isinstance(reason, str):
                        yield reason


def chart_values(tree: Tree) -> Iterator[str]:
    """Values of the chart."""
    schema = json.loads((tree / "deploy/chart/values.schema.json").read_text(encoding="utf-8"))
    yield from _fields(schema, "")


def _fields(schema: Any, path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from _fields(field, f"{path}{name}.")


def make(tree: Tree) -> Iterator[str]:
    """Targets of make, and the variables that they take."""
    makefile = (tree / "Makefile").read_text(encoding="utf-8")
    yield from re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE)
    yield from re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE)
    yield from re.findall(r"\b([A-Z_]+)=(?=[ ,)\w])", makefile)


def answers(tree: Tree) -> Iterator[str]:
    """Types of answers (`-o json`) and of questions, with their fields as they are written."""
    packages = "extender.answers", "extender.lab", "reprieve", "api"
    for package in packages:
        for module in _modules_of(package):
            for kind in vars(module).values():
                is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
                is_data = is_struct and kind.__name__[0] != "_" and not kind.__struct_config__.array_like
                if is_data and kind.__module__.startswith((*packages, "extender.values.protocol")):
                    yield from (f"{kind.__name__}.{field}" for field in kind.__struct_encode_fields__)


def _modules_of(name: str) -> Iterator[Any]:
    try:
        package = import_module(name)
    except ModuleNotFoundError:
        return
    yield package
    for module in walk_packages(getattr(package, "__path__", ()), f"{name}."):
        if not module.name.endswith(("__main__", "top_screen")) and ".examples" not in module.name:
            yield import_module(module.name)


def framework(tree: Tree) -> Iterator[str]:
    """Names for plugin authors, and for those who run the service with a server of their own."""
    for name in ("extender.framework", "extender.testing"):
        yield from (f"{name}.{exported}" for exported in _exported_by(name))
    for name in ("reprieve.plugin", "reprieve.testing", "reprieve.gym", "reprieve.cluster"):
        with suppress(ModuleNotFoundError):  # older trees have none of them
            yield from (f"{name}.{exported}" for exported in _exported_by(name))
    yield "api.main.app" if hasattr(import_module("api.main"), "app") else "api.main"


def _exported_by(name: str) -> Iterable[str]:
    package = import_module(name)
    public = (
        attribute
        for attribute in vars(package)
        if not attribute.startswith("_") and f"{name}.{attribute}" not in sys.modules
    )
    return getattr(package, "__all__", public)


def library(tree: Tree) -> Iterator[str]:
    """Names of `reprieve`, with the public attributes of its classes and the parameters of their methods; and those of
    the plugin of pytest.
    """
    for plugin in tree.glob("reprieve/pytest_plugin.py"):  # older trees have none
        yield from set(re.findall(r"(?:def |\")((?:--)?reprieve[_-]\w+)", plugin.read_text(encoding="utf-8")))
    with suppress(ModuleNotFoundError):  # older trees have no library
        for exported in _exported_by("reprieve"):
            of_class = getattr(import_module("reprieve"), exported)
            yield exported
            for name in dir(of_class):
                if name[0] != "_":
                    yield f"{exported}.{name}"
                    method = inspect.getattr_static(of_class, name)
                    parameters = inspect.signature(method).parameters if inspect.isfunction(method) else {}
                    yield from (f"{exported}.{name}({parameter})" for parameter in parameters if parameter != "self")


def deployed_files(tree: Tree) -> Iterator[str]:
    """Files below deploy."""
    yield from (str(file.relative_to(tree)) for file in (tree / "deploy").rglob("*") if file.is_file())


def pages(tree: Tree) -> Iterator[str]:
    """Addresses of the documentation."""
    docs = tree / "docs"
    yield from (str(file.relative_to(docs).with_suffix("")) for file in docs.rglob("*.md"))


KINDS: Final[tuple[Callable[[Tree], Iterator[str]], ...]] = (
    commands,
    requests,
    schemas,
    routes,
    flags,
    variables,
    metrics,
    event_reasons,
    chart_values,
    make,
    answers,
    framework,
    library,
    deployed_files,
    pages,
)


def snapshot(tree: Tree) -> dict[str, list[str]]:
    """Returns the names of each kind, of the tree whose packages are imported."""
    if not Path(str(import_module("extender").__file__)).is_relative_to(tree):
        raise RuntimeError(f"extender is not imported from {tree}")
    return {kind.__name__: sorted(set(kind(tree))) for kind in KINDS}


def taken_in(tree: Tree) -> dict[str, list[str]]:
    """Returns the snapshot of a tree, taken by this file in a process that imports that tree's packages."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "REPRIEVE_HOST": "127.0.0.1"}
    done = subprocess.run(  # noqa: S603 - this interpreter, and this file
        [sys.executable, str(Path(__file__).resolve()), "--snapshot", str(tree)],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    names: dict[str, list[str]] = json.loads(done.stdout)
    return names


def reason_for(kind: str, name: str) -> str | None:
    """Returns why a name of a kind went."""
    for pattern, why in GONE.items():
        text = f"{kind}: {name}"
        if text == pattern or (pattern.endswith("*") and text.startswith(pattern[:-1])):
            return why
    return None


def compare(before: dict[str, list[str]], now: dict[str, list[str]]) -> int:
    """Prints the differences, and returns how many have no reason."""
    unexplained = 0
    for kind, names in before.items():
        went, came = sorted(set(names) - set(now[kind])), sorted(set(now[kind]) - set(names))
        print(f"{kind}: {len(now[kind])}, {len(went)} went, {len(came)} came")
        for name in went:
            why = reason_for(kind, name)
            unexplained += why is None
            print(f"  - {name}: {why or 'NO REASON IS GIVEN'}")
        for name in came:
            print(f"  + {name}")
    return unexplained


def _last_release() -> str:
    """Returns the newest tag of a release that this tree descends from."""
    described = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match", "v*"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or BEFORE_THE_FIRST_RELEASE


def main() -> None:
    """Compares this tree with a commit."""
    if sys.argv[1:2] == ["--snapshot"]:
        print(json.dumps(snapshot(Path(sys.argv[2]))))
        return
    commit = sys.argv[1] if len(sys.argv) > 1 else _last_release()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)  # noqa: S603, S607
        try:
            before = taken_in(tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)  # noqa: S603, S607
    unexplained = compare(before, taken_in(ROOT))
    if unexplained:
        print(f"{unexplained} names went without a reason in GONE of tools/compare_surface.py")
    sys.exit(min(unexplained, 1))


if __name__ == "__main__":
    main()
