"""How commands take a pod's name: NAME, NAMESPACE/NAME, pod/NAME, with --namespace."""

from typing import Annotated, Final

import typer

from api.cli.sources import Source
from api.fatal_errors import StartUpError

PodArgument = Annotated[
    str, typer.Argument(help="NAMESPACE/NAME, or NAME: see --namespace. pod/NAME is welcome.", metavar="[NAMESPACE/]POD")
]

_PODS: Final = ("pod", "pods", "po")
_OTHER_KINDS: Final = {
    name
    for singular, plural, *short in (
        ("deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"),
        ("replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"),
        ("statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"),
        ("daemonset", "daemonsets", "ds", "daemonset.apps", "daemonsets.apps"),
        ("job", "jobs", "job.batch", "jobs.batch"),
        ("cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch"),
        ("replicationcontroller", "replicationcontrollers", "rc"),
        ("node", "nodes", "no"),
    )
    for name in (singular, plural, *short)
}


def pod_named(text: str, source: Source) -> tuple[str, str]:
    """Returns the namespace and the name of a pod.

    Arguments:
        source: gives the namespace of a pod that names none.

    Raises:
        StartUpError: the text is not a pod's name, or two different namespaces are given.
    """
    before, slash, name = text.rpartition("/")
    if slash and before in _PODS:
        before = ""
    elif slash and (not before or "/" in before):
        raise StartUpError(f"{text!r}: write namespace/name")
    if not name:
        raise StartUpError(f"{text!r}: write namespace/name")
    if before in _OTHER_KINDS:
        raise StartUpError(f"{text}: pods are asked for, as namespace/name; of a namespace that is called so, write -n {before} {name}")
    if before and source.namespace and source.namespace != before:
        raise StartUpError(f"{text} is not in the namespace {source.namespace}: give one of the two")
    return before or source.default_namespace, name
