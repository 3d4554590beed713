"""What pods may ask for, in a word each: parts of a pod's spec."""

from collections.abc import Sequence
from typing import Any

from extender.rules.api_resources import Object

HOSTNAME = "kubernetes.io/hostname"


def taint(key: str, effect: str = "NoSchedule") -> Object:
    return {"key": key, "effect": effect}


def tolerating(*keys: str) -> Object:
    return {"tolerations": [{"key": key, "operator": "Exists"} for key in keys]}


def on_nodes_with(**labels: str) -> Object:
    """By node affinity."""
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return _required_nodes({"matchExpressions": terms})


def on_node_named(name: str) -> Object:
    return _required_nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]})


def _required_nodes(term: Object) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def near(
    topology: str = HOSTNAME, *, labelled: str = "", namespaces: Sequence[str] | None = None, **labels: str
) -> Object:
    """By pod affinity: to pods with these labels, or with any value of one.

    Arguments:
        namespaces: the key, the operator and the values of a selector of namespaces.
    """
    return {"podAffinity": _required_pods(topology, labelled, labels, namespaces)}


def away_from(
    topology: str = HOSTNAME, *, labelled: str = "", namespaces: Sequence[str] | None = None, **labels: str
) -> Object:
    return {"podAntiAffinity": _required_pods(topology, labelled, labels, namespaces)}


def _required_pods(topology: str, labelled: str, labels: dict[str, str], namespaces: Sequence[str] | None) -> Object:
    term: Object = {"labelSelector": _selector(labelled, labels), "topologyKey": topology}
    if namespaces is not None:
        key, operator, *values = namespaces
        term["namespaceSelector"] = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _selector(labelled: str, labels: dict[str, str]) -> Object:
    return {"matchExpressions": [{"key": labelled, "operator": "Exists"}]} if labelled else {"matchLabels": labels}


def spread(topology: str, *, labelled: str = "", min_domains: int | None = None, **labels: str) -> Object:
    """Over at least so many domains, where no two differ by more than one."""
    more: Object = {} if min_domains is None else {"minDomains": min_domains}
    constraint = {
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(labelled, labels),
    }
    return {"topologySpreadConstraints": [constraint | more]}


def port(number: int, protocol: str = "TCP", ip: str = "") -> Object:
    """A host port of the container."""
    return {"ports": [{"containerPort": 80, "hostPort": number, "protocol": protocol, "hostIP": ip}]}


def claims(*names: str) -> Object:
    volumes = [
        {"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": name}} for number, name in enumerate(names)
    ]
    return {"volumes": volumes}


def volume(name: str, **source: Any) -> Object:
    return {"volumes": [{"name": name, **source}]}
