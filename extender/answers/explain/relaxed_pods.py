"""A pod that asks for a little less: what it would be if somebody gave in. Each function gives the changed pod; nothing is judged here."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from extender.objects.decoding import replaced
from extender.objects.meta import NodeSelector, NodeSelectorRequirement
from extender.objects.node import ResourceList, Taint
from extender.objects.pod import Affinity, Container, Pod, PodAffinity, ResourceRequirements, Toleration, Volume
from extender.objects.quantity import nanos_of
from extender.objects.resource_amounts import pod_requests
from extender.objects.resource_names import CPU
from extender.snapshot.pod_attributes import ANY_ADDRESS, HostPort

_NANOS: Final = 10**9
_NANOS_OF_A_MILLICORE: Final = 10**6


def asking_at_most(pod: Pod, limits: Mapping[str, int]) -> Pod | None:
    """The pod with smaller requests, each container giving in by the same share.

    Arguments:
        limits: resource -> what the whole pod may ask for: base units, millicores for cpu.

    Returns:
        None if the pod's overhead alone is as much as that.

    Raises:
        QuantityError: a request cannot be read.
    """
    for resource, limit in limits.items():
        overhead = nanos_of(pod.spec.overhead.get(resource, 0))
        asked = pod_requests(pod, use_status=False)[resource].nanos() - overhead
        allowed = limit * _unit(resource) - overhead
        if allowed <= 0:
            return None
        if asked > allowed:
            pod = _scaled(pod, resource, Fraction(allowed, asked))
    return pod


def _scaled(pod: Pod, resource: str, factor: Fraction) -> Pod:
    spec = pod.spec
    whole = spec.resources
    return replaced(
        pod,
        spec=replaced(
            spec,
            containers=[_container_scaled(container, resource, factor) for container in spec.containers],
            init_containers=[_container_scaled(container, resource, factor) for container in spec.init_containers],
            resources=None if whole is None else _requirements_scaled(whole, resource, factor),
        ),
    )


def _container_scaled(container: Container, resource: str, factor: Fraction) -> Container:
    return replaced(container, resources=_requirements_scaled(container.resources, resource, factor))


def _requirements_scaled(resources: ResourceRequirements, resource: str, factor: Fraction) -> ResourceRequirements:
    raw = resources.requests.get(resource)
    if raw is None:
        return resources
    units = int(nanos_of(raw) * factor) // _unit(resource)
    requests: ResourceList = {**resources.requests, resource: f"{units}m" if resource == CPU else units}
    return replaced(resources, requests=requests)


def _unit(resource: str) -> int:
    return _NANOS_OF_A_MILLICORE if resource == CPU else _NANOS


def tolerating(pod: Pod, taints: Iterable[Taint]) -> Pod:
    """The pod with a toleration for each of these taints."""
    more = [Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in taints]
    return replaced(pod, spec=replaced(pod.spec, tolerations=[*pod.spec.tolerations, *more]))


def without_node_selector(pod: Pod, *keys: str) -> Pod:
    """The pod without these entries of its node selector; without keys, without all of it."""
    selector = pod.spec.node_selector or {}
    left = {key: value for key, value in selector.items() if key not in keys} if keys else {}
    return replaced(pod, spec=replaced(pod.spec, node_selector=left or None))


def without_node_affinity(pod: Pod, *requirements: NodeSelectorRequirement) -> Pod:
    """The pod without these requirements of its required node affinity; without any named, without all of it."""
    affinity = pod.spec.affinity or Affinity()
    of_nodes = affinity.node_affinity
    if of_nodes is None or of_nodes.required is None:
        return pod
    required = None
    if requirements:
        terms = [
            replaced(
                term,
                match_expressions=[each for each in term.match_expressions if each not in requirements],
                match_fields=[each for each in term.match_fields if each not in requirements],
            )
            for term in of_nodes.required.node_selector_terms
        ]
        # A term of nothing would match no node; nothing is meant to be asked any more.
        if all(term.match_expressions or term.match_fields for term in terms):
            required = NodeSelector(node_selector_terms=terms)
    return _with_affinity(pod, node_affinity=replaced(of_nodes, required=required))


def without_pod_affinity(pod: Pod, *places: int) -> Pod:
    """The pod without these of its required pod affinity terms; without places, without all of them."""
    stanza = (pod.spec.affinity or Affinity()).pod_affinity
    return pod if stanza is None else _with_affinity(pod, pod_affinity=_without_terms(stanza, places))


def without_pod_anti_affinity(pod: Pod, *places: int) -> Pod:
    """The pod without these of its required pod anti-affinity terms; without places, without all of them."""
    stanza = (pod.spec.affinity or Affinity()).pod_anti_affinity
    return pod if stanza is None else _with_affinity(pod, pod_anti_affinity=_without_terms(stanza, places))


def _without_terms(stanza: PodAffinity, places: tuple[int, ...]) -> PodAffinity:
    left = [term for place, term in enumerate(stanza.required) if places and place not in places]
    return replaced(stanza, required=left)


def _with_affinity(pod: Pod, **changes: Any) -> Pod:
    return replaced(pod, spec=replaced(pod.spec, affinity=replaced(pod.spec.affinity or Affinity(), **changes)))


def without_host_ports(pod: Pod, ports: Iterable[HostPort]) -> Pod:
    """The pod without these host ports."""
    gone = set(ports)

    def freed(container: Container) -> Container:
        kept = [port for port in container.ports if (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port) not in gone]
        return replaced(container, ports=kept)

    spec = pod.spec
    return replaced(
        pod, spec=replaced(spec, containers=list(map(freed, spec.containers)), init_containers=list(map(freed, spec.init_containers)))
    )


def spreading(pod: Pod, place: int, *, max_skew: int | None = None) -> Pod:
    """The pod with one of its spread constraints allowing this skew; without a skew, the constraint is only a wish."""
    constraints = list(pod.spec.topology_spread_constraints)
    changed = {"when_unsatisfiable": "ScheduleAnyway"} if max_skew is None else {"max_skew": max_skew}
    constraints[place] = replaced(constraints[place], **changed)
    return replaced(pod, spec=replaced(pod.spec, topology_spread_constraints=constraints))


def without_volumes(pod: Pod, volumes: Iterable[Volume]) -> Pod:
    """The pod without these volumes."""
    gone = {volume.name for volume in volumes}
    return replaced(pod, spec=replaced(pod.spec, volumes=[volume for volume in pod.spec.volumes if volume.name not in gone]))


def without_resource_claims(pod: Pod, *names: str) -> Pod:
    """The pod without these resource claims, and without the containers' use of them."""

    def freed(container: Container) -> Container:
        claims = [claim for claim in container.resources.claims if claim.name not in names]
        return replaced(container, resources=replaced(container.resources, claims=claims))

    spec = pod.spec
    return replaced(
        pod,
        spec=replaced(
            spec,
            containers=list(map(freed, spec.containers)),
            init_containers=list(map(freed, spec.init_containers)),
            resource_claims=[claim for claim in spec.resource_claims if claim.name not in names],
        ),
    )
