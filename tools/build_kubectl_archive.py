"""Builds `kubectl reprieve` as an archive that needs no Python, and the manifest with which krew installs it.

python -m tools.build_kubectl_archive DIST URL      (or `make krew`)

The archive is for the platform that this runs on. The manifest names every archive in DIST, so that archives which were
built on several machines share one; URL is where they will be published.
"""

import hashlib
import json
import platform
import re
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
_LEFT_OUT: Final = (
    "mypy", "pytest", "_pytest", "hypothesis", "sphinx", "playwright", "schemathesis", "mcp", "setuptools", "pip",
    "pyarrow", "dask", "distributed", "gymnasium", "kubernetes_validate", "jsonschema_rs", "twine",
    "matplotlib", "nbclient", "ipykernel", "IPython",
)  # fmt: skip
"""What the tests and checks need, and a command does not; and extras, which are for Python."""

_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ARCHIVE: Final = re.compile(r"kubectl-reprieve-(?P<os>linux|darwin)-(?P<arch>amd64|arm64)\.tar\.gz")


def build_archive(dist: Path) -> Path:
    """Returns the archive for this platform, which it builds."""
    target = dist / f"kubectl-reprieve-{platform.system().lower()}-{_MACHINES[platform.machine()]}.tar.gz"
    dist.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "entry.py").write_text(_ENTRY, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "PyInstaller",
            "--noconfirm",
            "--onedir",
            "--log-level",
            "ERROR",
            "--name",
            "kubectl-reprieve",
        ]
        command += [
            "--paths",
            str(ROOT),
            "--distpath",
            str(work / "dist"),
            "--workpath",
            str(work),
            "--specpath",
            str(work),
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
        subprocess.run([*command, "entry.py"], check=True, cwd=work)  # noqa: S603 - our own words
        with tarfile.open(target, "w:gz", compresslevel=6) as archive:
            archive.add(work / "dist" / "kubectl-reprieve", ".")
            archive.add(ROOT / "LICENSE", "LICENSE")
    return target


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
        if found := _ARCHIVE.fullmatch(file.name):
            yield {
                "selector": {"matchLabels": found.groupdict()},
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
    print(json.dumps({"archive": str(archive), "bytes": archive.stat().st_size, "manifest": str(dist / MANIFEST)}))  # noqa: T201


if __name__ == "__main__":
    main()
