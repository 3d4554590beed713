"""The form in which a caller wants its answer, and the form of its body.

Upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go; munnerlyn/goautoneg (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, final, get_args

from extender.cluster import statuses

JSON: Final = "application/json"
PRODUCED: Final = (JSON,)
META: Final = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")

Shape = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


@final
@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer.

    Attributes:
        shape: the kind that objects are turned into; empty for the objects themselves.
        api_version: the apiVersion of that kind.
    """

    shape: Shape = ""
    api_version: str = META[0]


AS_IT_IS: Final = Form()


def accepted(header: str) -> Form:
    """Returns the form that the caller prefers.

    Arguments:
        header: the Accept header; empty: any form.

    Raises:
        ApiStatus: 406 if none of the accepted forms can be produced.
    """
    if not header:
        return AS_IT_IS
    for media_type, parameters in _clauses(header):
        form = _form(media_type, parameters)
        if form is not None:
            return form
    raise statuses.not_acceptable(PRODUCED)


def preferred(header: str, offered: Sequence[str]) -> str:
    """Returns the media type that the caller prefers.

    Arguments:
        header: the Accept header; empty: any media type.
        offered: the media types that can be produced; the first one where the caller has no preference.

    Raises:
        ApiStatus: 406 if the caller accepts none of them.
    """
    for wanted, _ in _clauses(header or "*/*"):
        for media_type in offered:
            if wanted in (media_type, f"{media_type.partition('/')[0]}/*", "*/*", "*"):
                return media_type
    raise statuses.not_acceptable(offered)


def of_body(header: str, known: Sequence[str], default: str = "") -> str:
    """Returns the media type of a body, without its parameters.

    Raises:
        ApiStatus: 415 if it is none of the known ones.
    """
    media_type = header.partition(";")[0].strip().lower() or default
    if media_type not in known:
        raise statuses.unsupported_media_type(known)
    return media_type


def _form(media_type: str, parameters: Mapping[str, str]) -> Form | None:
    if (
        media_type not in (JSON, "application/*", "*/*")
        or parameters.get("stream", "watch") != "watch"
        or parameters.get("sv")
    ):
        return None
    if not {"as", "g", "v"} & set(parameters):
        return AS_IT_IS
    api_version = f"{parameters.get('g', '')}/{parameters.get('v', '')}"
    shape = parameters.get("as", "")
    if api_version not in META:
        return None
    return Form(cast(Shape, shape), api_version) if shape in get_args(Shape) and shape else None


def _clauses(header: str) -> list[tuple[str, dict[str, str]]]:
    """The clauses of an Accept header by quality; among equals the more specific ones first, then in the order
    given.
    """
    found = []
    for place, clause in enumerate(header.split(",")):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = {
            name.strip().lower(): value.strip().strip('"') for name, _, value in (each.partition("=") for each in rest)
        }
        quality = _quality(parameters.pop("q", "1"))
        found.append((-quality, media_type.count("*"), place, media_type.lower(), parameters))
    found.sort(key=lambda each: each[:3])
    return [(media_type, parameters) for *_, media_type, parameters in found]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
