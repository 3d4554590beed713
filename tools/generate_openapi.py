"""Writes openapi.json, and docs/schemas/extender-v1.json, the JSON Schema of the extender protocol.

python -m tools.generate_openapi [FILE]
"""

import json
import sys
from pathlib import Path
from typing import Final

from api.routing import routed
from api.settings.settings import Settings
from reprieve.lab.extender_schema import extender_schema

SCHEMA_FILE: Final = Path("docs/schemas/extender-v1.json")


def document_text() -> str:
    """Returns the OpenAPI document of a service with default settings."""
    return json.dumps(routed(Settings()).openapi(), indent=2, sort_keys=True) + "\n"


def schema_text(document: str) -> str:
    """Returns the JSON Schema of the extender protocol that is part of an OpenAPI document."""
    return json.dumps(extender_schema(json.loads(document)), indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Writes the files to the current folder; or the OpenAPI document alone, to the file that is named."""
    text = document_text()
    Path(sys.argv[1] if len(sys.argv) > 1 else "openapi.json").write_text(text, encoding="utf-8")
    if len(sys.argv) < 2:
        SCHEMA_FILE.parent.mkdir(exist_ok=True)
        SCHEMA_FILE.write_text(schema_text(text), encoding="utf-8")


if __name__ == "__main__":
    main()
