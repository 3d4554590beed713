"""Requests that take long are worked out beside the event loop, and come to the same as if they had taken no time."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from extender.cluster.api_resources import NAMESPACES, PODS
from extender.cluster.kube_api import LONG_SELECTOR, KubeApi
from extender.cluster.registry.long_writes import LONG, MAX_ATTEMPTS
from extender.cluster.requests.request_info import Request
from extender.cluster.responses.response import Response
from extender.cluster.store.list_pages import LONG_TABLE
from tests.extender.cluster.asking import PODS_PATH, add_pod, ask, make_api, pod

MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def long_pod(name: str, **labels: str) -> dict[str, Any]:
    return pod(
        name, labels=labels, tolerations=[{"key": f"key-{place}", "operator": "Exists"} for place in range(LONG // 20)]
    )


async def respond(
    api: KubeApi, method: str, url: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
) -> tuple[int, Any]:
    split = urlsplit(url)
    raw = b"" if body is None else orjson.dumps(body)
    answer = await api.respond(
        Request(method, split.path, parse_qs(split.query), {"content-type": content_type, "accept": accept}, raw)
    )
    assert isinstance(answer, Response)
    return answer.status, orjson.loads(answer.body)


def label(api: KubeApi, name: str, **labels: str) -> None:
    ask(api, "PATCH", f"{PODS_PATH}/{name}", {"metadata": {"labels": labels}}, content_type=MERGE)


def labels_of(api: KubeApi, name: str) -> dict[str, str]:
    labels: dict[str, str] = api.registry.get(PODS, "default", name)["metadata"]["labels"]
    return labels


def patch_long_pod(api: KubeApi, **labels: str) -> Awaitable[tuple[int, Any]]:
    return respond(api, "PATCH", f"{PODS_PATH}/long", {"metadata": {"labels": labels}}, content_type=MERGE)


MANY_LABELS = ",".join(f"app!=app-{place}" for place in range(LONG_SELECTOR // 10))

LONG_REQUESTS: dict[str, Callable[[KubeApi], Awaitable[tuple[int, Any]]]] = {
    "a long pod is created": lambda api: respond(api, "POST", PODS_PATH, long_pod("another")),
    "a long pod is replaced": lambda api: respond(api, "PUT", f"{PODS_PATH}/long", long_pod("long", is_new="yes")),
    "a little of a long pod is patched": lambda api: patch_long_pod(api, is_new="yes"),
    "many pods are deleted": lambda api: respond(api, "DELETE", PODS_PATH),
    "pods are listed by a long selector": lambda api: respond(api, "GET", f"{PODS_PATH}?labelSelector={MANY_LABELS}"),
    "pods that a long selector selects are deleted": lambda api: respond(
        api, "DELETE", f"{PODS_PATH}?labelSelector={MANY_LABELS}"
    ),
    "many pods are listed as a table": lambda api: respond(api, "GET", "/api/v1/pods", accept=TABLE),
}


@pytest.mark.parametrize("request_it", LONG_REQUESTS.values(), ids=LONG_REQUESTS)
def test_others_are_answered_before_a_long_request(request_it: Callable[[KubeApi], Awaitable[tuple[int, Any]]]) -> None:
    async def story() -> tuple[list[str], int]:
        api, answered = make_api(), []
        api.registry.create(PODS, "default", long_pod("long"))
        for place in range(LONG_TABLE):
            add_pod(api, f"pod-{place}")

        async def ask_and_tell(who: str, answer: Awaitable[tuple[int, Any]]) -> int:
            code, _ = await answer
            answered.append(who)
            return code

        long, _ = await asyncio.gather(
            ask_and_tell("long", request_it(api)),
            ask_and_tell("short", respond(api, "GET", "/api/v1/namespaces/default")),
        )
        return answered, long

    answered, code = asyncio.run(story())

    assert answered == ["short", "long"]
    assert code in (200, 201)


def test_the_answer_to_a_long_write_has_the_version_that_was_stored() -> None:
    async def story() -> tuple[Any, Any]:
        api = make_api()
        creating = asyncio.create_task(respond(api, "POST", PODS_PATH, long_pod("long")))
        await asyncio.sleep(0)
        add_pod(api, "written-meanwhile")
        _, created = await creating
        return created, api.registry.get(PODS, "default", "long")

    created, stored = asyncio.run(story())

    assert created == stored


def test_what_others_write_meanwhile_is_not_lost() -> None:
    async def story() -> tuple[int, dict[str, str]]:
        api = make_api()
        api.registry.create(PODS, "default", long_pod("long"))
        patching = asyncio.ensure_future(patch_long_pod(api, first="yes"))
        await asyncio.sleep(0)
        label(api, "long", second="yes")
        code, _ = await patching
        return code, labels_of(api, "long")

    code, labels = asyncio.run(story())

    assert code == 200
    assert labels == {"first": "yes", "second": "yes"}


def test_a_pod_that_others_write_all_the_time_is_a_conflict() -> None:
    async def story() -> tuple[int, int]:
        api, num_writes = make_api(), 0
        api.registry.create(PODS, "default", long_pod("long"))
        patching = asyncio.ensure_future(patch_long_pod(api, first="yes"))
        while not patching.done():
            num_writes += 1
            label(api, "long", second=str(num_writes))
            await asyncio.sleep(0)
        return (await patching)[0], num_writes

    code, num_writes = asyncio.run(story())

    assert code == 409
    assert num_writes >= MAX_ATTEMPTS


def test_a_long_pod_is_not_created_in_a_namespace_that_is_deleted_meanwhile() -> None:
    async def story() -> int:
        api = make_api(namespaces=("default", "other"))
        creating = asyncio.create_task(respond(api, "POST", "/api/v1/namespaces/other/pods", long_pod("long")))
        await asyncio.sleep(0)
        api.registry.store.remove(NAMESPACES, "", "other")
        return (await creating)[0]

    assert asyncio.run(story()) == 404


def test_of_two_long_pods_with_one_name_one_is_created() -> None:
    async def story() -> list[int]:
        api = make_api()
        return sorted(
            [
                code
                for code, _ in await asyncio.gather(*(respond(api, "POST", PODS_PATH, long_pod("long")) for _ in "ab"))
            ]
        )

    assert asyncio.run(story()) == [201, 409]


def test_a_default_priority_class_that_comes_meanwhile_counts() -> None:
    async def story() -> Any:
        api = make_api()
        creating = asyncio.create_task(respond(api, "POST", PODS_PATH, long_pod("long")))
        await asyncio.sleep(0)
        ask(
            api,
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
        )
        return (await creating)[1]["spec"]

    spec = asyncio.run(story())

    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


def test_a_pod_that_is_too_long_to_store_is_refused() -> None:
    body = pod(
        "long", tolerations=[{"key": f"key-{place}-{'x' * 40}", "operator": "Exists"} for place in range(20_000)]
    )

    code, refusal = asyncio.run(respond(make_api(), "POST", PODS_PATH, body))

    assert (code, refusal["message"]) == (500, "etcdserver: request is too large")


def test_a_long_write_leaves_nothing_to_the_garbage_collector() -> None:
    """
    A cycle around the thousands of parts of a long object would make each collection take long.
    """
    spread = [
        {"maxSkew": 1, "topologyKey": f"k{place}", "labelSelector": {"matchLabels": {"a": "b"}}}
        for place in range(3000)
    ]
    long = pod("long", topologySpreadConstraints=[{**each, "whenUnsatisfiable": "DoNotSchedule"} for each in spread])
    gc.collect()
    gc.disable()
    try:
        code, _ = asyncio.run(respond(make_api(), "POST", PODS_PATH, long))
        left = gc.collect()
    finally:
        gc.enable()

    assert code == 201
    assert left < len(spread)


def test_a_deleted_object_is_shown_as_a_table_like_any_other() -> None:
    api = make_api()
    add_pod(api, "web", nodeName="n1")

    _, table = ask(api, "DELETE", f"{PODS_PATH}/web", {"gracePeriodSeconds": 5}, accept=f"{TABLE},application/json")

    assert [row["cells"][0] for row in table["rows"]] == ["web"]
    assert table["rows"][0]["cells"][2] == "Terminating"
