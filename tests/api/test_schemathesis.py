"""Requests made up from openapi.json, right and wrong ones, get no answer that openapi.json does not describe."""

from collections.abc import Iterable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings, strategies
from schemathesis import GenerationMode
from schemathesis.checks import CheckContext
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.test_openapi import FILE
from tests.kit.examples import examples
from tests.kit.service import Service


def no_internal_error(ctx: CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]) -> None:
    """A 503 is an answer; a 500 is a mistake of ours."""
    assert response.status_code != 500


FOUND: Iterable[Any] = schemathesis.openapi.from_path(FILE).get_all_operations()
OPERATIONS = [operation.ok() for operation in FOUND]
CHECKS = [
    no_internal_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_described(example: Service, operation: Any) -> None:
    @settings(
        max_examples=examples(15, minimum=5), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(case=strategies.one_of([operation.as_strategy(mode) for mode in GenerationMode]))
    def is_described(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(base_url=str(example.client.base_url), checks=CHECKS)

    is_described()
