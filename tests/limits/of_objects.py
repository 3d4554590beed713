"""Objects of the cluster, and the API of the cluster of its own."""

from functools import partial
from typing import Any

import orjson

from extender.engine.preemption.minimal_victims import ANNOTATION, seconds_to_search, why_ignored
from extender.rules.api_resources import PODS
from extender.testing import make_pod, make_pod_group
from extender.values.cel.pod_number import PodNumber
from extender.values.objects.decoding import replaced
from extender.values.objects.quantity import Quantity
from extender.values.objects.resource_amounts import validate_requests
from tests.limits.rows import Filled, Held, words
from tests.reprieve.cluster.api_calls import PODS_PATH, add_pod, ask, make_api, pod


def group(text: str) -> Any:
    pod_group = make_pod_group("g", 1)
    return replaced(pod_group, metadata=replaced(pod_group.metadata, annotations={ANNOTATION: text}))


def posted(body: bytes) -> int:
    return ask(make_api(), "POST", PODS_PATH, body)[0]


def annotated(number: int) -> int:
    """Creates a pod that has so many bytes as it is stored."""
    large_pod = pod("p")
    variable = {"name": "A", "value": "x"}
    large_pod["spec"]["containers"][0]["env"] = [variable]
    api = make_api()
    assert ask(api, "POST", PODS_PATH, large_pod)[0] == 201
    size = len(api.registry.store.read(PODS)[0].body)
    second_api = make_api()
    variable["value"] = "x" * (number - size + 1)
    return ask(second_api, "POST", PODS_PATH, large_pod)[0]


def patched(operations: list[dict[str, Any]]) -> int:
    api = make_api()
    add_pod(api, "p")
    return ask(api, "PATCH", f"{PODS_PATH}/p", operations, content_type="application/json-patch+json")[0]


def copying(number: int) -> int:
    long = "x" * (number // 4 - 2)
    copies = [{"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"}] * 4
    rest = [{"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations/b"}] if number % 4 else []
    adds = [{"op": "add", "path": "/metadata/annotations", "value": {"a": long}}]
    return patched([*adds, *copies, *rest, {"op": "remove", "path": "/metadata/annotations"}])


OBJECTS: dict[str, Filled | Held] = {
    "DEMANDS": Held("tests/extender/engine/runtime/test_demands.py::test_plugins_look_only_at_pods_within_the_limit"),
    "SECONDS_TO_SEARCH": Filled(lambda n: seconds_to_search(group(f"{n}s")), at=1.0, above=1.0),
    "DURATION_CHARACTERS": Filled(lambda n: why_ignored(group("0" * (n - 2) + "1s")), above="is ignored"),
    "QUANTITY_CHARACTERS": Filled(
        lambda n: words(partial(Quantity.parse, "0" * (n - 1) + "1")), above="longer than 64"
    ),
    "QUANTITY_EXPONENT": Filled(lambda n: words(partial(Quantity.parse, f"1e{n}")), above="must be between -30 and 30"),
    "RESOURCE_NAME": Filled(
        lambda n: "[?]" in words(lambda: validate_requests(make_pod("p").req({"r" * n: "wrong"}).obj())),
        at=False,
        above=True,
    ),
    "EXPRESSION_POD_CHARACTERS": Filled(
        lambda n: words(lambda: PodNumber("1.0").of(make_pod("p").annotation(a="x" * (n - 1)).obj())), above="too long"
    ),
    "API_BODY_BYTES": Filled(lambda n: posted(orjson.dumps(pod("p")).ljust(n)), at=201, above=413),
    "API_BODY_DEPTH": Filled(
        lambda n: posted(
            b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]},"x":'
            + b'{"a":' * (n - 1)
            + b"1"
            + b"}" * n
        ),
        at=201,
        above=400,
    ),
    "PATCH_OPERATIONS": Filled(
        lambda n: patched([{"op": "test", "path": "/metadata/name", "value": "p"}] * n), at=200, above=413
    ),
    "PATCH_COPIED_BYTES": Filled(copying, at=200, above=422),
    "OBJECT_BYTES": Filled(annotated, at=201, above=500),
    "STORED_EVENTS": Held("tests/reprieve/cluster/test_event_expiry.py::test_the_oldest_of_very_many_go_sooner"),
}
