"""Requests made up from openapi.json, right and wrong ones, get no answer that openapi.json does not describe."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CheckContext
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.serving import Service
from tests.api.test_openapi import FILE


def no_internal_error(ctx: CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]) -> None:
    """A 503 is an answer; a 500 is a mistake of ours."""
    assert response.status_code != 500


SCHEMA = schemathesis.openapi.from_path(FILE)
SCHEMA.config.phases.coverage.enabled = False
CHECKS = [
    no_internal_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@SCHEMA.parametrize()
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_described(example: Service, case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(base_url=str(example.client.base_url), checks=CHECKS)
