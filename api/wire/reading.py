"""JSON read piece by piece, as Go reads it: names in any case, null for "not there", unknown members ignored."""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from api.refusals import Refusal
from extender.objects import decoding
from extender.objects.meta import ApiObject

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=ApiObject)

Document = bytes | Raw

_NULL: Final = Raw(b"null")
_DECODERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}


def read(kind: type[T], document: Document, what: str = "the body") -> T:
    """The document as a value of a simple type, or of one with Raw parts.

    Raises:
        Refusal: 400, which names `what`.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(document)
    except msgspec.ValidationError as exc:
        raise Refusal(400, f"{what}: {exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        # The decoder's text tells the position; UnicodeDecodeError's would repeat the bytes.
        detail = "not valid UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)
        raise Refusal(400, f"{what} is not JSON: {detail}") from exc
    except RecursionError as exc:
        raise Refusal(400, f"{what} is nested too deeply") from exc
    return value


def members(document: Document, *names: str, what: str = "the body") -> list[Raw | None]:
    """The members of an object, in the order of the names; None for those that are missing or null.

    A name that is spelt exactly wins over one in another case.

    Raises:
        Refusal: 400, the document is no object.
    """
    found = read(dict[str, Raw], document, what)
    if any(name not in found for name in names):
        folded = {name.casefold(): value for name, value in found.items()}
        values = [found.get(name, folded.get(name.casefold())) for name in names]
    else:
        values = [found[name] for name in names]
    return [None if value is None or is_null(value) else value for value in values]


def is_null(value: Raw) -> bool:
    """Whether the value is null."""
    return value == _NULL


def read_object(kind: type[ObjectT], document: Document, what: str) -> ObjectT:
    """A Kubernetes object.

    Raises:
        Refusal: 400, a field of the wrong type.
    """
    try:
        return decoding.decode(kind, document)
    except decoding.DecodeError as exc:
        raise Refusal(400, f"{what}: {exc}") from exc
