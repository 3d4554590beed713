"""What is wrong with the path or the query of a request. Of what was sent only names are repeated."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from api.callers.http_refusals import Refusal
from extender.values import limits


async def only_known_parameters(request: Request) -> None:
    """A dependency of routes. Refuses parameters that the route does not read, because a misspelt limit limits nothing.

    It waits for nothing; but a function that is not asynchronous would be called in a thread, with the backend that
    this needs imported.

    Raises:
        Refusal: 400, with the parameter's name.
    """
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    known = [parameter.alias for parameter in route.dependant.query_params]
    for name in request.query_params:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise Refusal(
                400,
                f"query: there is no parameter {name[: limits.REFUSED_NAME_CHARACTERS]!r}; this path {takes}",
            )


def what_is_wrong(request: Request, errors: Sequence[Any]) -> str:
    """Returns a sentence that names each parameter that cannot be read, and what is allowed.

    Arguments:
        errors: of FastAPI: each with its place and type.
    """
    described = {(each["in"], each["name"]): each for each in _parameters(request)}
    return "; ".join(dict.fromkeys(_said(error, described) for error in errors))


def _parameters(request: Request) -> Iterator[Mapping[str, Any]]:
    route = request.scope.get("route")
    if isinstance(route, APIRoute):
        operations = request.app.openapi()["paths"].get(route.path_format, {})
        yield from operations.get(request.method.lower(), {}).get("parameters", ())


def _said(error: Mapping[str, Any], described: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    where, name = (*map(str, error["loc"]), "")[:2]
    parameter = described.get((where, name), {})
    allowed = _allowed(parameter.get("schema", {}), parameter.get("description", ""))
    if error["type"] == "missing":
        return f"{where}: {name} is required{f': {allowed}' if allowed else ''}"
    return f"{where}: {name} has to be {allowed}" if allowed else f"{where}: {name} is not valid"


def _allowed(schema: Mapping[str, Any], description: str) -> str:
    """Returns what a value may be, in words; empty if that is not known."""
    schema = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    if schema.get("type") == "integer":
        return (
            f"a whole number from {schema['minimum']} to {schema['maximum']}"
            if "maximum" in schema
            else "a whole number"
        )
    if schema.get("type") == "boolean":
        return "true or false"
    if "pattern" in schema:
        return description
    if "maxLength" in schema:
        return f"{schema.get('minLength', 0)} to {schema['maxLength']} characters"
    return ""
