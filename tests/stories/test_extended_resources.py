"""Pods request extended resources that device classes back, and get devices for them.

Upstream: framework/plugins/dynamicresources, dynamicresources_test.go, extendeddynamicresources_test.go;
test/integration/dra.
"""

import httpx
import pytest

from extender.rules.api_resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, Object
from tests.kit.device_objects import (
    BY_CLASS,
    GPU,
    container,
    device_claim,
    device_class,
    devices,
    plugged,
    wanting,
    with_containers,
)
from tests.kit.objects import node, pod, refusal
from tests.kit.scene import Scene, a_scene
from tests.kit.scene.stages import Interfere
from tests.stories.devices import claims, held_devices, leftover

NOT_ENOUGH = (
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
UNKNOWN = (
    "0/1 nodes are available: 1 Insufficient example.com/gpu. no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def requests(claim: Object) -> dict[str, tuple[str, int]]:
    """Request -> (device class, number of devices)."""
    exactly_by_name = {request["name"]: request["exactly"] for request in claim["spec"]["devices"]["requests"]}
    return {name: (exactly["deviceClassName"], exactly["count"]) for name, exactly in exactly_by_name.items()}


def mappings(scene: Scene, name: str) -> list[tuple[str, str, str]]:
    """(container, resource, request) as the pod's status names them."""
    request_mappings = scene.pod(name)["status"]["extendedResourceClaimStatus"]["requestMappings"]
    return [(mapping["containerName"], mapping["resourceName"], mapping["requestName"]) for mapping in request_mappings]


def why_not(scene: Scene, name: str) -> str:
    condition = scene.condition(name)
    assert condition is not None
    assert condition[:2] == ("False", "Unschedulable")
    return condition[2]


@pytest.mark.parametrize(
    "resource", [pytest.param(GPU, id="that the class names"), pytest.param(BY_CLASS, id="named after the class")]
)
async def test_a_pod_gets_devices_for_an_extended_resource(resource: str) -> None:
    """Through a claim of its own that the scheduler makes, and that the pod's status names."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1", "gpu-2", "gpu-3")) as scene:
        await scene.has(wanting("p", 2, resource))

        (claim,) = claims(scene)
        meta, status = claim["metadata"], scene.pod("p")["status"]["extendedResourceClaimStatus"]
        (owner,) = meta["ownerReferences"]
        assert scene.node_of("p") == "n"
        assert meta["name"].startswith("p-extended-resources-")
        assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", scene.pod("p")["metadata"]["uid"], True)
        assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert requests(claim) == {"container-0-request-1": ("gpu", 2)}
        assert held_devices(scene) == ["gpu-1", "gpu-2"]
        assert [consumer["name"] for consumer in claim["status"]["reservedFor"]] == ["p"]
        assert status["resourceClaimName"] == meta["name"]
        assert mappings(scene, "p") == [("main", resource, "container-0-request-1")]
        assert [reason for reason, _ in scene.events("p")] == ["Scheduled"]


async def test_each_container_has_requests_of_its_own() -> None:
    """
    They are numbered with the init containers first. An init container uses the devices of those that start after it.
    """
    early = container("early", {GPU: 3})
    sidecar = container("sidecar", {GPU: 1}, restartPolicy="Always")
    both = container("both", {GPU: 1, BY_CLASS: 1})
    async with a_scene(node("n"), device_class(), devices("n", *(f"gpu-{number}" for number in range(8)))) as scene:
        await scene.has(with_containers("p", both, container("none", {}), initContainers=[early, sidecar]))

        assert requests(claims(scene)[0]) == {
            "container-0-request-1": ("gpu", 1),  # early needs one more than sidecar and both have
            "container-1-request-1": ("gpu", 1),
            "container-2-request-1": ("gpu", 1),  # deviceclass... comes before example.com
            "container-2-request-2": ("gpu", 1),
        }
        assert mappings(scene, "p") == [
            ("both", BY_CLASS, "container-2-request-1"),
            ("sidecar", GPU, "container-1-request-1"),
            ("both", GPU, "container-2-request-2"),
            ("early", GPU, "container-1-request-1"),
            ("early", GPU, "container-2-request-2"),
            ("early", GPU, "container-0-request-1"),
        ]
        assert len(held_devices(scene)) == 4


async def test_resource_of_a_device_plugin_needs_no_claim() -> None:
    """The node's own amount comes first, even where there are devices."""
    async with a_scene(plugged("n", 1), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("p"))

        assert scene.node_of("p") == "n"
        assert claims(scene) == []
        assert "extendedResourceClaimStatus" not in scene.pod("p")["status"]


async def test_a_node_whose_device_plugin_has_nothing_left_does_not_give_devices() -> None:
    async with a_scene(plugged("n", 1), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("first"), wanting("second"))

        assert "1 Insufficient example.com/gpu" in why_not(scene, "second")


async def test_a_device_plugin_that_offers_zero_leaves_the_resource_to_devices() -> None:
    async with a_scene(plugged("n", 0), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("p"))

        assert (scene.node_of("p"), held_devices(scene)) == ("n", ["gpu-1"])


async def test_a_claim_requests_only_what_the_node_lacks() -> None:
    """One resource is the device plugin's, the other one the driver's."""
    async with a_scene(plugged("n", 1, "example.com/nic"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(with_containers("p", container("main", {GPU: 1, "example.com/nic": 1})))

        assert requests(claims(scene)[0]) == {"container-0-request-1": ("gpu", 1)}


async def test_claims_of_the_pod_are_allocated_beside_what_a_device_plugin_offers() -> None:
    """No claim is made for the device plugin's resource."""
    async with a_scene(plugged("n", 1), device_class(), devices("n", "gpu-1"), device_claim("own")) as scene:
        await scene.has(wanting("p", resourceClaims=[{"name": "own", "resourceClaimName": "own"}]))

        assert scene.node_of("p") == "n"
        assert [claim["metadata"]["name"] for claim in claims(scene)] == ["own"]


async def test_a_pod_goes_where_devices_are_left() -> None:
    async with a_scene(node("a"), node("b"), device_class(), devices("a", "gpu-a"), devices("b", "gpu-b")) as scene:
        await scene.has(wanting("first"), wanting("second"), wanting("third"))

        assert {scene.node_of("first"), scene.node_of("second")} == {"a", "b"}
        assert "2 cannot allocate all claims" in why_not(scene, "third")


async def test_without_a_class_the_resource_is_counted_as_any_other() -> None:
    async with a_scene(node("n"), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("p"))

        assert why_not(scene, "p") == UNKNOWN


# What makes a pod wait, and what ends it.


async def test_a_new_class_that_backs_the_resource_ends_the_wait() -> None:
    async with a_scene(node("n"), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("explicit"))
        await scene.has(device_class())

        assert scene.node_of("explicit") == "n"


async def test_a_class_that_is_changed_to_back_the_resource_ends_the_wait() -> None:
    async with a_scene(node("n"), devices("n", "gpu-1"), device_class(None)) as scene:
        await scene.has(wanting("p"))
        assert why_not(scene, "p") == UNKNOWN

        await scene.changes("gpu", lambda obj: obj["spec"].update(extendedResourceName=GPU), resource=DEVICE_CLASSES)

        assert scene.node_of("p") == "n"


async def test_new_devices_end_the_wait() -> None:
    async with a_scene(node("n"), device_class()) as scene:
        await scene.has(wanting("p"))
        assert why_not(scene, "p") == NOT_ENOUGH

        await scene.has(devices("n", "gpu-1"))

        assert (scene.node_of("p"), held_devices(scene)) == ("n", ["gpu-1"])


async def test_a_pod_that_goes_gives_its_devices_back() -> None:
    """Its claim goes with it."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("first"), wanting("second"))
        assert why_not(scene, "second") == NOT_ENOUGH

        await scene.loses("first")

        (claim,) = claims(scene)
        assert (scene.node_of("second"), held_devices(scene)) == ("n", ["gpu-1"])
        assert claim["metadata"]["name"].startswith("second-extended-resources-")


async def test_a_pod_that_is_done_gives_its_devices_back() -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        done = wanting("first", restartPolicy="Never") | {
            "metadata": {"name": "first", "annotations": {"reprieve.dev/runs-for": "2s"}}
        }
        await scene.has(done, wanting("second"), within=20)

        assert scene.pod("first")["status"]["phase"] == "Succeeded"
        assert (scene.node_of("second"), held_devices(scene)) == ("n", ["gpu-1"])
        assert len(claims(scene)) == 1


async def test_a_device_plugin_that_starts_ends_the_wait() -> None:
    async with a_scene(node("n"), device_class()) as scene:
        await scene.has(wanting("p"))
        await scene.changes(
            "n", lambda obj: obj["status"]["allocatable"].update({GPU: "1"}), resource=NODES, subresource="status"
        )

        assert scene.node_of("p") == "n"
        assert claims(scene) == []


# Preemption.


async def test_no_pod_is_evicted_for_a_device() -> None:
    """As with claims of one's own: whether evicting frees a device is not known before it has been done."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("low", priorityClassName="low"))
        await scene.has(wanting("high", priorityClassName="high"))

        assert scene.node_of("low") == "n"
        assert why_not(scene, "high") == NOT_ENOUGH


async def test_a_pod_that_preempts_for_cpu_gets_its_device() -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(pod("low", "2", "low"))
        await scene.has(wanting("high", priorityClassName="high"), within=40)

        assert (scene.node_of("high"), held_devices(scene)) == ("n", ["gpu-1"])
        assert "low" not in scene.pods()


async def test_a_victim_leaves_its_device_to_others() -> None:
    """It is evicted for its cpu, and its claim goes with it."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("victim", priorityClassName="low"), wanting("waiting", priorityClassName="middle"))
        await scene.has(pod("preemptor", "1900m", "high"), within=60)

        assert scene.node_of("preemptor") == "n"
        assert (scene.node_of("waiting"), held_devices(scene)) == ("n", ["gpu-1"])


# What goes wrong.


async def test_a_claim_of_an_earlier_attempt_is_deleted_and_made_anew() -> None:
    """As after a restart of the scheduler: nobody knows whether its devices still do."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1", "gpu-2"), by_hand=True) as scene:
        await scene.has(wanting("p"))
        leftover(scene, "p")
        await scene.passes(0.1)

        await scene.tries(1)

        assert why_not(scene, "p") == (
            "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of ResourceClaim completed, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert claims(scene) == []
        assert scene.waits_in("p") == "backoff"


async def test_a_scheduler_that_starts_with_a_claim_left_over_schedules_the_pod() -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1")) as scene:
        await scene.has(wanting("p", schedulingGates=[{"name": "example.com/later"}]))
        leftover(scene, "p")
        await scene.changes("p", lambda obj: obj["spec"].update(schedulingGates=[]), within=15)

        (claim,) = claims(scene)
        assert (scene.node_of("p"), held_devices(scene)) == ("n", ["gpu-1"])
        assert claim["metadata"]["name"] != "p-extended-resources-left"


def refusing_once(method: str, ending: str, about: bytes = b"") -> Interfere:
    """An API server that refuses one request about something."""
    refused: list[httpx.Request] = []

    def interfere(request: httpx.Request) -> httpx.Response | None:
        if refused or request.method != method or not request.url.path.endswith(ending) or about not in request.content:
            return None
        refused.append(request)
        return refusal(403, "Forbidden", "not now")

    return interfere


async def test_a_claim_that_can_not_be_created_holds_no_device() -> None:
    async with a_scene(
        node("n"), device_class(), devices("n", "gpu-1"), interfere=refusing_once("POST", "/resourceclaims")
    ) as scene:
        await scene.has(wanting("p"), within=0.5)
        (event,) = scene.events("p")
        assert (
            event[1]
            == 'running PreBind plugin "DynamicResources": create claim for extended resources default/: not now'
        )

        await scene.passes(15)

        assert (scene.node_of("p"), held_devices(scene)) == ("n", ["gpu-1"])


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        pytest.param(
            refusing_once("PATCH", "/pods/p/status", b"extendedResourceClaimStatus"),
            "update pod default/p ExtendedResourceClaimStatus: not now",
            id="its status is not written",
        ),
        pytest.param(refusing_once("POST", "/pods/p/binding"), "not now", id="it is not bound"),
    ],
)
async def test_a_claim_of_a_pod_that_is_not_bound_after_all_is_deleted(refused: Interfere, words: str) -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1"), interfere=refused, by_hand=True) as scene:
        await scene.has(wanting("p"), within=0.1)

        await scene.tries(1)
        await scene.passes(1)

        assert scene.node_of("p") == ""
        assert words in scene.events("p")[-1][1]
        assert scene.api.list(RESOURCE_CLAIMS, "default") == []


async def test_a_device_is_given_once_while_its_claim_is_being_made() -> None:
    """Also in the moment in which only the scheduler knows of the claim."""
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1"), by_hand=True) as scene:
        await scene.has(wanting("first"), wanting("second"), within=0.1)

        await scene.tries(2)
        await scene.passes(1)

        assert sorted([scene.node_of("first"), scene.node_of("second")]) == ["", "n"]
        assert len(claims(scene)) == 1
