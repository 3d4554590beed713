"""An empty environment, outside the repository, into which the wheel is installed.

`REPRIEVE_DIST` names a folder with packages that are there already, as `make release-check` has built them.
"""

import fcntl
import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a folder that is nobody's."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def libraries(self) -> Path:
        return next((self.root / "lib").glob("python*")) / "site-packages"

    @property
    def elsewhere(self) -> Path:
        return self.root.parent / "elsewhere"

    def variables(self, **also: str) -> dict[str, str]:
        """What a shell has after `activate`; nothing else of this process."""
        return {
            "PATH": f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.elsewhere),
            "LANG": "C.UTF-8",
            **also,
        }

    def run(self, command: str, *, cwd: Path | None = None, **also: str) -> subprocess.CompletedProcess[str]:
        """A line, as it is typed into a shell."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=cwd or self.elsewhere,
            env=self.variables(**also),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


def released(pattern: str) -> Path | None:
    """The one package of this name in the folder that REPRIEVE_DIST names."""
    if "REPRIEVE_DIST" not in os.environ:
        return None
    [file] = Path(os.environ["REPRIEVE_DIST"]).glob(pattern)
    return file


def build(kind: str, folder: Path, source: Path = ROOT) -> Path:
    """The wheel or the source distribution of a project."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, check=True, cwd=source, capture_output=True, timeout=120)
    [file] = folder.iterdir()
    return file


def installed_into(root: Path) -> Environment:
    """The environment in this folder, which the first of several processes makes."""
    environment = Environment(root / "environment")
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "made").exists():
            _make(environment, released("reprieve-*.whl") or build("wheel", root / "wheel"))
            (root / "made").touch()
    return environment


def _make(environment: Environment, wheel: Path) -> None:
    environment.elsewhere.mkdir()
    venv.create(environment.root, with_pip=True)
    # What a registry would send, without one: exactly the packages that requirements.txt pins, as they are installed
    # here.
    for name in sorted(
        set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    ):
        link_distribution(name, environment.libraries)
    for arguments in (["install", "--quiet", "--no-index", "--no-deps", str(wheel)], ["check"]):
        done = subprocess.run(
            [str(environment.bin / "python"), "-m", "pip", "--disable-pip-version-check", *arguments],
            env=environment.variables(), cwd=environment.elsewhere, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def link_distribution(name: str, libraries: Path) -> None:
    """Installs a package of this process's environment into another one."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return  # for another system, by its marker
    for file in files:
        target = libraries / file
        if ".." not in file.parts and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file.locate())


def link_with_requirements(name: str, libraries: Path) -> None:
    """Installs a package of this process's environment with all that it requires."""
    packages, done = [name], set[str]()
    while packages:
        package = re.split(r"[^A-Za-z0-9._-]", packages.pop())[0].lower().replace("_", "-")
        if package not in done:
            done.add(package)
            link_distribution(package, libraries)
            try:
                packages += [item for item in distribution(package).requires or [] if "extra ==" not in item]
            except PackageNotFoundError:
                continue  # for another system, by its marker
