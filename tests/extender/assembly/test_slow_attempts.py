"""An attempt that takes 100 ms or more is logged with its steps."""

import logging

import pytest

from extender.assembly.scheduling import SlowAttempts
from extender.engine import framework as fwk
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.testing import make_pod
from extender.values.metrics import Metrics

INFO = QueuedPodInfo(make_pod("web").obj(), 0.0)


def test_a_slow_attempt_is_logged_with_what_each_extension_point_took(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    reporter = SlowAttempts(metrics)
    metrics.steps.update(Filter=0.08, Score=0.03, Bind=0.5)

    with caplog.at_level(logging.INFO):
        reporter.decided(INFO, "default-scheduler", "n", 1, 1, 0.12)

    assert caplog.messages == [
        '"Scheduling took long" pod="default/web" total="120.0ms" Filter="80.0ms" Score="30.0ms"'
    ]


def test_a_quick_attempt_is_not_logged_and_its_steps_do_not_count_for_the_next_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    reporter = SlowAttempts(metrics)
    with metrics.timed("Score", "default-scheduler"):
        pass

    with caplog.at_level(logging.INFO):
        reporter.decided(INFO, "default-scheduler", "n", 1, 1, 0.099)
        metrics.steps.update(Filter=0.2)
        reporter.failed(INFO, "default-scheduler", fwk.unschedulable("no"), 0.2)

    assert caplog.messages == ['"Scheduling took long" pod="default/web" total="200.0ms" Filter="200.0ms"']
