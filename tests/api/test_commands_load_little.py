"""A command imports what it needs: asking for the version or for help costs no engine, no web framework and no HTTP
client.
"""

import inspect
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from api.cli import SUBCOMMANDS, app
from tests.kit.service import Service, kubeconfig_for
from tests.kit.waiting import DEADLINE

ROOT = Path(__file__).parents[2]

HEAVY = (  # Typer itself uses pydantic
    "fastapi", "starlette", "uvicorn", "numpy", "httpx", "jinja2", "prometheus_client", "cel_expr_python",
    "extender.engine.snapshot", "extender.engine.framework", "reprieve.cluster", "extender.client", "extender.values.config",
    "api.settings", "api.app",
)  # fmt: skip


AT_THE_END = "import atexit; atexit.register(tell)"
WITH_THE_FIRST_LINE = """
class Terminal(type(sys.stderr)):
    def isatty(self):
        return True
    def write(self, text):
        tell()
        os._exit(0)
sys.stderr = Terminal(open(os.devnull, "wb"))
"""


def loaded_by_each(*commands: list[str], until: str = AT_THE_END) -> list[list[str]]:
    """For each command the heavy modules that it has imported by its end, or until it tells a terminal something. Each
    runs in a fork of a process that has imported what all have in common.
    """
    code = (
        "import os, sys\n"
        f"tell = lambda: print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.__stderr__, flush=True)\n"
        "from api.cli import main\n"
        f"for arguments in {commands!r}:\n"
        "    if not os.fork():\n"
        f"        exec({until!r})\n"
        "        sys.argv = ['reprieve', *arguments]\n"
        "        sys.exit(main())\n"
        "    assert os.wait()[1] == 0, arguments"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE
    )
    return [line.split() for line in run.stderr.splitlines()]


def test_asking_for_the_version_or_for_help_loads_nothing_heavy() -> None:
    assert loaded_by_each(["--version"], ["--help"], ["why", "--help"]) == [[], [], []]


def test_asking_a_service_takes_an_http_client_and_no_engine(example: Service) -> None:
    pod = example.client.get("/v1/cluster").json()["nodes"][0]["pods"][0]["pod"]

    names = loaded_by_each(["why", f"{pod['namespace']}/{pod['name']}", "--server", f"http://127.0.0.1:{example.port}"])

    assert names == [["httpx"]]


def test_asking_a_packed_file_loads_no_http_client() -> None:
    """It may be a recording, which is read without what writes one."""
    (loaded,) = loaded_by_each(["pending", "--dump", "tests/api/data/cluster-twelve-nodes.json.gz"])

    assert {"numpy", "httpx", "prometheus_client", "extender.client"} & {*loaded} == {"numpy"}


def test_a_terminal_shows_what_is_done_before_anything_heavy_is_loaded(example: Service, tmp_path: Path) -> None:
    """So that the first line comes at once. Reading manifests takes the kinds of objects, and reading a kubeconfig some
    of the API client.
    """
    dump = tmp_path / "cluster.yaml"
    shutil.copy(ROOT / "api" / "examples" / "cluster.yaml", dump)
    kubeconfig = kubeconfig_for(example.port, tmp_path)
    sources = {"--server": f"http://127.0.0.1:{example.port}", "--kubeconfig": str(kubeconfig), "--dump": str(dump)}

    loaded = loaded_by_each(
        *(["whatif", "--drain", "node-a1", *source] for source in sources.items()), until=WITH_THE_FIRST_LINE
    )

    assert [{*modules} <= {"extender.client", "reprieve.cluster"} for modules in loaded] == [True, True, True]


def test_help_of_engine_commands_is_printed_before_the_engine_is_loaded() -> None:
    commands = [[name, "--help"] for name in ("verify", "doctor", "simulate", "plugins", "print-config")]

    assert loaded_by_each(*commands, until=WITH_THE_FIRST_LINE) == [[]] * len(commands)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_list_of_commands_says_what_the_commands_own_help_begins_with(name: str) -> None:
    module, function = SUBCOMMANDS[name]
    listed = get_command(app).commands[name].short_help  # type: ignore[attr-defined]

    help_text = inspect.getdoc(getattr(import_module(f"api.cli.{module}"), function))

    assert help_text is not None and " ".join(help_text.split("\n\n")[0].split()) == listed


WHILE_LOADING = """
import gc, sys
from importlib import import_module
def told(phase, info):
    frame, files = sys._getframe(1), set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    if phase == "start" and "<frozen importlib._bootstrap>" in files and any(file.endswith("sources.py") for file in files):
        print("collected while loading", file=sys.__stderr__)
gc.callbacks.append(told)
"""


def test_the_engine_is_loaded_without_searching_for_garbage_meanwhile() -> None:
    """There is none yet, and the collector would look at all modules again and again."""
    printed_words = loaded_by_each(["pending", "--dump", "api/examples/cluster.yaml"], until=WHILE_LOADING)

    assert ["collected", "while", "loading"] not in printed_words


IN_A_CHILD = """
import asyncio, msgspec, sys, api.main
from functools import partial
from pathlib import Path
from extender.answers.catalogue import QUESTIONS, worked_out
from extender.values.concurrency.child_process import in_child
from reprieve.sources.dumps import about_dump

def loaded(question, questions):
    before = {*sys.modules}
    worked_out(question, questions)
    return [name for name in sys.modules if name not in before and name.split(".")[0] in ("extender", "reprieve")]

async def ask_all():
    async with about_dump(Path("api/examples/cluster.yaml"), None) as questions:
        for kind in QUESTIONS:
            for example in kind.row.examples.values():
                body = msgspec.convert(example, kind.body_type())
                print(kind.__name__, *await in_child(partial(loaded, kind(**{kind.row.body: body}), questions)))

asyncio.run(ask_all())
"""


@pytest.mark.slow
def test_the_child_processes_of_a_service_load_nothing_more_of_ours() -> None:
    """Each would load it again."""
    run = subprocess.run(
        [sys.executable, "-c", IN_A_CHILD], check=True, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE
    )

    assert set(run.stdout.splitlines()) == {"ExplainOfQuestion", "WhatIfQuestion", "CapacityOfQuestion", "PlanQuestion"}


SCHEDULING = """
import sys
from api.app import create_app
from api.settings.settings import Settings
from starlette.testclient import TestClient

LATE = ("fastapi", "jinja2", "pydantic", "api.routing", "extender.answers.questions")

def answered(path):
    answer = service.get(path)
    print(path, answer.status_code, [name for name in LATE if name in sys.modules])

app = create_app(Settings(schedule=True))
with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 0)) as service:
    for path in ("/healthz", "/livez/ping", "/readyz/nope", "/metrics", "/metrics/slis", "/v1/queue"):
        answered(path)
"""


@pytest.mark.slow
def test_a_scheduler_loads_the_web_framework_for_the_first_request_that_is_no_probe() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCHEDULING], check=True, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE
    )

    assert run.stdout.splitlines() == [
        "/healthz 200 []",
        "/livez/ping 200 []",
        "/readyz/nope 404 []",
        "/metrics 200 []",
        "/metrics/slis 200 []",
        "/v1/queue 200 ['fastapi', 'jinja2', 'pydantic', 'api.routing', 'extender.answers.questions']",
    ]
