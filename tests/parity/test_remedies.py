"""Remedies are true as they are written: who follows the words of one finds that the pod fits, or evicts; in recorded
situations and in random ones.
"""

import asyncio
import random
from functools import cache
from typing import Any

import pytest

from extender.answers.types import Fix
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import Configuration
from tests.kit.many_cases import each_case
from tests.kit.random_scenes import random_scene
from tests.parity.cases import KNOWN
from tests.parity.remedies import ADDED, followed
from tests.parity.test_decisions import all_decision_cases, id_of
from tests.parity.test_explanations import explained

SEED, NUM_CASES = 8, 15
NUM_SCENES, ALL_SCENES = 40, 500


@cache
def refused_cases() -> list[dict[str, Any]]:
    return [
        case
        for case in all_decision_cases()
        if case["expected"].get("fitError")
        and not case["scenario"]["pod"]["spec"].get("nodeName")
        and id_of(case) not in KNOWN
    ]


def some_refused_cases() -> list[dict[str, Any]]:
    return random.Random(SEED).sample(refused_cases(), min(NUM_CASES, len(refused_cases())))


def check(case: dict[str, Any]) -> None:
    _, wrong = _remedies(case["scenario"])
    assert wrong == {}


def _remedies(scenario: dict[str, Any]) -> tuple[int, dict[str, str]]:
    """Returns how many there are, and what is wrong with those that are not true."""
    fixes = explained(scenario).fixes
    return len(fixes), {fix.text: why for fix in fixes if (why := _what_is_wrong(scenario, fix))}


def random_remedies(seeds: range) -> tuple[int, dict[int, dict[str, str]]]:
    """Returns the same for the situations of these seeds."""
    results = {seed: _remedies(random_scene(random.Random(seed))) for seed in seeds}
    return sum(number for number, _ in results.values()), {seed: wrong for seed, (_, wrong) in results.items() if wrong}


def _what_is_wrong(scenario: dict[str, Any], fix: Fix) -> str:
    changed = followed(scenario, fix.text)
    result = asyncio.run(evaluate_scenario(changed, Configuration()))
    if fix.kind == "preemption":
        candidates = (result["preemption"] or {}).get("candidates", {})
        are_as_told = len(candidates) == fix.opens and candidates.keys() >= {*fix.nodes}
        return "" if are_as_told else f"pods are evicted on {sorted(candidates)}, not on {fix.opens}"
    fits = {name for name, status in result["filter"].items() if status["code"] == "Success"}
    if fix.add_like:
        return "" if ADDED in fits else f"it does not fit on the new node: {result['filter'].get(ADDED)}"
    is_as_told = len(fits) == fix.opens and fits >= {*fix.nodes}
    return "" if is_as_told else f"fits on {len(fits)} of {fix.opens}: {sorted(fits)}"


@each_case(some_refused_cases, name_of=id_of)
def test_a_remedy_that_is_followed_to_the_letter_opens_the_nodes_that_it_names(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.slow
@each_case(refused_cases, name_of=id_of)
def test_every_remedy_of_every_recorded_refusal_is_true(case: dict[str, Any]) -> None:
    check(case)


def test_a_remedy_for_a_random_pod_opens_the_nodes_that_it_names() -> None:
    number, wrong = random_remedies(range(NUM_SCENES))

    assert wrong == {}
    assert number > NUM_SCENES // 2


@pytest.mark.slow
def test_every_remedy_for_many_random_pods_is_true() -> None:
    number, wrong = random_remedies(range(NUM_SCENES, ALL_SCENES))

    assert wrong == {}
    assert number > ALL_SCENES // 2
