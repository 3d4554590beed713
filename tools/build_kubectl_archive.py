"""Builds `kubectl reprieve` as an archive that needs no Python, and the manifest with which krew installs it.

python -m tools.build_kubectl_archive DIST URL      (or `make krew`)

The archive is for the platform that this runs on. The manifest names every archive in DIST, so that archives which were
built on several machines share one; URL is where they will be published.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from extender import __version__

ROOT: Final = Path(__file__).parents[1]
MANIFEST: Final = ".krew.yaml"

_ENTRY: Final = """\
import runpy, sys
if sys.argv[1:2] == ["-m"]:  # a process of its own, started as `python -m` elsewhere
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    from api.cli import main
    main()
"""
_LOCKS: Final = ("requirements.txt", "requirements-archive.txt")
"""The locks of the archive's environment: the program's, and the packer's."""
_LEFT_OUT: Final = ("PyInstaller", "_pyinstaller_hooks_contrib", "altgraph", "setuptools", "pip")
"""What the environment has besides, and a command does not need."""

_WITH_SYMBOLS: Final = ("libpython3.*.so*", "uvloop/*.so")
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ARCHIVE: Final = re.compile(r"kubectl-reprieve-(?P<os>linux|darwin)-(?P<arch>amd64|arm64)\.tar\.gz")


def build_archive(dist: Path) -> Path:
    """Builds the archive for this platform, and returns it."""
    target = dist / f"kubectl-reprieve-{platform.system().lower()}-{_MACHINES[platform.machine()]}.tar.gz"
    dist.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "entry.py").write_text(_ENTRY, encoding="utf-8")
        command = [
            *(str(_environment(work / "environment")), "-m", "PyInstaller"),
            *("--noconfirm", "--onedir", "--log-level", "ERROR", "--name", "kubectl-reprieve", "--paths", str(ROOT)),
            *("--distpath", str(work / "dist"), "--workpath", str(work), "--specpath", str(work)),
        ]
        # Commands are imported by name when they run, and pages and tables are read as files: no import statement names
        # them.
        for package in ("api", "extender", "reprieve"):
            command += ["--collect-submodules", package, "--collect-data", package]
        # The modules of the project that `reprieve init` copies are data, too.
        command += ["--add-data", f"{ROOT / 'api' / 'examples'}:api/examples"]
        # Help is made of the docstrings in the sources, for which no module is loaded.
        command += ["--add-data", f"{ROOT / 'api' / 'cli'}:api/cli"]
        for name in _LEFT_OUT:
            command += ["--exclude-module", name]
        subprocess.run([*command, "entry.py"], check=True, cwd=work, env={**os.environ, "PYTHONPATH": str(ROOT)})  # noqa: S603 - our own words
        _strip(work / "dist" / "kubectl-reprieve" / "_internal")
        with tarfile.open(target, "w:gz", compresslevel=6) as archive:
            archive.add(work / "dist" / "kubectl-reprieve", ".")
            archive.add(ROOT / "LICENSE", "LICENSE")
    return target


def _environment(folder: Path) -> Path:
    """Makes an environment of the locks, whatever else is installed in this one. Returns its Python."""
    program, locked = folder / "bin" / "python", [word for lock in _LOCKS for word in ("-r", str(ROOT / lock))]
    if uv := shutil.which("uv"):
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(program), "--no-deps", "--require-hashes", *locked],
        ]
    else:
        pip = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        steps = [[sys.executable, "-m", "venv", str(folder)], [*pip, "--no-deps", "--require-hashes", *locked]]
    for step in steps:
        subprocess.run(step, check=True)  # noqa: S603 - our own words
    return program


def _strip(folder: Path) -> None:
    """Takes the symbols for debuggers out of the libraries that come with them, where that can be done."""
    libraries = [file for pattern in _WITH_SYMBOLS for file in folder.glob(pattern)]
    if (strip := shutil.which("strip")) and platform.system() == "Linux":
        subprocess.run([strip, "--strip-unneeded", *map(str, libraries)], check=True)  # noqa: S603 - our own words


def size(archive: Path) -> dict[str, int]:
    """Returns the bytes of an archive, packed and unpacked."""
    with tarfile.open(archive) as packed:
        return {"packed": archive.stat().st_size, "unpacked": sum(member.size for member in packed)}


def manifest(dist: Path, url: str) -> dict[str, Any]:
    """Returns the manifest of the archives in a folder.

    Upstream: sigs.k8s.io/krew/pkg/index/types.go, Plugin.
    """
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "reprieve"},
        "spec": {
            "version": f"v{__version__}",
            "shortDescription": "Say why pods are pending and what would help",
            "description": (
                "Says why a pod is pending, what would let it in, who would be evicted for it and who was, and what "
                "would happen if\n"
                "nodes went or workloads came. It decides as kube-scheduler does, on the live cluster or on a dump of "
                "it.\n"
            ),
            "platforms": list(_platforms(dist, url)),
        },
    }


def _platforms(dist: Path, url: str) -> Iterator[dict[str, Any]]:
    for file in sorted(dist.iterdir()):
        if match := _ARCHIVE.fullmatch(file.name):
            yield {
                "selector": {"matchLabels": match.groupdict()},
                "uri": f"{url.rstrip('/')}/{file.name}",
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                "files": [{"from": "*", "to": "."}],
                "bin": "kubectl-reprieve",
            }


def main() -> None:
    """Builds the archive unless only the manifest is wanted, and writes the manifest beside it."""
    dist, url = Path(sys.argv[1]), sys.argv[2]
    if "--manifest" in sys.argv:
        (dist / MANIFEST).write_text(yaml.safe_dump(manifest(dist, url), sort_keys=False, width=140), encoding="utf-8")
        return
    archive = build_archive(dist)
    (dist / MANIFEST).write_text(yaml.safe_dump(manifest(dist, url), sort_keys=False, width=140), encoding="utf-8")
    print(json.dumps({"archive": str(archive), **size(archive), "manifest": str(dist / MANIFEST)}))  # noqa: T201


if __name__ == "__main__":
    main()
