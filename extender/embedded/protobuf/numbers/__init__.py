"""Which field of a message has which number, by topic: the messages that Go clients send, and no others.

Written for the schema: a name in here is one that the Struct of the same name has. What has no number is skipped when it is read.
"""

from collections.abc import Mapping
from typing import Final

from extender.embedded.protobuf.fields import Numbers
from extender.embedded.protobuf.numbers.containers import CONTAINERS
from extender.embedded.protobuf.numbers.devices import DEVICES
from extender.embedded.protobuf.numbers.events import EVENTS
from extender.embedded.protobuf.numbers.metadata import METADATA
from extender.embedded.protobuf.numbers.nodes import NODES
from extender.embedded.protobuf.numbers.others import OTHERS
from extender.embedded.protobuf.numbers.pods import PODS
from extender.embedded.protobuf.numbers.scheduling import SCHEDULING
from extender.embedded.protobuf.numbers.services import SERVICES
from extender.embedded.protobuf.numbers.storage import STORAGE
from extender.embedded.protobuf.numbers.volumes import VOLUMES
from extender.embedded.protobuf.numbers.workloads import WORKLOADS

NUMBERS: Final[Mapping[str, Numbers]] = {
    **METADATA, **NODES, **PODS, **CONTAINERS, **SCHEDULING, **VOLUMES, **STORAGE, **SERVICES, **WORKLOADS, **EVENTS, **DEVICES, **OTHERS,
}  # fmt: skip
"""The fields of a message, by the name that OpenAPI has for it."""
