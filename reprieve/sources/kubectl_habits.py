"""What commands do as kubectl does: where it looks for a cluster, and how it takes names of pods and workloads."""

import os
from pathlib import Path
from typing import Final

from reprieve.errors import StartUpError

_SERVICE_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def has_kubeconfig() -> bool:
    """Whether kubectl would find a cluster: by KUBECONFIG, in a pod, or in ~/.kube/config."""
    if os.environ.get("KUBECONFIG", "").strip(":"):
        return True
    if os.environ.get("KUBERNETES_SERVICE_HOST") and _SERVICE_TOKEN.exists():
        return True
    home = os.environ.get("HOME")
    return bool(home) and Path(str(home), ".kube", "config").exists()


def plain_address(server: str) -> str:
    """Returns the server's address in a form that is equal for all names of this machine."""
    from urllib.parse import urlsplit  # noqa: PLC0415

    parts = urlsplit(server)
    host = "127.0.0.1" if parts.hostname in ("localhost", "::1", "0.0.0.0") else parts.hostname  # noqa: S104 - compared, not listened on
    return f"{host}:{parts.port or {'https': 443}.get(parts.scheme, 80)}{parts.path.rstrip('/')}"


_PODS: Final = ("pod", "pods", "po")
_WORKLOADS: Final = {
    name: kind
    for kind, *names in (
        ("Deployment", "deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"),
        ("ReplicaSet", "replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"),
        ("StatefulSet", "statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"),
        ("DaemonSet", "daemonset", "daemonsets", "ds", "daemonset.apps", "daemonsets.apps"),
        ("Job", "job", "jobs", "job.batch", "jobs.batch"),
        ("ReplicationController", "replicationcontroller", "replicationcontrollers", "rc"),
    )
    for name in names
}
"""The kinds whose pods can be asked for together, by the names that kubectl has for them."""
_OTHER_KINDS: Final = ("cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch", "node", "nodes", "no")


def workload_named(text: str) -> tuple[str, str] | None:
    """Returns the kind and the name of a workload, such as that of deploy/web; None for other names."""
    before, _, name = text.rpartition("/")
    return (_WORKLOADS[before], name) if name and before in _WORKLOADS else None


def pod_in(text: str, namespace: str | None) -> tuple[str, str]:
    """Returns the namespace, empty if none is named, and the name of a pod. Raises StartUpError if it is no name, or
    another namespace than the given one.
    """
    before, slash, name = text.rpartition("/")
    if not name or (slash and (not before or "/" in before)):
        raise StartUpError(f"{text!r}: write namespace/name")
    if before in _PODS:
        before = ""
    if before in (*_OTHER_KINDS, *_WORKLOADS):
        raise StartUpError(
            f"{text}: give a pod as NAMESPACE/NAME; if {before} is its namespace, write -n {before} {name}"
        )
    if before and namespace and namespace != before:
        raise StartUpError(f"{text} is not in the namespace {namespace}: give one of the two")
    return before, name
