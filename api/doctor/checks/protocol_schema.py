"""The check of every verb that its answer is valid by the JSON Schema of the protocol, which the service has at
/schemas/extender/v1.

kube-scheduler itself ignores fields that it does not know, and reads names in any case, so that a misspelt field is
never reported by it.
"""

from functools import cache
from typing import Final

import jsonschema_rs
import orjson

from api.doctor.grades import Finding, ok, warning
from api.doctor.patient import Reply
from api.documents.extender_schema import extender_schema
from api.settings.settings import Settings

VALID: Final = "is valid by the schema of the protocol"
_LONGEST: Final = 200


def is_valid(verb: str, result: str, reply: Reply) -> Finding:
    """Returns whether the body of an answer is valid.

    Arguments:
        result: the name of its type: a definition of the schema.
    """
    try:
        answer = orjson.loads(reply.body)
    except orjson.JSONDecodeError as exc:
        return warning(verb, VALID, f"it is no JSON: {exc}", f"see {result} at /schemas/extender/v1")
    error = next(_validator(result).iter_errors(answer), None)
    if error is None:
        return ok(verb, VALID)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path).lstrip(".")
    said = f"{where}: {error.message}" if where else error.message
    return warning(
        verb, VALID, said if len(said) <= _LONGEST else f"{said[:_LONGEST]}...", f"see {result} at /schemas/extender/v1"
    )


@cache
def _validator(result: str) -> jsonschema_rs.Draft202012Validator:
    """Returns what finds errors in answers of a type, of whose fields none may be unknown."""
    from api.app import create_app  # noqa: PLC0415 - the commands begin sooner without the service

    definitions = extender_schema(create_app(Settings()).openapi())["$defs"]
    for name in (result, "HostPriority"):
        if definitions[name].get("type") == "object":
            definitions[name]["additionalProperties"] = False
    return jsonschema_rs.Draft202012Validator({"$defs": definitions, "$ref": f"#/$defs/{result}"})
