"""What the Dockerfile does, step by step in folders of this machine: it builds, and serves from a file system that
cannot be written.

The base image is a virtual environment here; only what .dockerignore sends is there to be copied.
"""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import pytest

from extender import __version__
from tests.api.in_process import ROOT
from tests.deploy.pods import is_ready
from tests.kit.ports import free_port
from tests.kit.waiting import DEADLINE, until

pytestmark = pytest.mark.slow

DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()
LARGEST_MIB: Final = 300
"""What the image adds to its base, unpacked."""
POD: Final = {"metadata": {"name": "web", "namespace": "default", "uid": "1"}, "spec": {"containers": [{"name": "c"}]}}
READ_ONLY: Final = 'set -e; mount --rbind / "$0"; mount -o remount,ro,bind "$0"; exec chroot "$0" "$@"'
"""Runs a program where nothing can be written, as with readOnlyRootFilesystem."""


@dataclass
class Stage:
    """One stage of the Dockerfile, with its folders."""

    root: Path
    environment: dict[str, str]
    workdir: str = "/"
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def path_of(self, path: str) -> Path:
        return self.root / Path("/", self.workdir, path).relative_to("/")


def instructions() -> Iterator[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    for line in filter(None, joined.splitlines()):
        name, _, rest = line.partition(" ")
        yield name, rest


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The last stage, after every instruction."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment has no pip, which the base image has")
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    context.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        source_path = ROOT / line.removeprefix("!")
        if line.startswith("!") and source_path.is_dir():
            shutil.copytree(source_path, context / source_path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif line.startswith("!"):
            shutil.copy(source_path, context)
    base = folder / "base"
    subprocess.run([sys.executable, "-m", "venv", base], check=True)
    stages: dict[str, Stage] = {}
    stage = Stage(folder, {})
    for number, (name, rest) in enumerate(instructions()):
        match name:
            case "FROM":
                source, _, called = rest.partition(" AS ")
                path = f"{base / 'bin'}:{os.environ['PATH']}"
                inherited = {
                    key: os.environ[key] for key in ("HOME", "SSL_CERT_FILE", "PIP_CONFIG_FILE") if key in os.environ
                }
                stage = Stage(
                    folder / f"stage{number}",
                    {**inherited, **(stages[source].environment if source in stages else {}), "PATH": path},
                )
                stage.root.mkdir()
                stages[called or "image"] = stage
            case "WORKDIR":
                stage.workdir = rest
                stage.path_of(".").mkdir(parents=True)
            case "ENV":
                for assignment in shlex.split(rest.replace("$PATH", stage.environment["PATH"])):
                    key, _, value = assignment.partition("=")
                    stage.environment[key] = value.replace("/opt/", f"{stage.root}/opt/")
            case "COPY":
                _copy(rest, stage, stages, context)
            case "RUN":
                placed = rest.replace("/opt/", f"{stage.root}/opt/")
                done = subprocess.run(
                    ["bash", "-ec", placed], cwd=stage.path_of("."), env=stage.environment,
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                if "(from versions: none)" in done.stderr:
                    pytest.skip("the registry of Python packages cannot be reached")
                assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            case "USER":
                stage.user = rest
            case "ENTRYPOINT" | "CMD":
                setattr(stage, "entrypoint" if name == "ENTRYPOINT" else "command", json.loads(rest))
            case "EXPOSE" | "LABEL" | "ARG":
                continue
            case _:
                raise AssertionError(f"{name} is not tried here")
    return stages["image"]


def _copy(rest: str, stage: Stage, stages: dict[str, Stage], context: Path) -> None:
    parts = rest.split()
    if parts[0].startswith("--from="):
        built = stages[parts[0].removeprefix("--from=")].root
        # Scripts name the interpreter by its path, which is another here.
        shutil.copytree(built / parts[1].lstrip("/"), stage.root / parts[2].lstrip("/"), symlinks=True)
        for script in (stage.root / parts[2].lstrip("/") / "bin").iterdir():
            if not script.is_symlink() and script.read_bytes().startswith(b"#!"):
                script.write_bytes(script.read_bytes().replace(str(built).encode(), str(stage.root).encode(), 1))
        return
    *sources, target = parts
    for source in sources:
        if (context / source).is_dir():
            shutil.copytree(context / source, stage.path_of(target))
        else:
            shutil.copy(context / source, stage.path_of(target))


def test_image_runs_as_an_unprivileged_user_and_starts_the_command(image: Stage) -> None:
    assert image.user == "65532:65532"
    assert (image.entrypoint, image.command) == (["reprieve"], ["serve", "--host", "0.0.0.0"])


def test_container_listens_where_published_ports_lead_or_says_what_to_add(image: Stage) -> None:
    """The README's line has what it says."""
    program = shutil.which("reprieve", path=image.environment["PATH"])
    assert program is not None

    done = subprocess.run(
        [program, *image.command], env=image.environment, cwd="/", capture_output=True, text=True, check=False
    )

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "with --access open (in a container: -e REPRIEVE_ACCESS=open)" in done.stderr
    assert "docker run -p 8888:8888 -p 8080:8080 -e REPRIEVE_ACCESS=open " in (ROOT / "README.md").read_text()


def test_installed_program_knows_its_version_without_the_repository(image: Stage) -> None:
    program = shutil.which("reprieve", path=image.environment["PATH"])
    assert program is not None
    assert Path(program).is_relative_to(image.root)

    output = subprocess.run(
        [program, "--version"], env=image.environment, cwd="/", capture_output=True, text=True, check=True
    ).stdout

    assert __version__ in output


def test_image_adds_little_to_its_base(image: Stage) -> None:
    size = sum(path.stat().st_size for path in image.root.rglob("*") if path.is_file() and not path.is_symlink())

    print(f"{size / 2**20:.0f} MiB")
    assert size <= LARGEST_MIB * 2**20
    # Neither what builds the wheel, nor sources, nor pip are in it.
    assert [path.name for path in image.root.iterdir()] == ["opt"]
    assert not list(image.root.rglob("hatchling")) + list(image.root.rglob("site-packages/pip"))


def test_image_serves_from_a_read_only_file_system(image: Stage, tmp_path: Path) -> None:
    """Without any capability, as the manifests start it."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("mounts are not allowed here")
    port, program = free_port(), shutil.which("reprieve", path=image.environment["PATH"])
    assert program is not None
    command = ["unshare", "-m", "bash", "-c", READ_ONLY, str(tmp_path)]
    unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    service = [*unprivileged, program, *image.command, f"--port={port}", "--kubernetes-port=0"]
    with (tmp_path.parent / "read-only.log").open("wb") as log:
        environment = {**image.environment, "REPRIEVE_ACCESS": "open"}
        process = subprocess.Popen([*command, *service], env=environment, cwd="/", stderr=log)
    try:
        until(lambda: is_ready(port, process))
        answer = httpx.post(
            f"http://127.0.0.1:{port}/extender/filter", json={"Pod": POD, "NodeNames": ["node-a1"]}, trust_env=False
        )
    finally:
        process.terminate()
        process.wait(DEADLINE)
    assert answer.json()["NodeNames"] is not None
