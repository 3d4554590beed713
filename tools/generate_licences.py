"""Writes `docs/licences.md`, the licences of what is installed with Reprieve: `python -m tools.generate_licences` (or
`make licences`).
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements.lock"
PAGE: Final = ROOT / "docs" / "licences.md"

SWAGGER_UI: Final = "5.35.0"

UNNAMED: Final = {"colorama": "BSD-3-Clause"}
"""Packages that do not name their licence, or are installed on Windows only, so that it cannot be read elsewhere."""


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
    rows = "".join(f"| {package} | {licence(package)} |\n" for package in packages())
    return f"""\
# Licences

Reprieve is licensed under Apache-2.0. These packages are installed with it, at the versions of `requirements.lock`.
`make licences` writes this page from what they declare.

| Package | Licence |
| --- | --- |
{rows}
The page at `/docs` has Swagger UI {SWAGGER_UI}, Apache-2.0, Copyright SmartBear Software Inc.; its files and licences
are in `api/documents/swagger_ui`.
"""


def main() -> None:
    """Writes the page."""
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except PackageNotFoundError as exc:
        sys.exit(f"{exc.name} is not installed: `make` installs what requirements-dev.lock pins")


if __name__ == "__main__":
    main()
