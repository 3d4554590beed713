"""Packs the chart: `python -m tools.package_chart DIST [IMAGE [DIGEST]]` (or `make chart`, with IMAGE= and DIGEST=).

A released chart names the image that was built with it, by its digest.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from extender import __version__
from tools.kubernetes_programs import program
from tools.render_manifests import CHART, IMAGE as BY_DEFAULT

_NO_DIGEST: Final = '  digest: ""\n'


def package(dist: Path, image: str, digest: str) -> Path:
    """Packs the chart after `helm lint`, and returns the file."""
    helm = program("helm")
    with TemporaryDirectory() as folder:
        chart = Path(folder, "reprieve")
        shutil.copytree(CHART, chart)
        values = (chart / "values.yaml").read_text(encoding="utf-8")
        if values.count(BY_DEFAULT) != 1 or values.count(_NO_DIGEST) != 1:
            raise SystemExit("values.yaml does not name the image exactly once")
        filled = values.replace(BY_DEFAULT, image)
        (chart / "values.yaml").write_text(
            filled.replace(_NO_DIGEST, f"  digest: {digest}\n") if digest else filled, encoding="utf-8"
        )
        subprocess.run([helm, "lint", "--strict", "--quiet", chart], check=True)  # noqa: S603 - the pinned helm
        subprocess.run([helm, "package", chart, "--destination", folder], check=True, capture_output=True)  # noqa: S603
        target = dist / f"reprieve-chart-{__version__}.tgz"
        dist.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(folder, f"reprieve-{__version__}.tgz"), target)
    return target


def main() -> None:
    """Packs the chart, and prints where it is."""
    dist, image, digest = [*sys.argv[1:], "", ""][:3]
    print(package(Path(dist), image or BY_DEFAULT, digest))  # noqa: T201


if __name__ == "__main__":
    main()
