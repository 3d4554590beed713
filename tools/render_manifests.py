"""Writes `deploy/kubernetes`, the chart rendered for those who do not use Helm: `python -m tools.render_manifests` (or
`make manifests`).

Each folder is a kustomization: `kubectl apply -k deploy/kubernetes/second-scheduler`.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from extender import __version__
from tools.kubernetes_programs import ROOT, program

CHART: Final = ROOT / "deploy" / "chart"
RELEASE: Final = "reprieve"
NAMESPACE: Final = "kube-system"
KUBE_VERSION: Final = "v1.36.2"
IMAGE: Final = "ghcr.io/reprieve/reprieve"

_HELMS_OWN: Final = ("app.kubernetes.io/managed-by:", "helm.sh/chart:", "# Source:")


@final
@dataclass(frozen=True)
class Variant:
    """One way to run the service in a cluster."""

    words: str
    """What it does there, what it writes, and what it needs first."""
    values: Mapping[str, str]
    recipe: str = ""
    """The folder of deploy/recipes whose values it has besides."""

    @property
    def settings(self) -> Sequence[str]:
        """Returns the arguments for helm."""
        files = [f"--values={ROOT / 'deploy' / 'recipes' / self.recipe / 'values.yaml'}"] if self.recipe else []
        return [*files, *(f"--set={name}={value}" for name, value in self.values.items())]


_CERTIFICATE: Final = """\
It needs the Secret reprieve-tls with tls.crt, tls.key and ca.crt, a certificate for
reprieve.kube-system.svc. One that signs itself:
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \\
      -subj /CN=reprieve.kube-system.svc -addext subjectAltName=DNS:reprieve.kube-system.svc \\
      -keyout tls.key -out tls.crt
    kubectl --namespace kube-system create secret generic reprieve-tls \\
      --from-file=tls.crt --from-file=tls.key --from-file=ca.crt=tls.crt
A renewed one is read within ten seconds. kube-scheduler's configuration: deploy/kube-scheduler-config.yaml."""

VARIANTS: Final[Mapping[str, Variant]] = {
    "sidecar": Variant(
        "A kube-scheduler and Reprieve, its extender, in one pod, for pods with `schedulerName: reprieve`. Reprieve "
        "writes only events.",
        {"mode": "sidecar"},
    ),
    "service": Variant(
        "An extender that kube-scheduler calls over TLS: filter, prioritize, preempt. It writes nothing but "
        f"events.\n{_CERTIFICATE}",
        {"mode": "service", "tls.secretName": "reprieve-tls"},
    ),
    "service-with-bind": Variant(
        f"As service; it also binds pods for kube-scheduler.\n{_CERTIFICATE}",
        {"mode": "service", "tls.secretName": "reprieve-tls", "extender.bind": "true"},
    ),
    "second-scheduler": Variant(
        "A scheduler beside kube-scheduler, for pods with `schedulerName: reprieve`.",
        {"mode": "second-scheduler"},
    ),
    "scheduler": Variant(
        "The scheduler of all pods. It waits while kube-scheduler holds the lease, and decides once kube-scheduler is "
        "stopped.",
        {"mode": "scheduler"},
    ),
}

K3S: Final = Variant(
    "All that k3s needs, in this one file: the scheduler of all pods, on the server, in place of k3s's own.\n"
    "    echo 'disable-scheduler: true' >> /etc/rancher/k3s/config.yaml\n"
    '    sed "s/nodeName: server/nodeName: $(hostname)/" reprieve.yaml '
    "> /var/lib/rancher/k3s/server/manifests/reprieve.yaml\n"
    "    systemctl restart k3s",
    {},
    recipe="k3s",
)
"""The file in deploy/kubernetes/k3s: the scheduler of all pods, where a k3s server puts it."""


def rendered(*arguments: str, namespace: str = NAMESPACE, release: str = RELEASE) -> str:
    """Returns what `helm template` prints for the chart.

    Raises:
        NoProgramError: there is no helm for this machine.
        subprocess.CalledProcessError: the chart refuses the values; `stderr` says why.
    """
    command: list[str | Path] = [
        program("helm"),
        "template",
        release,
        CHART,
        f"--namespace={namespace}",
        f"--kube-version={KUBE_VERSION}",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - the pinned helm


_UNPUBLISHED: Final = "The image is published with the first release; until then build it (deploy/recipes/README.md)."


def manifest(variant: Variant) -> str:
    """Returns the manifest of a variant, without what only Helm uses."""
    lines = [line for line in rendered(*variant.settings).splitlines() if not line.strip().startswith(_HELMS_OWN)]
    introduction = [*variant.words.splitlines(), _UNPUBLISHED, "Rendered from deploy/chart by `make manifests`."]
    return "".join(f"{line}\n" for line in [*(f"# {line}" for line in introduction), *lines])


def kustomization() -> str:
    """Returns the kustomization of every variant: the place to name your own image, by its digest."""
    return (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [reprieve.yaml]\n"
        "images:\n# `digest: sha256:...` in place of the tag names one image for good; each release says which.\n"
        f"- {{name: {IMAGE}, newTag: {__version__}}}\n"
    )


def main() -> None:
    """Writes the files, by default into deploy/kubernetes."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "deploy" / "kubernetes"
    for name, variant in {**VARIANTS, "k3s": K3S}.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "reprieve.yaml").write_text(manifest(variant), encoding="utf-8")
        (folder / name / "kustomization.yaml").write_text(kustomization(), encoding="utf-8")


if __name__ == "__main__":
    main()
