"""The bounds on requests and objects of the API in memory: its rows of the table of `extender.values.limits`."""

from typing import Final

from extender.values.limits import Door, Limit

# fmt: off
API_BODY_DEPTH: Final = Limit(Door.OBJECTS, 200,
    "levels of nested JSON in such a body", "400")
PROTOBUF_JSON_DEPTH: Final = Limit(Door.OBJECTS, 100,
    "levels of nested JSON within protobuf", "400")
PATCH_OPERATIONS: Final = Limit(Door.OBJECTS, 10_000,
    "operations of a JSON patch, as upstream", "413")
PATCH_COPIED_BYTES: Final = Limit(Door.OBJECTS, 3 * 2**20,
    "bytes that a JSON patch copies, as upstream", "422")
OBJECT_BYTES: Final = Limit(Door.OBJECTS, 3 * 2**19,
    "bytes of a stored object, as in etcd", "500")
STORED_EVENTS: Final = Limit(Door.OBJECTS, 30_000,
    "Events in the embedded cluster", "the oldest are removed before their hour is over")
