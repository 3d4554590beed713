"""What bind is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from msgspec import Raw

from api.json_limits import check_json
from api.refusals import Refusal
from api.wire.names import is_name, is_namespace, is_uid
from api.wire.reading import members, read

MAX_BYTES: Final = 64 * 1024


@final
@dataclass(frozen=True, slots=True)
class AskedBinding:
    """A pod by name and UID, and the node it shall run on. All four can go into a URL."""

    name: str
    namespace: str
    uid: str
    node: str


def read_binding_args(body: bytes) -> AskedBinding:
    """ExtenderBindingArgs. Every member is required: a binding without the UID could hit another pod of the same name.

    Raises:
        Refusal: 400 or 413, see the table of bad input in the tests.
    """
    if len(body) > MAX_BYTES:
        raise Refusal(413, f"a binding may have {MAX_BYTES} bytes")
    name, namespace, uid, node = members(body, "PodName", "PodNamespace", "PodUID", "Node")
    check_json(body)
    return AskedBinding(
        name=_checked("PodName", name, is_name),
        namespace=_checked("PodNamespace", namespace, is_namespace),
        uid=_checked("PodUID", uid, is_uid),
        node=_checked("Node", node, is_name),
    )


def _checked(what: str, document: Raw | None, is_right: Callable[[str], bool]) -> str:
    text = "" if document is None else read(str, document, what)
    if not text:
        raise Refusal(400, f"{what} is required")
    if not is_right(text):
        raise Refusal(400, f"{what} is not a name that the API server accepts")
    return text
