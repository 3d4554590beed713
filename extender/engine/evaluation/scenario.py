"""Scenarios: a pod and a cluster as plain values, evaluated by themselves: the input of `reprieve evaluate` and POST
/v1/evaluate.
"""

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.as_json import answer
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import closed_at_the_end
from extender.engine.runtime.nominations import Nominations
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects import decoding
from extender.values.objects.cluster import ClusterState, identified
from extender.values.objects.decoding import DecodeError
from extender.values.objects.pod import Pod


async def evaluate_scenario(scenario: Mapping[str, Any], configuration: Configuration) -> dict[str, Any]:
    """Returns everything that the scheduler would find out about `scenario["pod"]` in the scenario's cluster.

    Arguments:
        scenario: `pod`, and optionally `objects`, `config`, `nominated` and `id`.
        configuration: the one for scenarios without `config`.

    Raises:
        DecodeError: the scenario has the wrong form; the message contains the place.
        ConfigErrors: its configuration is wrong.
    """
    pod = identified(decoding.convert(Pod, _member(scenario, "pod", dict, "pod is required")))
    state = ClusterState.decode(_member(scenario, "objects", dict))
    cluster = Cluster.of(state)
    if scenario.get("config") is not None:
        configuration = load(msgspec.json.encode(_member(scenario, "config", dict)), configuration.feature_gates)
    frameworks = Registry(IN_TREE).make_frameworks(
        configuration, random.Random(0), live=cluster.cache, is_exhaustive=True
    )
    with closed_at_the_end(frameworks):
        framework = frameworks.get(pod.scheduler_name)
        nominations = Nominations(cluster.nominees(frameworks, _nominated(scenario)))
        if cluster.unreadable:
            raise DecodeError("; ".join(f"pod {key}: {why}" for key, why in cluster.unreadable.values()))
        snapshot = cluster.cache.update_snapshot()
        if framework is None:
            evaluation = Evaluation(snapshot, error=f"profile not found for scheduler name {pod.scheduler_name!r:.260}")
        else:
            evaluation = await evaluate(Cycle(framework, snapshot, pod, nominations))
        result = answer(evaluation)
    return {"id": scenario["id"], **result} if "id" in scenario else result


def _nominated(scenario: Mapping[str, Any]) -> list[tuple[Pod, str]]:
    entries = _member(scenario, "nominated", list)
    found: list[tuple[Pod, str]] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("nodeName"), str):
            raise DecodeError(f"nominated[{place}]: expected a pod and a nodeName")
        found.append((identified(decoding.convert(Pod, entry.get("pod"))), entry["nodeName"]))
    return found


def _member(scenario: Mapping[str, Any], name: str, kind: type, missing: str = "") -> Any:
    value = scenario.get(name)
    if value is None:
        if missing:
            raise DecodeError(missing)
        return kind()
    if not isinstance(value, kind):
        raise DecodeError(f"{name}: expected {'an object' if kind is dict else 'a list'}")
    return value
