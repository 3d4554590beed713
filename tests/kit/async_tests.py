"""A plugin of pytest: a test that is an `async def` runs under virtual time, where waiting takes none.

A folder whose tests run elsewhere gives them a fixture `stage` with a method `run`.
"""

import inspect
from typing import Any

import pytest

from extender.testing import virtual_time


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    fixtures = pyfuncitem.funcargs
    stage: Any = fixtures.get("stage")
    test = pyfuncitem.obj(**{name: fixtures[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    try:
        virtual_time.run(test) if stage is None else stage.run(test)
    except BaseExceptionGroup as group:
        raise _alone_in(group) from None
    return True


def _alone_in(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns what went wrong, without the groups around it."""
    if len(group.exceptions) != 1:
        return group
    (only,) = group.exceptions
    return _alone_in(only) if isinstance(only, BaseExceptionGroup) else only
