"""What the framework makes of what PostFilter plugins say."""

import asyncio

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.plugin_calls import PluginError
from extender.testing import make_framework, make_pod, make_snapshot
from tests.extender.plugins_by_table import Answers, Tries, raising
from tests.kit.places import status_without_place, without_place
from tests.kit.tables import cases

NO, NEVER, LATER = fwk.unschedulable("no"), fwk.unresolvable("never"), fwk.Status(fwk.Code.PENDING, ("later",))
BROKEN = fwk.error("broken")


def post_filter(*plugins: fwk.Plugin) -> fwk.PostFilterResult:
    framework = make_framework(*plugins)
    return asyncio.run(run_post_filter_plugins(Cycle(framework, make_snapshot(), make_pod().obj()), fwk.NodeStatuses()))


@cases(
    "says, status, count",
    ("no plugins", [], fwk.unschedulable(), 0),
    ("success ends it", [fwk.SUCCESS, NO], fwk.SUCCESS, 1),
    ("success makes refusals forgotten", [NO, fwk.SUCCESS], fwk.SUCCESS, 2),
    ("refusals add up", [NO, fwk.unschedulable("nor I")], fwk.unschedulable("no", "nor I").by("P0"), 2),
    ("pending is a refusal", [LATER, NO], fwk.unschedulable("later", "no").by("P0"), 2),
    ("unresolvable ends it", [NO, NEVER, fwk.SUCCESS], NEVER.by("P1"), 2),
    ("an error ends it", [NO, BROKEN, fwk.SUCCESS], BROKEN.by("P1"), 2),
    ("skip is no answer here: an error", [fwk.SKIP, fwk.SUCCESS], fwk.Status(fwk.Code.ERROR, (), "P0"), 1),
)
def test_post_filters_are_tried_until_one_settles_it(says: list[fwk.Status], status: fwk.Status, count: int) -> None:
    plugins = [Tries(f"P{place}", answer) for place, answer in enumerate(says)]

    result = post_filter(*plugins)

    assert result.status == status
    assert sum(plugin.tried for plugin in plugins) == count


@cases(
    "plugins, nominated",
    ("no plugin nominates: unchanged", [Tries("A", NO)], None),
    ("cleared", [Tries("A", NO, "")], ""),
    ("a plugin without a nomination does not overrule", [Tries("A", NO, "a"), Tries("B", NO)], "a"),
    ("the last word counts", [Tries("A", NO, "a"), Tries("B", NO, "")], ""),
    ("success overrules", [Tries("A", NO, "a"), Tries("B", fwk.SUCCESS, "b")], "b"),
    ("also by saying nothing", [Tries("A", NO, "a"), Tries("B", fwk.SUCCESS)], None),
    ("unresolvable overrules", [Tries("A", NO, "a"), Tries("B", NEVER, "b")], "b"),
    ("an error nominates no node", [Tries("A", NO, "a"), Tries("B", BROKEN, "b")], None),
)
def test_last_plugin_that_nominates_decides_the_nomination(plugins: list[Tries], nominated: str | None) -> None:
    assert post_filter(*plugins).nominated_node == nominated


def test_missing_state_of_a_skipped_pre_filter_ends_post_filter_with_not_found() -> None:
    """A PostFilter whose own PreFilter had no turn cannot read its state. Upstream's DynamicResources ends the chain
    like that.
    """
    after = Tries("After", fwk.SUCCESS)

    result = post_filter(Answers("post_filter", raising(fwk.NotFoundError("not found"))), after)

    assert status_without_place(result.status) == fwk.error("not found").by("Answers")
    assert after.tried == 0


@cases(
    "answer, message",
    ("it raises", raising(ValueError("boom")), "boom"),
    ("a Status", lambda: fwk.SUCCESS, "it returned Status, not PostFilterResult"),
)
def test_a_post_filter_that_goes_wrong_fails_the_cycle_in_its_own_name(answer: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        post_filter(Answers("post_filter", answer))  # type: ignore[arg-type]

    assert (caught.value.plugin, without_place(str(caught.value))) == (
        "Answers",
        f'running PostFilter plugin "Answers": {message}',
    )
