"""How commands take a pod's name: NAME, NAMESPACE/NAME, pod/NAME, with --namespace."""

from typing import Final

from api.cli.sources import Source
from api.fatal_errors import MisuseError

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


def pod_named(text: str, source: Source) -> tuple[str, str]:
    """Returns the namespace and the name of a pod.

    Arguments:
        source: gives the namespace of a pod that names none.

    Raises:
        MisuseError: the text is not a pod's name, or two different namespaces are given.
    """
    before, slash, name = text.rpartition("/")
    if slash and before in _PODS:
        before = ""
    elif slash and (not before or "/" in before):
        raise MisuseError(f"{text!r}: write namespace/name")
    if not name:
        raise MisuseError(f"{text!r}: write namespace/name")
    if before in (*_OTHER_KINDS, *_WORKLOADS):
        raise MisuseError(
            f"{text}: pods are asked for, as namespace/name; of a namespace that is called so, write -n {before} {name}"
        )
    if before and source.namespace and source.namespace != before:
        raise MisuseError(f"{text} is not in the namespace {source.namespace}: give one of the two")
    return before or source.default_namespace, name
