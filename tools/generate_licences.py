"""Writes `docs/licences.md`, what is installed with Reprieve, how large it is, who needs it, and under which licence:
`python -m tools.generate_licences` (or `make licences`).
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, files, metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements.txt"
PAGE: Final = ROOT / "docs" / "licences.md"

SWAGGER_UI: Final = "5.35.0"

UNNAMED: Final = {"colorama": "BSD-3-Clause"}
"""Packages that do not name their licence, or are installed on Windows only, so that it cannot be read elsewhere."""


NEEDED_FOR: Final = {
    "cel-expr-python": "device selectors (DRA)",
    "cryptography": "`--secure-port` without a certificate, and nothing else",
    "fastapi": "the service",
    "google-re2": "device selectors (DRA)",
    "httptools": "HTTP, of the service and to API servers",
    "httpx": "commands that ask a service; the cluster in memory",
    "jinja2": "the page",
    "jsonpatch": "the cluster in memory",
    "jsonschema-rs": "`doctor`, and nothing else",
    "msgspec": "Kubernetes objects",
    "numpy": "decisions",
    "orjson": "JSON without a type",
    "prometheus-client": "`/metrics`",
    "pydantic": "the service",
    "pyyaml": "configurations and manifests",
    "rich": "tables of commands",
    "typer": "commands",
    "uvicorn": "the service",
    "uvloop": "the event loop of the service",
}
"""For each package that pyproject.toml names, which part of Reprieve needs it."""


def needed_by() -> dict[str, str]:
    """Returns for each package of the lock file the part of Reprieve, or the packages, that need it."""
    entries = re.split(r"^(?=[a-z0-9])", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    needs = re.compile(r"^    # (?:via |  )\s*(\w\S*)", re.MULTILINE)
    via = {entry.partition("==")[0]: needs.findall(entry) for entry in entries}
    return {name: NEEDED_FOR.get(name) or ", ".join(needing) for name, needing in via.items()}


def megabytes(package: str) -> str:
    """Returns the size of the files of an installed package; `-` where it is not installed."""
    try:
        package_files = files(package) or ()
    except PackageNotFoundError:
        return "-"
    # Compiled modules are made when they are first used.
    paths = [Path(str(file.locate())) for file in package_files if file.suffix != ".pyc"]
    return f"{sum(file.stat().st_size for file in paths if file.is_file()) / 1e6:.1f}"


def packages() -> list[str]:
    """Returns the names in the lock file, sorted."""
    return sorted(set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE)))


def licence(package: str) -> str:
    """Returns the licence that an installed package declares: an SPDX expression if it has one, else its trove
    classifier or free text.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    if package in UNNAMED:
        return UNNAMED[package]
    declared = metadata(package).json
    classifiers = [
        value.rpartition(" :: ")[2] for value in declared.get("classifier", ()) if value.startswith("License :: ")
    ]
    return str(declared.get("license_expression") or " AND ".join(classifiers) or declared.get("license", ""))


def page() -> str:
    """Returns the page, as Markdown."""
    needing, sizes = needed_by(), {package: megabytes(package) for package in packages()}
    rows = "".join(f"| {name} | {size} | {needing[name]} | {licence(name)} |\n" for name, size in sizes.items())
    total = sum(float(size) for size in sizes.values() if size != "-")
    return f"""\
# Licences

Reprieve is licensed under Apache-2.0. These packages are installed with it, at the versions of `requirements.txt`:
{total:.0f} MB on Linux (x86-64, Python 3.11), without compiled modules. `make licences` writes this page from what they
declare.

| Package | MB | Needed by | Licence |
| --- | --- | --- | --- |
{rows}
The page at `/docs` has Swagger UI {SWAGGER_UI}, Apache-2.0, Copyright SmartBear Software Inc.; its files and licences
are in `api/documents/swagger_ui`.
"""


def main() -> None:
    """Writes the page."""
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except PackageNotFoundError as exc:
        sys.exit(f"{exc.name} is not installed: `make` installs what requirements-dev.txt pins")


if __name__ == "__main__":
    main()
