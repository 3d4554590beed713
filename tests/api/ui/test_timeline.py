"""Time runs from left to right; success stands above the line, refusals hang below it."""

import re
from typing import Literal
from urllib.parse import unquote

from api.ui.timeline import timeline
from extender.answers.types import Attempt
from tests.api.ui.samples import NOW, RECORD, pod_name, seconds_ago


def attempt(
    seconds: int, outcome: Literal["Scheduled", "Unschedulable", "Error", "Filter"], feasible: int = 1
) -> Attempt:
    return Attempt(
        id=1, time=seconds_ago(seconds), pod=pod_name(), profile="p", number=1, outcome=outcome, evaluated=2, feasible=feasible
    )  # fmt: skip


def places(picture: str, css: str) -> list[float]:
    return [float(x) for x in re.findall(rf'class="{css}"[^>]* x="([\d.]+)"', picture)]


def test_scheduled_attempts_stand_above_the_line_and_others_below() -> None:
    picture = timeline([attempt(10, "Scheduled"), attempt(20, "Unschedulable"), attempt(30, "Error")], (), NOW)

    (above,) = re.findall(r'class="placed" y="([\d.]+)"', picture)
    (below,) = re.findall(r'class="unplaced" y="([\d.]+)"', picture)
    assert float(above) < float(below)
    assert picture.count('class="failed"') == 1


def test_a_filter_that_left_no_node_is_a_refusal() -> None:
    picture = timeline([attempt(10, "Filter", feasible=0), attempt(10, "Filter")], (), NOW)

    assert "1 found a node\n1 did not" in picture.replace("&#10;", "\n")


def test_later_is_further_to_the_right() -> None:
    picture = timeline([attempt(1, "Scheduled"), attempt(600, "Scheduled")], (), NOW)

    assert sorted(places(picture, "placed")) == [0.5, 990.5]


def test_a_preemption_is_a_flag_that_leads_to_its_story() -> None:
    picture = timeline([attempt(60, "Scheduled")], [RECORD], NOW)

    assert 'href="/ui/history#preemption-4"' in picture
    assert "shop/pending preempted shop/p0 on n0" in picture


def test_bars_lead_to_the_history_of_their_time() -> None:
    picture = timeline([attempt(50, "Scheduled")], (), NOW)

    (since, until) = re.findall(r"since=([^&]+)&amp;until=([^\"]+)", picture)[0]
    assert unquote(since) <= seconds_ago(50) <= unquote(until)


def test_timeline_without_decisions_is_drawn() -> None:
    assert "0 decisions and 0 preemptions" in timeline((), (), NOW)


def test_an_attempt_from_a_clock_that_is_ahead_is_counted_as_now() -> None:
    ahead = attempt(-5, "Scheduled")

    picture = timeline([ahead], (), NOW)

    assert len(places(picture, "placed")) == 1
