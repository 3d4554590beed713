"""What is found of the terms that match a pod is what comparing it with each of them finds."""

import json
import random
from typing import Any

import pytest

from extender.engine.plugins.inter_pod_affinity.existing_terms import ExistingTerms, Incoming
from extender.engine.plugins.inter_pod_affinity.terms import Term, TermWeights, WeightedTerm, terms_of
from extender.engine.snapshot.pod_attributes import AffinityClass
from extender.values.objects.label_selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector

KEYS, VALUES, NAMESPACES = "abc", "xyz", ("one", "two")
OPERATORS = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)


def a_selector(rng: random.Random) -> Selector:
    if rng.random() < 0.1:
        return NOTHING
    requirements = []
    for key in sorted(rng.sample(KEYS, rng.randrange(4))):
        operator = rng.choice(OPERATORS)
        has_values = operator in (Operator.IN, Operator.NOT_IN)
        requirements.append(
            Requirement(key, operator, tuple(rng.sample(VALUES, rng.randint(1, 2))) if has_values else ())
        )
    return Selector(tuple(requirements))


def a_term(rng: random.Random) -> WeightedTerm:
    namespaces = frozenset(rng.sample(NAMESPACES, rng.randrange(3)))
    # Other selectors of namespaces are resolved before.
    return WeightedTerm(
        rng.randint(-9, 9), Term("zone", a_selector(rng), namespaces, rng.choice([NOTHING, EVERYTHING]))
    )


@pytest.mark.parametrize("seed", range(50))
def test_the_sum_is_that_of_the_terms_that_match(seed: int) -> None:
    rng = random.Random(seed)
    terms = [a_term(rng) for _ in range(rng.randrange(12))]
    weights = TermWeights(terms)

    for _ in range(40):
        labels = {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randrange(4))}
        namespace = rng.choice(NAMESPACES)
        expected = sum(weighted.weight for weighted in terms if weighted.term.matches(namespace, labels, {}))

        assert weights.of(namespace, labels) == expected, f"{labels} in {namespace}, seed {seed}"
        assert not expected or weights.wanted is None or not weights.wanted.isdisjoint(labels.items())


def an_excluding_term(rng: random.Random, number: int) -> dict[str, Any]:
    """A term that excludes a label that no other does, and perhaps some others."""
    excluded: list[dict[str, Any]] = [{"key": f"key-{number}", "operator": "DoesNotExist"}]
    excluded += [
        {"key": key, "operator": "NotIn", "values": rng.sample(VALUES, 2)} for key in rng.sample(KEYS, rng.randrange(2))
    ]
    scope: dict[str, Any] = rng.choice([{}, {"namespaces": [rng.choice(NAMESPACES)]}, {"namespaceSelector": {}}])
    return {
        "labelSelector": {"matchExpressions": excluded},
        "topologyKey": rng.choice(["zone", "rack", "nowhere"]),
        **scope,
    }


@pytest.mark.parametrize("seed", range(20))
def test_the_terms_of_a_class_that_only_exclude_labels_are_counted_by_topology_key(seed: int) -> None:
    rng = random.Random(seed)
    number = 200
    required, preferred = ([an_excluding_term(rng, place) for place in range(number)] for _ in range(2))
    anti = {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": rng.randint(1, 9), "podAffinityTerm": term} for term in preferred
        ],
    }
    pods = AffinityClass("one", json.dumps([None, anti]).encode())
    index, terms, keys = ExistingTerms(), terms_of(pods), {"zone", "rack"}
    index.add(pods)

    for _ in range(20):
        labels = {key: rng.choice(VALUES) for key in rng.sample([*KEYS, *(f"key-{n}" for n in range(number))], 5)}
        namespace = rng.choice(NAMESPACES)
        matches = index.matching(Incoming(namespace, frozenset(labels.items()), frozenset()), 1, keys)

        refused = [term.topology_key for term in terms.anti_affinity if term.matches(namespace, labels, {})]
        liked = [weighted for weighted in terms.preferred if weighted.term.matches(namespace, labels, {})]
        of_key = {key: sum(weighted.weight for weighted in liked if weighted.term.topology_key == key) for key in keys}
        assert {row.topology_key: dict(row.numbers)[0] for row in matches.anti_affinity} == {
            key: refused.count(key) for key in keys
        }
        assert {row.topology_key: dict(row.numbers)[0] for row in matches.weights} == of_key
