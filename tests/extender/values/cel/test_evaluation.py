"""Where device selectors are evaluated, and what happens to those that take too much time or memory."""

import threading
import time
from contextlib import suppress

import pytest

from extender.values.cel import CelError, CompileError, compiled, evaluate, facts_of, is_cheap
from extender.values.objects.devices import Device, DeviceAttribute, DeviceCapacity
from tests.kit.tables import cases

GPU = Device(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string="a100"),
        "version": DeviceAttribute(version="1.2.3"),
        "text": DeviceAttribute(string="a" * 64),
    },
    capacity={"memory": DeviceCapacity(value="40Gi")},
)
FACTS = facts_of("dra.example.com", GPU)
OF_GPU = 'device.attributes["dra.example.com"]'

TEN = "[1,2,3,4,5,6,7,8,9,10]"
LOOPS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, a + b + c > 0)))"
"""A thousand rounds."""


@cases(
    "expression",
    ("a constant", "true"),
    ("the driver", 'device.driver == "dra.example.com"'),
    ("attributes", f'{OF_GPU}.model == "a100" && {OF_GPU}.version.isLessThan(semver("2.0.0"))'),
    ("a list", f'{OF_GPU}.model in ["a100", "h100"]'),
    ("capacities", 'device.capacity["dra.example.com"].memory.compareTo(quantity("10Gi")) >= 0'),
    ("an ordinary pattern", f'{OF_GPU}.model.lowerAscii().matches("^.*a100.*$")'),
)
def test_ordinary_selectors_are_cheap(expression: str) -> None:
    assert is_cheap(expression)
    assert evaluate(expression, FACTS)


@cases(
    "expression, answer",
    ("a pattern with repetitions", f'{OF_GPU}.model.matches("^a[0-9]{{3}}$")', True),
    ("a large pattern", f'{OF_GPU}.model.matches("(b{{1,30}}){{1,30}}")', False),
    ("loops in loops", f"{LOOPS} && {OF_GPU}.version.major() == 1", True),
    ("a long expression", "&&".join(["true"] * 500), True),
    ("unknown domains", f"({LOOPS}) && !has({OF_GPU}.color) && !has(device.attributes['nope'].x)", True),
    ("quantities", f"{LOOPS} && device.capacity['dra.example.com'].memory == quantity('40960Mi')", True),
)
def test_costly_selectors_give_the_same_answer_in_the_worker(expression: str, answer: bool) -> None:
    assert not is_cheap(expression)
    assert evaluate(expression, FACTS) is answer
    assert compiled(expression).matches(FACTS) is answer


@cases(
    "expression, kind",
    ("it is invalid", "1 +" + " " * 2000, CompileError),
    ("it is no condition", "1" + " " * 2000, CompileError),
    ("it fails for the device", f"{OF_GPU}.color == 'red'" + " " * 2000, CelError),
    ("types that do not fit", f"{LOOPS} && {LOOPS.replace(TEN, TEN.replace('10', 'string(1)'))}", CelError),
)
def test_errors_are_the_same_in_the_worker(expression: str, kind: type[CelError]) -> None:
    with pytest.raises(CelError) as own_error:
        compiled(expression).matches(FACTS)
    with pytest.raises(CelError) as worker_error:
        evaluate(expression, FACTS)

    assert str(worker_error.value) == str(own_error.value)
    assert type(worker_error.value) is type(own_error.value) is kind


HUGE_PATTERNS = " || ".join(f'"b".matches("(.{{1,30}}){{1,30}}c{number}")' for number in range(200))
"""About a second of compiling patterns. It is no longer than expressions may be, and within the bound that is computed
for their work.
"""


def test_an_expression_that_takes_too_long_is_stopped() -> None:
    """
    The worker is ended by the kernel after a quarter of a second of CPU time. The next expression finds another one.
    """
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        evaluate(HUGE_PATTERNS, FACTS)

    assert evaluate(f'{OF_GPU}.model.matches("^a[0-9]{{3}}$")', FACTS)


def test_other_threads_run_during_an_evaluation() -> None:
    """A thread that waits for the worker does not keep the interpreter from others."""

    def suppressed() -> None:
        with suppress(CelError):
            evaluate(HUGE_PATTERNS, FACTS)

    turns = 0
    thread = threading.Thread(target=suppressed)
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1

    assert turns > 10
