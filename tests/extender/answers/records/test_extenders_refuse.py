"""What extenders had against nodes is kept with what the Filters said."""

import asyncio

import pytest

from extender.answers.records.details import verdict_details
from extender.answers.types import ReasonCount
from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.scheduler.extenders import schedule_pod_with_extenders
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.testing import make_framework
from tests.extender.engine.scheduler.test_extenders import POD, an_extender, says, three_nodes
from tests.extender.plugins_by_table import Refuses


def test_the_filters_come_first_and_the_extenders_last() -> None:
    framework, snapshot = make_framework(Refuses("Filter", {"a": fwk.unschedulable("no")})), three_nodes()
    extender = an_extender(
        says({"NodeNames": [], "FailedNodes": {"b": "licence"}, "FailedAndUnresolvableNodes": {"c": "licence"}})
    )
    cycle = Cycle(framework, snapshot, POD.obj())

    with pytest.raises(FitError) as caught:
        asyncio.run(schedule_pod_with_extenders(SchedulingAlgorithm(), (extender,), cycle, 0))

    by_filter, by_extenders = verdict_details(caught.value.findings, refuses_all=True).waterfall
    assert (by_filter.plugin, by_filter.refused, by_filter.left) == ("Filter", 1, 2)
    assert (by_extenders.plugin, by_extenders.refused, by_extenders.unresolvable, by_extenders.left) == (
        "extenders",
        2,
        1,
        0,
    )
    assert by_extenders.reasons == (ReasonCount(reason="licence", nodes=2),)
