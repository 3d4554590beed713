"""What a run says in the end, a plugin of pytest: where its processor time went, how many recorded cases agree, and how
many tests were not run and why. With `REQUIRE=browser,kubectl,apiserver` a test that one of these lacks for fails.

The time of a test includes that of the fixtures that were set up or taken down for it, and of processes that ended in
it. Processor time says more than time does: it is about the same on a busy machine.
"""

import os
import re
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.kit.many_cases import CASES

SPENT: Final = "processor seconds"
"""The property of the last report of a test that says how many it took itself, and how many its processes took."""

SLOW: Final = 1.0
"""Seconds of processor time from which on a test has the mark `slow`."""

DEAREST: Final = 10

NAMED: Final = 20
"""Names of cases that do not agree that are said in the end. All are above, with what differs."""

REQUIRED: Final = {"browser": "Chromium", "kubectl": "kubectl", "apiserver": "KUBEBUILDER_ASSETS"}
"""What the variable REQUIRE may name -> what the reasons of tests have that are skipped without it."""

_BEGAN = pytest.StashKey[tuple[float, float]]()
_REQUIRED = pytest.StashKey[list[str]]()


def _spent() -> tuple[float, float]:
    """Returns the processor seconds of this process, and of its processes that have ended."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[_BEGAN] = _spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown":
        (own_seconds, children), (own_before, children_before) = _spent(), item.stash[_BEGAN]
        report.user_properties.append((SPENT, [own_seconds - own_before, children - children_before]))
    reason = _reason_of_skip(report)
    if missing_names := [name for name in item.config.stash[_REQUIRED] if REQUIRED[name] in reason]:
        report.outcome, report.longrepr = "failed", f"{reason}, and REQUIRE asks for {missing_names[0]}"
    return report


def _reason_of_skip(report: pytest.TestReport) -> str:
    """Returns why a test was skipped, or nothing if it was not."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[SPENT] = sum(_spent())


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REQUIRED] = required = list(filter(None, os.environ.get("REQUIRE", "").split(",")))
    if unknown := set(required) - REQUIRED.keys():
        raise pytest.UsageError(f"REQUIRE may name {', '.join(REQUIRED)}, not {', '.join(sorted(unknown))}")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary())


class _Summary:
    """Gathers reports where they are printed. State: the seconds of each test, those of workers, recorded cases, and
    reasons of skips with their numbers.
    """

    def __init__(self) -> None:
        self._tests: dict[str, tuple[float, float]] = {}
        self._unmarked: list[str] = []
        self._of_workers = 0.0
        self._cases: dict[str, tuple[int, list[str]]] = {}
        self._skips = Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if reason := _reason_of_skip(report):
            self._skips[re.split("[:;,(]", reason)[0]] += 1
        for name, value in report.user_properties:
            if name == SPENT and isinstance(value, list):
                self._tests[report.nodeid] = value[0], value[1]
                if sum(value) >= SLOW and "slow" not in report.keywords:
                    self._unmarked.append(report.nodeid)
            elif name == CASES and report.when == "call" and report.nodeid.startswith("tests/parity/"):
                self._cases[report.nodeid] = value  # type: ignore[assignment]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._of_workers += getattr(node, "workeroutput", {}).get(SPENT, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        dearest = sorted(((sum(spent), name) for name, spent in self._tests.items()), reverse=True)[:DEAREST]
        if dearest:
            terminalreporter.section("processor seconds")
        for seconds, name in dearest:
            write(f"{seconds:7.2f} {name}")
        for name in sorted(self._unmarked):
            write(f"{SLOW:g} s or more, without the mark `slow`: {name}")
        own_seconds, children = (sum(spent[which] for spent in self._tests.values()) for which in (0, 1))
        # Workers are processes of this one.
        total = self._of_workers + _spent()[0] if self._of_workers else sum(_spent())
        write(
            f"{total:.0f} in all: {own_seconds:.0f} in tests, {children:.0f} in processes that they started, and "
            f"{total - own_seconds - children:.0f} to begin and to collect"
        )
        self._write_cases(write)
        by_reason = ", ".join(f"{reason} {number}" for reason, number in self._skips.most_common())
        write(f"not run: {self._skips.total()}" + (f" ({by_reason})" if by_reason else ""))

    def _write_cases(self, write: Any) -> None:
        for test, (number, names) in sorted(self._cases.items()):
            if "test_pod_groups" in test:
                write(f"{number - len(names)} of {number} in {test.rpartition('::')[2]}")
        if self._cases:
            total = sum(number for number, _ in self._cases.values())
            failed = [name for _, names in self._cases.values() for name in names]
            tests = sorted(set(failed))
            but = f"; not {', '.join(tests[:NAMED])}{', ...' if len(tests) > NAMED else ''}" if failed else ""
            write(f"{total - len(failed)} of {total} recorded cases agree with kube-scheduler{but}")
