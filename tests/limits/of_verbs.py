"""Bodies of the extender verbs, as they are read."""

import json
from collections.abc import Iterable

from msgspec import Raw

from extender.values import limits
from extender.values.golang.json import JsonError
from extender.values.objects.node import NodeDecoder
from extender.values.protocol.arriving_nodes import ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import read_binding_args, read_extender_args, read_preemption_args
from tests.limits.rows import Filled, Held, words

POD = '{"metadata":{"name":"p","namespace":"d","uid":"u"}}'


async def called(body: str) -> str:
    """Returns why a body of filter is refused; empty if it is read."""
    try:
        await read_extender_args(ArrivedBody([body.encode()]), DecodedNodes())
    except JsonError as exc:
        return str(exc)
    return ""


async def in_full(items: Iterable[str]) -> str:
    return await called(f'{{"Pod":{POD},"Nodes":{{"items":[{",".join(items)}]}},"NodeNames":null}}')


async def by_name(names: Iterable[str]) -> str:
    return await called(f'{{"Pod":{POD},"Nodes":null,"NodeNames":{json.dumps(list(names))}}}')


def node(name: str, rest: str = "") -> str:
    return f'{{"metadata":{{"name":"{name}"}}{rest}}}'


def two(items: list[str], form: str) -> Iterable[str]:
    """Two nodes that share the items: half of them each."""
    half = len(items) // 2
    return (node(name, form % ",".join(share)) for name, share in (("a", items[:half]), ("b", items[half:])))


def preempted(nodes: dict[str, list[str]]) -> str:
    victims = {name: {"Pods": [{"UID": uid} for uid in uids]} for name, uids in nodes.items()}
    body = f'{{"Pod":{POD},"NodeNameToVictims":null,"NodeNameToMetaVictims":{json.dumps(victims)}}}'
    return words(lambda: read_preemption_args(body.encode()), JsonError)


def weighed(number: int) -> int:
    images = ",".join(f'{{"names":["i{index}"]}}' for index in range(number))
    return len(NodeDecoder()(Raw(node("n", f',"status":{{"images":[{images}]}}').encode())).status.images)


def bound(number: int) -> str:
    body = '{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"}'
    return words(lambda: read_binding_args(body.ljust(number).encode()), JsonError)


VERBS: dict[str, Filled | Held] = {
    "NODES": Filled(lambda n: in_full(node(f"n{index}") for index in range(n)), above="more than 20000 nodes in full"),
    "NODE_BYTES": Filled(
        lambda n: in_full([node("n").replace("}}", "}" + " " * (n - len(node("n"))) + "}")]),
        above="more than 4194304 bytes",
    ),
    "IMAGES_WEIGHED": Filled(weighed, at=limits.IMAGES_WEIGHED, above=limits.IMAGES_WEIGHED),
    "IMAGE_NAMES": Filled(
        lambda n: in_full(
            node(
                f"n{first}",
                f',"status":{{"images":[{{"names":{json.dumps([f"i{index}" for index in range(first, min(first + 50, n))])}}}]}}',
            )
            for first in range(0, n, 50)
        ),
        above="more than 500000 different names of images",
        is_slow=True,
    ),
    "LABEL_KEYS": Filled(
        lambda n: in_full(
            f'{{"metadata":{{"name":"n{half}","labels":{json.dumps({f"k{index}": "v" for index in range(half, n, 2)})}}}}}'
            for half in (0, 1)
        ),
        above="more than 500000 different keys of labels",
        is_slow=True,
    ),
    "TAINTS": Filled(
        lambda n: in_full(two([f'{{"key":"k{index}"}}' for index in range(n)], ',"spec":{"taints":[%s]}')),
        above="more than 100000 different taints",
    ),
    "RESOURCE_NAMES": Filled(
        lambda n: in_full(two([f'"k{index}":1' for index in range(n)], ',"status":{"allocatable":{%s}}')),
        above="more than 100000 different names of resources",
    ),
    "NODE_NAMES": Filled(lambda n: by_name(f"n{index}" for index in range(n)), above="more than 100000 names of nodes"),
    "VICTIMS": Filled(
        lambda n: preempted({"n": [f"u{index}" for index in range(n)]}), above="more than 300000 victims", is_slow=True
    ),
    "UID_CHARACTERS": Filled(lambda n: preempted({"n": ["u" * n]}), above="more than 128 characters"),
    "VERB_BYTES": Filled(
        lambda n: called(f'{{"Pod":{POD},"Nodes":null,"NodeNames":["n"]}}'.ljust(n)),
        above="bytes without the full nodes",
    ),
    "BINDING_BYTES": Filled(bound, above="a binding may have 65536 bytes"),
    "JSON_DEPTH": Filled(
        lambda n: called(f'{{"Pod":{POD},"Nodes":null,"NodeNames":["n"],"x":{"[" * (n - 1)}{"]" * (n - 1)}}}'),
        above="more than 64 levels deep",
    ),
    "JSON_VALUES": Held("tests/extender/values/golang/test_json_limits.py::test_values_are_counted"),
}
