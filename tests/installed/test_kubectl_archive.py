"""The archive that krew installs: it runs where there is no Python."""

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from api.cli.init import EXAMPLE
from api.settings.settings import EXAMPLE_CLUSTER
from extender import __version__
from tests.installed.environment import released
from tools.build_kubectl_archive import build_archive, manifest

pytestmark = pytest.mark.slow

URL = "https://example.com/v1"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released("kubectl-reprieve-*.tar.gz") or build_archive(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("krew")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


def run(unpacked: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with no environment at all."""
    command = [str(unpacked / "kubectl-reprieve"), *arguments]
    return subprocess.run(
        command, cwd="/", env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
    )


def test_archive_answers_about_a_dump(unpacked: Path) -> None:
    done = run(unpacked, "why", "shop/web-6", "--dump", str(EXAMPLE_CLUSTER))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop/web-6  Pending")


def test_archive_prints_its_version_and_contains_its_licence(unpacked: Path) -> None:
    assert run(unpacked, "--version").stdout == f"reprieve {__version__}\n"
    assert "Apache License" in (unpacked / "LICENSE").read_text()


def test_archive_creates_a_plugin_project(unpacked: Path, tmp_path: Path) -> None:
    command = [str(unpacked / "kubectl-reprieve"), "init", "my-policy"]

    subprocess.run(command, cwd=tmp_path, env={}, check=True, capture_output=True, timeout=120)

    assert (tmp_path / "my-policy" / "my_policy.py").read_text() == (EXAMPLE / "my_policy.py").read_text()


def test_archive_has_what_runs_and_nothing_of_what_developers_install(unpacked: Path) -> None:
    inside = {path.name.lower() for path in (unpacked / "_internal").iterdir()}

    assert {"numpy", "jsonschema_rs", "yaml"} <= inside
    assert not {"pil", "pytest", "chardet", "mypy", "mcp", "textual", "setuptools"} & inside
    assert run(unpacked, "doctor", "http://127.0.0.1:1/extender").returncode == 1


def test_costly_device_selectors_get_their_process(unpacked: Path) -> None:
    """It is this program again, started as Python would be; it ends with its standard input."""
    done = run(unpacked, "-m", "extender.values.cel.worker")

    assert (done.returncode, done.stderr) == (0, "")


def test_krew_can_read_the_manifest(archive: Path) -> None:
    """After krew's validation: names, the version, and for each platform a selector, an address, a checksum, files and
    the binary.
    """
    plugin = yaml.safe_load(yaml.safe_dump(manifest(archive.parent, URL)))

    assert (plugin["apiVersion"], plugin["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[a-z0-9-]+", plugin["metadata"]["name"])
    assert plugin["spec"]["version"] == f"v{__version__}"
    assert 0 < len(plugin["spec"]["shortDescription"]) <= 50
    [platform] = plugin["spec"]["platforms"]
    assert platform["selector"]["matchLabels"]["os"] in ("linux", "darwin")
    assert platform["uri"] == f"{URL}/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert platform["files"] == [{"from": "*", "to": "."}]
    assert platform["bin"] == "kubectl-reprieve"
