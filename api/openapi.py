"""Writes openapi.json.

python -m api.openapi [FILE]
"""

import json
import sys
from pathlib import Path

from api.app import create_app
from api.settings.settings import Settings


def document_text() -> str:
    """Returns the OpenAPI document of a service with default settings."""
    return json.dumps(create_app(Settings()).openapi(), indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Writes the file, by default openapi.json in the current folder."""
    Path(sys.argv[1] if len(sys.argv) > 1 else "openapi.json").write_text(document_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
