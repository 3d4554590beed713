"""The documentation site: `make site` builds it into build/site."""

import re
from pathlib import Path
from typing import Any

from extender import __version__

HERE = Path(__file__).parent

project = "Reprieve"
author = "The authors of Reprieve"
release = version = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["licences.md"]
myst_heading_anchors = 3
# Requests with JSON over several lines are not what the highlighter takes for a session in a shell.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"Reprieve {release}"
html_show_sphinx = False
html_copy_source = False

# Addresses of this machine and of examples are no pages.
linkcheck_ignore = [r"https?://(127\.0\.0\.1|localhost|10\.|reprieve\.)"]
linkcheck_timeout = 20

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def name_files_of_the_repository(app: Any, page: str, source: list[str]) -> None:
    """Makes of links that lead out of the site, to files of the repository, their names."""
    folder = (HERE / page).parent

    def named(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(HERE) or not target.exists():
            return link[0]
        file = str(target.relative_to(HERE.parent))
        return link[1] if file in link[1] else f"{link[1]} (`{file}`)"

    source[0] = _LINK.sub(named, source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", name_files_of_the_repository)
