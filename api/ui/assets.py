"""The page's style sheet, scripts and pictures, under a path that changes with them, so that browsers may keep them
forever.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, final

_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@final
@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    media_type: str


@final
@dataclass(frozen=True, slots=True)
class Assets:
    """All files, with one version for all of them, so that scripts find each other under the same path."""

    version: str
    files: Mapping[str, Asset]

    def path(self, name: str) -> str:
        """Returns the path of the file."""
        if name not in self.files:
            raise LookupError(f"there is no file {name}")
        return f"/ui/static/{self.version}/{name}"


@cache
def assets() -> Assets:
    """Returns the files of this version of the program."""
    folder = resources.files("api.ui") / "static"
    found = {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)}
    files = {name: Asset(content, _TYPES[f".{name.rpartition('.')[2]}"]) for name, content in found.items()}
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + content for name, content in found.items()))
    return Assets(digest.hexdigest()[:16], files)
