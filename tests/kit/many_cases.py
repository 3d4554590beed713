"""Tests of many cases: one test tries all of them, and a case that fails is reported by its name, with its own
traceback.

A test for each case would cost more than most cases do: thousands of tests are collected in every worker and reported
one by one.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

CASES = "cases"
"""The property of a test's report that says how many cases it has, and which of them failed."""


def each_case(
    cases: Callable[..., Iterable[Any]], name_of: Callable[[Any], str] = lambda case: case["id"]
) -> Callable[..., Any]:
    """Makes one test of a function that takes a `case`, and fixtures.

    Arguments:
        cases: returns the cases, when the test runs; may take fixtures, too. The test is skipped where there are none.
        name_of: a case -> its name.
    """

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        of_cases, of_check = ({*inspect.signature(function).parameters} for function in (cases, check))

        def test(subtests: pytest.Subtests, record_property: Callable[[str, object], None], **fixtures: Any) -> None:
            __tracebackhide__ = True
            all_cases = list(cases(**{name: fixtures[name] for name in of_cases}))
            if not all_cases:
                pytest.skip("there are no cases")
            arguments = {name: fixtures[name] for name in of_check - {"case"}}
            failed: list[str] = []
            for case in all_cases:
                try:
                    check(case=case, **arguments)
                except (Exception, pytest.fail.Exception):
                    failed.append(name_of(case))
                    # Only failures pass through a subtest: it costs more than a case.
                    with subtests.test(name_of(case)):
                        raise
            record_property(CASES, (len(all_cases), failed))

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        names = ["subtests", "record_property", *sorted((of_cases | of_check) - {"case"})]
        vars(test)["__signature__"] = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
        )
        # Marks, such as other parameters, may have been put on the function before.
        vars(test)["pytestmark"] = getattr(check, "pytestmark", [])
        return test

    return decorate
