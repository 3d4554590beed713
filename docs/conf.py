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
# What people who change Reprieve read is in the repository, and not in the site.
exclude_patterns = ["licences.md", "decisions", "maintain"]
myst_heading_anchors = 3
smartquotes = False  # `--like` stays what has to be typed
# Requests with JSON over several lines are not what the highlighter takes for a session in a shell.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_title = f"Reprieve {release}"
html_show_sphinx = False
html_copy_source = False

# Addresses of this machine and of examples are no pages.
linkcheck_ignore = [r"https?://(127\.0\.0\.1|localhost|10\.|reprieve\.)"]
linkcheck_timeout = 20

# Addresses that pages had before, and where their readers are led.
MOVED = {
    "performance": "figures",
    "conformance": "figures",
    "explanation/decisions": "index",
    "reference/rest": "questions",
}

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def name_files_of_the_repository(app: Any, page: str, source: list[str]) -> None:
    """Makes of links that lead out of the site, to files of the repository, their names."""
    folder = (HERE / page).parent

    def named(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        left_out = any(target.is_relative_to(HERE / name) for name in exclude_patterns)
        if (target.is_relative_to(HERE) and not left_out) or not target.exists():
            return link[0]
        file = str(target.relative_to(HERE.parent))
        return link[1] if file in link[1] else f"{link[1]} (`{file}`)"

    source[0] = _LINK.sub(named, source[0])


def lead_from_former_addresses(app: Any, exception: Exception | None) -> None:
    """Writes a page for each address that is no more, which leads to where its text went."""
    for former, page in MOVED.items():
        target = f"{'../' * former.count('/')}{page}.html"
        file = Path(app.outdir, f"{former}.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            '<!doctype html><meta charset="utf-8"><title>Moved</title>'
            f'<meta http-equiv="refresh" content="0; url={target}">'
            f'<link rel="canonical" href="{target}"><a href="{target}">Moved</a>\n',
            encoding="utf-8",
        )


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", name_files_of_the_repository)
    app.connect("build-finished", lead_from_former_addresses)
