"""What a pod asks for, as component-helpers and the scheduler's plugins work it out."""

import itertools
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import Quantity
from extender.values.objects.resource_amounts import (
    Resources,
    assigned_requests,
    balanced_scorer_requests,
    filter_requests,
    fit_scorer_requests,
    pod_limits,
    pod_requests,
)
from tests.kit.many_cases import each_case
from tests.parity.cases import component_cases

PodJson = dict[str, Any]


@each_case(lambda: component_cases("requests"))
def test_requests(case: dict[str, Any]) -> None:
    """Each of the views on a pod's requests has the same numbers."""
    pod, expected = case["input"]["pod"], case["expect"]

    answers = (answer(reading, expected) for reading in readings(pod))

    assert expected in answers


def readings(pod: PodJson) -> Iterator["Reading"]:
    """What was given to upstream, as far as the recorded pod tells: empty `resources` are left out of it, so any that
    is missing from a status may have been there and empty, which counts.
    """
    places = [
        status
        for kind in ("containerStatuses", "initContainerStatuses")
        for status in pod.get("status", {}).get(kind, [])
    ]
    places += [pod["status"]] if "status" in pod else []
    unsure = [index for index, place in enumerate(places) if "resources" not in place]
    for presences in itertools.product([False, True], repeat=len(unsure)):
        variant = deepcopy(pod)
        status = variant.get("status", {})
        statuses = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", []), status]
        for index, present in zip(unsure, presences, strict=True):
            if present:
                statuses[index]["resources"] = {}
        whole, overhead = variant["spec"].get("resources", {}), variant["spec"].get("overhead", {})
        shared = [kind for kind in ("requests", "limits") if "memory" in whole.get(kind, {}) and "memory" in overhead]
        for grown in itertools.product([False, True], repeat=len(shared)):
            yield Reading(variant, tuple(itertools.compress(shared, grown)))


class Reading:
    """The pod as it was at each question. The memory of its pod-level `grown` lists was less than recorded: upstream
    adds overhead to it inside the pod object, whenever it had a binary fraction (a big decimal is shared, not copied),
    and the pod was recorded after the last question. We do not copy that.
    """

    def __init__(self, pod: PodJson, grown: tuple[str, ...]) -> None:
        self._pod = pod
        self._grown = grown

    def before(self, answers_to_come: int) -> Pod:
        pod = deepcopy(self._pod)
        for kind in self._grown:
            amounts, overhead = pod["spec"]["resources"][kind], Quantity.parse(pod["spec"]["overhead"]["memory"])
            memory = Quantity.parse(amounts["memory"])
            for _ in range(answers_to_come):
                memory -= overhead
            amounts["memory"] = str(memory)
        return convert(Pod, pod)


def answer(reading: Reading, expected: dict[str, Any]) -> dict[str, Any]:
    """The views in the order in which they were asked for. Limits were asked for once, the balanced scorer once per
    resource.
    """
    balanced = sorted(expected["balancedScorer"], key=("cpu", "memory").__contains__, reverse=True)
    num_balanced = len(balanced)
    assigned, milli_cpu, memory = assigned_requests(reading.before(num_balanced + 4))
    return {
        "nodeInfo": described(assigned),
        "non0CPU": milli_cpu,
        "non0Mem": memory,
        "podRequests": as_text(pod_requests(reading.before(num_balanced + 3), use_status=True)),
        "podRequestsSpecOnly": as_text(pod_requests(reading.before(num_balanced + 2), use_status=False)),
        "podLimits": as_text(pod_limits(reading.before(1))),
        "fit": described(filter_requests(reading.before(num_balanced + 1))),
        "fitScorer": {name: fit_scorer_requests(reading.before(0), [name])[0] for name in expected["fitScorer"]},
        "balancedScorer": {
            name: balanced_scorer_requests(reading.before(num_balanced - position), [name])[0]
            for position, name in enumerate(balanced)
        },
    }


def as_text(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def described(resources: Resources) -> dict[str, Any]:
    return {
        "milliCPU": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeralStorage": resources.ephemeral_storage,
        "scalar": dict(resources.scalar),
    }
