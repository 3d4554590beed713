"""A command imports what it needs: asking for the version or for help costs no engine, no web framework and no HTTP client."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from api.cli import SUBCOMMANDS
from tests.api.serving import Service

ROOT = Path(__file__).parents[2]

HEAVY = (  # Typer itself uses pydantic
    "fastapi", "starlette", "uvicorn", "numpy", "aiohttp", "httpx", "jinja2", "prometheus_client", "cel_expr_python",
    "extender.snapshot", "extender.framework", "extender.embedded", "extender.apiserver", "extender.config", "api.settings", "api.app",
)  # fmt: skip


def loaded_by(*arguments: str) -> list[str]:
    """
    The heavy modules that a command has imported by its end.
    """
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.__stderr__))\n"
        "from api.cli import main\n"
        f"sys.argv = ['reprieve', *{arguments!r}]\n"
        "main()"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return run.stderr.split()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["why", "--help"]], ids=" ".join)
def test_asking_for_the_version_or_for_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded_by(*arguments) == []


def test_asking_a_service_takes_an_http_client_and_no_engine(example: Service) -> None:
    pod = example.client.get("/v1/cluster").json()["nodes"][0]["pods"][0]["pod"]

    loaded = loaded_by("why", f"{pod['namespace']}/{pod['name']}", "--server", f"http://127.0.0.1:{example.port}")

    assert loaded == ["httpx"]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_list_of_commands_says_what_the_commands_own_help_begins_with(name: str) -> None:
    module, function, summary = SUBCOMMANDS[name]

    help_text = inspect.getdoc(getattr(import_module(f"api.cli.{module}"), function))

    assert help_text is not None and help_text.split("\n\n")[0] == summary
