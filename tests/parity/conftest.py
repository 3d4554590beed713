"""Says in the end how many of the recorded cases agree."""

from typing import Any

import pytest

from tests.each_case import CASES

NAMED = 20
"""Names of cases that do not agree that are said in the end. All are above, with what differs."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report for found in terminalreporter.stats.values() for report in found if isinstance(report, pytest.TestReport)
    ]
    ours = [report for report in reports if report.when == "call" and report.nodeid.startswith("tests/parity/")]
    by_test: list[Any] = [
        (report.nodeid, value) for report in ours for name, value in report.user_properties if name == CASES
    ]
    counts = [value for _, value in by_test]
    for test, (number, names) in sorted(by_test):
        if "test_pod_groups" in test:
            terminalreporter.write_line(f"{number - len(names)} of {number} in {test.rpartition('::')[2]}")
    if counts:
        total, failed = sum(number for number, _ in counts), sorted({name for _, names in counts for name in names})
        number = sum(len(names) for _, names in counts)
        but = f"; not {', '.join(failed[:NAMED])}{', ...' if len(failed) > NAMED else ''}" if failed else ""
        terminalreporter.write_line(f"{total - number} of {total} cases agree with kube-scheduler{but}")
