"""Devices, and claims of them that pods of a cluster share at random."""

import random
from collections.abc import Sequence

from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodResourceClaim
from tests.kit.devices import exactly, make_claim, make_device, make_device_class, make_slice


def with_claims(objects: Sequence[HasMetadata], chance: random.Random) -> list[HasMetadata]:
    """Returns the objects with a few devices and claims, which half of the waiting pods name."""
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    shared = make_device("part", allowMultipleAllocations=True, capacity={"memory": {"value": "4Gi"}})
    slices = [
        make_slice("a", *(["b"] if chance.random() < 0.5 else []), name=node.name, pool=node.name, nodeName=node.name)
        for node in nodes
        if chance.random() < 0.7
    ]
    of_all = make_slice("fabric", shared, name="all", pool="all", allNodes=True)
    claims = [
        make_claim(
            f"claim-{number}",
            exactly(chance.choice((1, 1, 2)))
            if chance.random() < 0.6
            else exactly(1, capacity={"requests": {"memory": "2Gi"}}),
        )
        for number in range(chance.randint(1, 5))
    ]
    names = [claim.metadata.name for claim in claims]

    def with_some(obj: HasMetadata) -> HasMetadata:
        if not isinstance(obj, Pod) or obj.namespace != "default" or obj.spec.node_name or chance.random() < 0.5:
            return obj
        chosen = chance.sample(names, min(len(names), chance.choice((1, 1, 2))))
        references = [PodResourceClaim(name=name, resource_claim_name=name) for name in chosen]
        return replaced(obj, spec=replaced(obj.spec, resource_claims=references))

    return [*map(with_some, objects), make_device_class("any"), of_all, *slices, *claims]
