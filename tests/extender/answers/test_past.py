"""What was decided in a time: filtered by what people know, equal attempts as one, page after page, and nothing told by
a filter.
"""

import random
from collections.abc import Container
from datetime import UTC, datetime
from typing import Any

from extender.answers.history import PastQuery, past
from extender.answers.overviews import Past
from extender.answers.records.records import Records
from extender.engine import framework as fwk
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.runtime.findings import Findings
from extender.engine.snapshot import Rows
from extender.testing import make_node, make_pod, make_snapshot
from extender.values import limits
from tests.kit.tables import cases
from tests.kit.told_scheduler import ToldScheduler

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
REFUSED = fwk.unschedulable("0/1 nodes are available: 1 Insufficient cpu.")


class Told:
    """Records of attempts, one a minute, the last one at noon."""

    def __init__(self, *attempts: tuple[str, str]) -> None:
        """(namespace/name, node); no node if the pod was refused."""
        self.now = NOON - 60 * len(attempts)
        self.records = Records(now=lambda: self.now)
        for pod, node in attempts:
            self.now += 60
            namespace, _, name = pod.partition("/")
            info = QueuedPodInfo(make_pod(name).namespace(namespace).uid(pod).obj(), 0.0)
            info.attempts = 1
            if node:
                self.records.decided(info, "default-scheduler", node, 3, 2, 0.001)
            else:
                self.records.failed(info, "default-scheduler", REFUSED, 0.001)

    def ask(self, may_see: Container[str] = ("shop", "batch"), **query: Any) -> Past:
        past_query = PastQuery(**query)
        return past(list(self.records.attempts()), list(self.records.preemptions()), past_query, may_see, NOON)


def rows(answer: Past) -> list[tuple[str, int]]:
    return [(group.attempt.pod.key, group.count) for group in answer.alike]


TOLD = Told(("shop/web-1", "a1"), ("batch/job-1", ""), ("shop/web-2", "b1"), ("batch/job-1", ""), ("shop/db-0", "a2"))


@cases(
    "query, expected_rows",
    ("everything, newest first", {}, [("shop/db-0", 1), ("batch/job-1", 2), ("shop/web-2", 1), ("shop/web-1", 1)]),
    ("an outcome", {"outcome": "unschedulable"}, [("batch/job-1", 2)]),
    ("another outcome", {"outcome": "asked"}, []),
    ("a workload", {"name": "web"}, [("shop/web-2", 1), ("shop/web-1", 1)]),
    ("a part of a name", {"name": "shop/db"}, [("shop/db-0", 1)]),
    ("a namespace", {"namespace": "batch"}, [("batch/job-1", 2)]),
    ("nodes", {"node": "a"}, [("shop/db-0", 1), ("shop/web-1", 1)]),
    ("since a time", {"since": NOON - 60}, [("shop/db-0", 1), ("batch/job-1", 1)]),
    ("until a time", {"until": NOON - 180}, [("batch/job-1", 1), ("shop/web-1", 1)]),
    ("both", {"name": "web", "node": "b"}, [("shop/web-2", 1)]),
)
def test_decisions_are_found_by(query: dict[str, Any], expected_rows: list[tuple[str, int]]) -> None:
    assert rows(TOLD.ask(**query)) == expected_rows


def test_counts_over_time_match_the_attempts_found() -> None:
    answer = TOLD.ask(name="job", since=NOON - 300, until=NOON)

    assert (answer.begin, answer.end, answer.total) == (NOON - 300, NOON, 2)
    assert [place for place, count in enumerate(answer.counts) if count.refused] == [40, 80]
    assert not any(count.placed or count.failed for count in answer.counts)


def test_a_pod_that_may_not_be_seen_is_not_found_by_its_name() -> None:
    """It is listed among all, where its name is then left out; whether a filter finds it would tell the name."""
    only_shop = frozenset({"shop"})

    assert rows(TOLD.ask(only_shop, name="job")) == []
    assert rows(TOLD.ask(only_shop, namespace="batch")) == []
    assert ("batch/job-1", 2) in rows(TOLD.ask(only_shop))


def test_all_pages_together_are_everything() -> None:
    chance = random.Random(3)
    decisions = Told(*((f"shop/p{chance.randrange(200)}", chance.choice(["a", "b", ""])) for _ in range(900)))

    before, num_decisions, pages = None, 0, 0
    while before != 0:
        page = decisions.ask(before=before)
        assert len(page.alike) <= limits.HISTORY_ALIKE
        assert page.total == 900
        num_decisions += sum(group.count for group in page.alike)
        before, pages = page.older, pages + 1

    assert num_decisions == 900
    assert pages > 2


def test_a_pod_that_is_tried_for_ever_does_not_make_a_page_without_end() -> None:
    decisions = Told(*[("shop/p", "")] * 20)

    assert limits.HISTORY_ATTEMPTS <= 3000
    assert rows(decisions.ask()) == [("shop/p", 16)]  # as many as are kept of a pod


def test_decisions_are_found_by_the_plugin_that_refused() -> None:
    records = Records(now=lambda: NOON)
    for name, plugin in (("p", "Fit"), ("q", "Taints")):
        info = QueuedPodInfo(make_pod(name).uid(name).obj(), 0.0)
        rows_of_all = Rows.of(make_snapshot(make_node("a")))
        everywhere = rows_of_all.node == 0
        verdicts = fwk.Verdicts(fwk.reject(everywhere, "no").codes, (), ((plugin, everywhere),))
        records.refused(info.pod, Findings(rows_of_all, verdicts))
        records.failed(info, "default-scheduler", REFUSED, 0.001)

    answer = past(list(records.attempts()), [], PastQuery(plugin="Fit"), {"default"}, NOON)

    assert rows(answer) == [("default/p", 1)]


async def test_preemption_is_found_by_a_part_of_its_victims_name() -> None:
    records = Records(now=lambda: NOON)
    scheduling = ToldScheduler(records)
    scheduling.comes(
        make_node("a").capacity(cpu=2, pods=10),
        make_pod("report-08").namespace("batch").uid("low").req(cpu=2).node("a"),
        make_pod("vip").namespace("shop").uid("high").req(cpu=2).priority(9),
    )
    await scheduling.decides()

    def count(may_see: Container[str], **query: Any) -> int:
        past_query = PastQuery(**query)
        return len(past(list(records.attempts()), list(records.preemptions()), past_query, may_see, NOON).preemptions)

    everything = {"batch", "shop"}
    assert [count(everything, name=name) for name in ("report", "batch/", "vip", "web")] == [1, 1, 1, 0]
    assert [count(everything, node=node) for node in ("a", "b")] == [1, 0]
    assert count({"shop"}, name="report") == 0
