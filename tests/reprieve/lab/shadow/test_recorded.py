"""A recording is shadowed as a live cluster is, and the same each time."""

from pathlib import Path

import pytest

from reprieve.lab.recordings.entries import Recording
from reprieve.lab.shadow.recorded import agreement_over
from tests.reprieve.lab.recordings.recorded_cluster import NODES, record
from tests.reprieve.lab.shadow.shadowed_cluster import DEFAULT
from tests.reprieve.lab.shadow.test_shadow import PACKING, URGENT, a_day, sees

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded") / "day.recording", a_day(7, hours=12), *NODES, URGENT)


def test_a_recorded_day_agrees_with_the_profile_that_decided_it(day: Path) -> None:
    agreement = agreement_over(Recording(day), DEFAULT, "default")

    assert (sees(agreement), agreement.total.agreement) == (set(), 1.0)
    assert agreement.total.decisions > 50 and agreement.evicted > 0
    assert agreement.since.startswith(Recording(day).begins.began[:16])


def test_another_configuration_differs_where_it_scores_otherwise(day: Path) -> None:
    agreement = agreement_over(Recording(day), PACKING, "packing")
    second = agreement_over(Recording(day), PACKING, "packing")

    assert agreement.total.different > 0
    assert {plugin for _, kind, plugin in sees(agreement) if kind == "elsewhere"} >= {"NodeResourcesFit"}
    assert (second.total, second.differences) == (agreement.total, agreement.differences)
