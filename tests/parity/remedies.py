"""Remedies read back: the words of a suggested change, applied to the pod and the cluster of a recorded situation.

Nothing of the plugins is asked: what a reader would do who follows the text to the letter is written here once more.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

Scenario = dict[str, Any]

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
ADDED: Final = "tried-node"


def followed(scenario: Scenario, text: str) -> Scenario:
    """Returns the situation after everything that the text says was done. Raises ValueError for words not known."""
    changed = deepcopy(scenario)
    rest = text
    while rest:
        for pattern, do in _SENTENCES:
            if match := pattern.match(rest):
                do(changed, *match.groups())
                rest = rest[match.end() :]
                break
        else:
            raise ValueError(f"nobody knows how to follow {rest!r}")
        rest = re.sub(r"^(, and |, | and )", "", rest)
    return changed


def _spec(scenario: Scenario) -> dict[str, Any]:
    spec: dict[str, Any] = scenario["pod"]["spec"]
    return spec


def _containers(scenario: Scenario) -> Iterator[dict[str, Any]]:
    spec = _spec(scenario)
    yield from spec["containers"]
    yield from spec.get("initContainers") or ()


def _nodes(scenario: Scenario) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = scenario["objects"]["nodes"]
    return nodes


def _items(words: str) -> list[str]:
    return re.split(r", | and ", words)


def _request(scenario: Scenario, amount: str, resource: str) -> None:
    """The whole pod asks for as much as is said: here one container for all of it."""
    for container in _containers(scenario):
        for amounts in ("requests", "limits"):
            (container.get("resources", {}).get(amounts) or {}).pop(resource, None)
    whole = _spec(scenario).get("resources")
    if whole and resource in (whole.get("requests") or {}):
        whole["requests"][resource] = amount
        (whole.get("limits") or {}).pop(resource, None)
        return
    (_spec(scenario).get("overhead") or {}).pop(resource, None)  # what is said is with it
    first = _spec(scenario)["containers"][0].setdefault("resources", {})
    first["requests"] = {**(first.get("requests") or {}), resource: amount}


def _requests(scenario: Scenario, words: str) -> None:
    for amount, resource in re.findall(r"(\S+) of (\S+) instead of \S+", words):
        _request(scenario, amount, resource)


def _affinity(scenario: Scenario, kind: str) -> dict[str, Any]:
    affinity: dict[str, Any] = (_spec(scenario).get("affinity") or {}).get(kind) or {}
    return affinity


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _drop_selector(scenario: Scenario, key: str, _: str) -> None:
    del _spec(scenario)["nodeSelector"][key]


def _drop_node_demands(scenario: Scenario, selector: str | None, affinity: str | None) -> None:
    if selector:
        _spec(scenario).pop("nodeSelector", None)
    if affinity:
        _affinity(scenario, "nodeAffinity").pop(_REQUIRED)


def _drop_requirement(scenario: Scenario, key: str, operator: str, values: str | None) -> None:
    """From each term; a term without requirements is no term, and one has to be left."""
    listed = values.split(", ") if values else []
    terms = _affinity(scenario, "nodeAffinity")[_REQUIRED]["nodeSelectorTerms"]
    for term in terms:
        for part in ("matchExpressions", "matchFields"):
            term[part] = [
                one
                for one in term.get(part) or ()
                if (one["key"], one["operator"], one.get("values") or []) != (key, operator, listed)
            ]
    terms[:] = [term for term in terms if term["matchExpressions"] or term["matchFields"]]
    assert terms, "to follow this would leave a pod that no API server takes"


def _drop_terms(scenario: Scenario, names: str, key: str | None, number: str | None) -> None:
    for name in names.split(" and "):
        stanza = _affinity(scenario, {"pod affinity": "podAffinity", "pod anti-affinity": "podAntiAffinity"}[name])
        terms = stanza[_REQUIRED]
        if key is None:
            terms.clear()
        else:
            places = [place for place, term in enumerate(terms) if term["topologyKey"] == key]
            assert number is not None or len(places) == 1, "the text does not say which"
            del terms[int(number) - 1 if number else places[0]]


def _constraints(scenario: Scenario, keys: list[str]) -> Iterator[dict[str, Any]]:
    for one in _spec(scenario)["topologySpreadConstraints"]:
        if one["topologyKey"] in keys and one["whenUnsatisfiable"] == "DoNotSchedule":
            yield one


def _allow_skew(scenario: Scenario, skew: str, key: str) -> None:
    for one in _constraints(scenario, [key]):
        one["maxSkew"] = int(skew)


def _only_prefer(scenario: Scenario, keys: str) -> None:
    for one in _constraints(scenario, keys.split(" and ")):
        one["whenUnsatisfiable"] = "ScheduleAnyway"


def _honor_taints(scenario: Scenario, key: str) -> None:
    for one in _constraints(scenario, [key]):
        one["nodeTaintsPolicy"] = "Honor"


def _min_domains(scenario: Scenario, number: str, key: str) -> None:
    for one in _constraints(scenario, [key]):
        one["minDomains"] = int(number)


def _claims(scenario: Scenario, kind: str, names: list[str]) -> Iterator[dict[str, Any]]:
    namespace = scenario["pod"]["metadata"].get("namespace") or "default"
    for claim in scenario["objects"][kind]:
        meta = claim["metadata"]
        if meta["name"] in names and (meta.get("namespace") or "default") == namespace:
            yield claim


def _fewer_devices(scenario: Scenario, number: str, device_class: str, before: str, name: str) -> None:
    for claim in _claims(scenario, "resourceClaims", [name]):
        for request in claim["spec"]["devices"]["requests"]:
            exactly = request.get("exactly") or {}
            if exactly.get("deviceClassName") == device_class and (exactly.get("count") or 1) == int(before):
                exactly["count"] = int(number)
                return


def _tolerate_devices(scenario: Scenario, words: str, name: str) -> None:
    tolerations = [{"operator": "Equal", **taint} for taint in _taints(words)]
    for claim in _claims(scenario, "resourceClaims", [name]):
        for request in claim["spec"]["devices"]["requests"]:
            exactly = request.get("exactly") or {}
            exactly["tolerations"] = [*(exactly.get("tolerations") or ()), *tolerations]


def _without_annotation(scenario: Scenario, key: str, names: str) -> None:
    for claim in _claims(scenario, "pvcs", _items(names)):
        del claim["metadata"]["annotations"][key]


def _without_ports(scenario: Scenario, words: str) -> None:
    ports = {one if ":" in one else f"0.0.0.0:{one}" for one in _items(words)}
    for container in _containers(scenario):
        container["ports"] = [
            port
            for port in container.get("ports") or ()
            if f"{port.get('hostIP') or '0.0.0.0'}:{port.get('hostPort')}/{port.get('protocol') or 'TCP'}" not in ports
        ]


def _taints(words: str) -> Iterator[dict[str, str]]:
    for one in _items(words):
        what, _, effect = one.rpartition(":")
        key, _, value = what.partition("=")
        yield {"key": key, "value": value, "effect": effect}


def _tolerate(scenario: Scenario, words: str) -> None:
    tolerations = [{"operator": "Equal", **taint} for taint in _taints(words)]
    _spec(scenario)["tolerations"] = [*(_spec(scenario).get("tolerations") or ()), *tolerations]


def _rid_of(scenario: Scenario, words: str) -> None:
    dropped_taints = [*_taints(words)]
    for node in _nodes(scenario):
        spec = node.get("spec") or {}
        spec["taints"] = [taint for taint in spec.get("taints") or () if {"value": "", **taint} not in dropped_taints]


def _uncordon(scenario: Scenario) -> None:
    for node in _nodes(scenario):
        spec = node.get("spec") or {}
        spec.pop("unschedulable", None)
        spec["taints"] = [taint for taint in spec.get("taints") or () if taint["key"] != UNSCHEDULABLE]


def _without_volumes(scenario: Scenario, words: str) -> None:
    dropped_names = _items(re.sub(r" \(claim [^)]*\)", "", words))
    _spec(scenario)["volumes"] = [one for one in _spec(scenario)["volumes"] if one["name"] not in dropped_names]


def _without_devices(scenario: Scenario, claims: str | None, extended: str | None) -> None:
    names, resources = _items(claims or ""), _items(extended or "")
    spec = _spec(scenario)
    spec["resourceClaims"] = [one for one in spec.get("resourceClaims") or () if one["name"] not in names]
    for container in _containers(scenario):
        block = container.get("resources") or {}
        block["claims"] = [one for one in block.get("claims") or () if one["name"] not in names]
        for amounts in ("requests", "limits"):
            block[amounts] = {key: value for key, value in (block.get(amounts) or {}).items() if key not in resources}


def _raise_priority(scenario: Scenario, level: str) -> None:
    # No pod's priority can be changed: it is a new pod, which nobody has nominated.
    scenario["pod"].get("status", {}).pop("nominatedNodeName", None)
    _spec(scenario)["priority"] = int(level) + 1


def _let_preempt(scenario: Scenario) -> None:
    _spec(scenario)["preemptionPolicy"] = "PreemptLowerPriority"


def _add_node(scenario: Scenario, name: str) -> None:
    like = next(node for node in _nodes(scenario) if node["metadata"]["name"] == name)
    added = deepcopy(like)
    added["metadata"] = {**added["metadata"], "name": ADDED, "uid": ADDED}
    labels = added["metadata"].get("labels") or {}
    if "kubernetes.io/hostname" in labels:
        labels["kubernetes.io/hostname"] = ADDED
    _nodes(scenario).append(added)


def _ungate(scenario: Scenario, _: str) -> None:
    _spec(scenario).pop("schedulingGates", None)


def _list_of(item: str) -> str:
    return rf"({item}(?:(?:, | and ){item})*)"


_VOLUME: Final = r"[^\s,]+(?: \(claim [^\s)]+\))?"
_PORT: Final = r"[^\s,]+/[A-Z]+"
_TAINT: Final = r"[^\s,]+:(?:NoSchedule|NoExecute)"
_NAME: Final = r"(?!and )[^\s,]+"
_AMOUNT: Final = r"\S+ of \S+ instead of [^\s,]+"
_SENTENCES: Final[list[tuple[re.Pattern[str], Callable[..., None]]]] = [
    (re.compile(pattern), do)
    for pattern, do in (
        (r"ask for (\d+) of the class (\S+) instead of (\d+) in the claim ([^\s,]+)", _fewer_devices),
        (rf"tolerate the device taints? {_list_of(_TAINT)} in the claim ([^\s,]+)", _tolerate_devices),
        (rf"delete the annotation (\S+) of the claims? {_list_of(_NAME)}", _without_annotation),
        (r"leave nodes with taints out of the spreading over (\S+) \(nodeTaintsPolicy: Honor\)", _honor_taints),
        (r"ask for minDomains (\d+) over (\S+) instead of \d+", _min_domains),
        (rf"ask for ({_AMOUNT}(?: and {_AMOUNT})*)", _requests),
        (r'drop "(\S+) (\w+)(?: \(([^)]*)\))?" from the node affinity', _drop_requirement),
        (r"drop (\S+?)=(\S*) from the node selector", _drop_selector),
        (r'drop the (node selector)?(?: and the )?(required node affinity(?:, "[^"]*")?)?(?=,|$)', _drop_node_demands),
        (
            r"drop the required ((?:pod affinity and )?pod (?:anti-)?affinity)"
            r"(?: over ([^\s,]+))?(?:, term (\d+) of \d+)?",
            _drop_terms,
        ),
        (r"allow a maxSkew of (\d+) over (\S+) instead of \d+", _allow_skew),
        (r"only prefer to spread over (.+?) \(ScheduleAnyway\)", _only_prefer),
        (rf"free or drop the host ports? {_list_of(_PORT)}", _without_ports),
        (rf"tolerate the taints? {_list_of(_TAINT)}", _tolerate),
        (rf"remove the taints? {_list_of(_TAINT)} from nodes", _rid_of),
        (rf"wait until the taints? {_list_of(_TAINT)} (?:is|are) gone", _rid_of),
        (r"uncordon nodes", _uncordon),
        (
            rf"(?:create the PersistentVolumeClaims? .*?, or )?drop the volumes? "
            rf"({_VOLUME}(?:, {_VOLUME})*? and {_VOLUME}|[^\s,]+(?: \(claim [^\s)]+\))?)",
            _without_volumes,
        ),
        (
            rf"(?:create the ResourceClaims? .*?, or )?drop (?:the resource claims? {_list_of(_NAME)})?(?: and )?"
            rf"(?:the extended resources? {_list_of(_NAME)})?",
            _without_devices,
        ),
        (r"give it a priority above (-?\d+), so that it may preempt", _raise_priority),
        (r"let it preempt \(preemptionPolicy PreemptLowerPriority\)", _let_preempt),
        (rf"add a node like ({_NAME})", _add_node),
        (rf"remove the scheduling gates? {_list_of(_NAME)}", _ungate),
    )
]
