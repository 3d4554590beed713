"""Who is tried again, and after what. Upstream: test/integration/scheduler/queueing, rescheduling_test.go, filters
(v1.36.2).

Not told: TestCoreResourceEnqueueWithoutQueueingHints (hints cannot be turned off), the cases of GangScheduling and pod
groups (behind gates that are off), TestCustomResourceEnqueue (plugins register for the kinds of `EventResource`). Every
hint, event by event: tests/extender/engine/plugins/test_hints.py and test_storage_hints.py.
"""

import httpx
import pytest

from extender.cluster.api_resources import NODES, PERSISTENT_VOLUME_CLAIMS, Object
from extender.engine import framework as fwk
from tests.kit.objects import is_binding, node, pod, priority_class, refusal
from tests.stories.cluster_changes import (
    Happens,
    allocatable,
    changed_node,
    changed_pod,
    gone,
    labels,
    new_node,
    new_pod,
    spec,
    tolerates,
)
from tests.stories.plugins import WAIT, filtering, gating, permitting, reserving
from tests.stories.scene import a_scene

LARGER = changed_node("n", allocatable(cpu="4"), subresource="status")
TAINT = {"key": "broken", "effect": "NoSchedule"}


def port(number: int) -> Object:
    return {"ports": [{"containerPort": 80, "hostPort": number}]}


def near(**wanted: str) -> Object:
    term = {"labelSelector": {"matchLabels": wanted}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def away_from(**minded: str) -> Object:
    term = {"labelSelector": {"matchLabels": minded}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str) -> list[Object]:
    selector = {"matchLabels": {"app": "spread"}}
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def claim(name: str) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": "", "volumeName": "pv"},
    }  # fmt: skip


def volume(claim: str) -> list[Object]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


FULL = [pod("full", "2")]
ON_N = {"nodeName": "n"}


@pytest.mark.parametrize(
    ("there", "waits", "by", "happens", "is_tried"),
    [
        # NodeAffinity
        pytest.param(
            [node("n")], pod("p", nodeSelector={"zone": "b"}), "NodeAffinity", changed_node("n", labels(zone="b")), True,
            id="NodeAffinity: the label comes",
        ),
        pytest.param(
            [node("n")], pod("p", nodeSelector={"zone": "b"}), "NodeAffinity", changed_node("n", labels(zone="c")), False,
            id="NodeAffinity: another label comes",
        ),
        pytest.param(
            [node("n")], pod("p", nodeSelector={"zone": "b"}), "NodeAffinity", new_node("m", labels={"zone": "b"}), True,
            id="NodeAffinity: a node with the label comes",
        ),
        pytest.param(
            [node("n")], pod("p", nodeSelector={"zone": "b"}), "NodeAffinity", new_node("m"), False,
            id="NodeAffinity: a node without the label comes",
        ),
        pytest.param(
            [node("n")], pod("p", nodeSelector={"zone": "b"}), "NodeAffinity", LARGER, False,
            id="NodeAffinity: the node gets larger",
        ),
        # TaintToleration
        pytest.param(
            [node("n", taints=[TAINT])], pod("p"), "TaintToleration", changed_node("n", spec(taints=[])), True,
            id="TaintToleration: the taint goes",
        ),
        pytest.param(
            [node("n", taints=[TAINT])], pod("p"), "TaintToleration", changed_node("n", spec(taints=[{**TAINT, "key": "other"}])), False,
            id="TaintToleration: another taint comes instead",
        ),
        pytest.param(
            [node("n", taints=[TAINT])], pod("p"), "TaintToleration",
            changed_pod("p", tolerates("broken")), True,
            id="TaintToleration: the pod tolerates it",
        ),
        pytest.param(
            [node("n", taints=[TAINT])], pod("p"), "TaintToleration", changed_pod("p", labels(app="x")), False,
            id="TaintToleration: the pod gets a label",
        ),
        # NodeUnschedulable
        pytest.param(
            [node("n", unschedulable=True)], pod("p"), "NodeUnschedulable", changed_node("n", spec(unschedulable=False)), True,
            id="NodeUnschedulable: the cordon is lifted",
        ),
        pytest.param(
            [node("n", unschedulable=True)], pod("p"), "NodeUnschedulable", new_node("m", unschedulable=True), False,
            id="NodeUnschedulable: another cordoned node comes",
        ),
        # NodeResourcesFit
        pytest.param([node("n"), *FULL], pod("p"), "NodeResourcesFit", gone("full"), True, id="NodeResourcesFit: room is made"),
        pytest.param([node("n")], pod("p", "3"), "NodeResourcesFit", new_node("m", "4"), True, id="NodeResourcesFit: a large node comes"),
        pytest.param([node("n")], pod("p", "3"), "NodeResourcesFit", new_node("m", "2"), False, id="NodeResourcesFit: a small node comes"),
        pytest.param(
            [node("n")], pod("p", "3"), "NodeResourcesFit", LARGER, True,
            id="NodeResourcesFit: the node gets large enough",
        ),
        pytest.param(
            [node("n")], pod("p", "3"), "NodeResourcesFit", changed_node("n", allocatable(cpu="2500m"), subresource="status"), False,
            id="NodeResourcesFit: the node gets larger, but not enough",
        ),
        pytest.param(
            [node("n")], pod("p", "3"), "NodeResourcesFit", changed_node("n", labels(zone="b")), False,
            id="NodeResourcesFit: the node gets a label",
        ),
        pytest.param(
            [node("n")], pod("p", "3"), "NodeResourcesFit", changed_pod("p", labels(app="x")), False,
            id="NodeResourcesFit: the pod gets a label",
        ),
        # NodePorts
        pytest.param(
            [node("n"), pod("q", container=port(80))], pod("p", container=port(80)), "NodePorts", gone("q"), True,
            id="NodePorts: the port is free",
        ),
        pytest.param(
            [node("n"), pod("q", "100m", container=port(80)), pod("r", "100m", container=port(81))],
            pod("p", "100m", container=port(80)), "NodePorts", gone("r"), False,
            id="NodePorts: another port is free",
        ),
        # InterPodAffinity
        pytest.param(
            [node("n")], pod("p", affinity=near(app="db")), "InterPodAffinity", new_pod("db", "100m", labels={"app": "db"}), True,
            id="InterPodAffinity: the pod that it wants comes",
        ),
        pytest.param(
            [node("n")], pod("p", affinity=near(app="db")), "InterPodAffinity", new_pod("web", "100m", labels={"app": "web"}), False,
            id="InterPodAffinity: another pod comes",
        ),
        pytest.param(
            [node("n"), pod("db", "100m", labels={"app": "web"})], pod("p", affinity=near(app="db")), "InterPodAffinity",
            changed_pod("db", labels(app="db")), True,
            id="InterPodAffinity: a pod becomes the one that it wants",
        ),
        pytest.param(
            [node("n"), pod("db", "100m", labels={"app": "db"})], pod("p", affinity=away_from(app="db")), "InterPodAffinity",
            gone("db"), True,
            id="InterPodAffinity: the pod that it refuses goes",
        ),
        pytest.param(
            [node("n"), pod("db", "100m", labels={"app": "db"}), pod("web", "100m")],
            pod("p", affinity=away_from(app="db")), "InterPodAffinity", gone("web"), False,
            id="InterPodAffinity: another pod goes",
        ),
        pytest.param(
            [node("n"), pod("db", "100m", labels={"app": "db"}, affinity=away_from(app="p"))],
            pod("p", labels={"app": "p"}), "InterPodAffinity", gone("db"), True,
            id="InterPodAffinity: the pod that refuses it goes",
        ),
        # PodTopologySpread
        pytest.param(
            [node("n", labels={"zone": "a"}), pod("q", "100m", labels={"app": "spread"}), node("m", "100m", labels={"zone": "b"})],
            pod("p", "200m", labels={"app": "spread"}, topologySpreadConstraints=spread("zone")), "PodTopologySpread", gone("q"), True,
            id="PodTopologySpread: a pod of the crowded zone goes",
        ),
        pytest.param(
            [node("n")], pod("p", labels={"app": "spread"}, topologySpreadConstraints=spread("zone")), "PodTopologySpread",
            changed_node("n", labels(zone="a")), True,
            id="PodTopologySpread: the node gets a zone",
        ),
        pytest.param(
            [node("n")], pod("p", labels={"app": "spread"}, topologySpreadConstraints=spread("zone")), "PodTopologySpread",
            changed_node("n", labels(rack="a")), False,
            id="PodTopologySpread: the node gets another label",
        ),
        # VolumeRestrictions, the first that looks at claims
        pytest.param(
            [node("n")], pod("p", volumes=volume("data")), "VolumeRestrictions",
            lambda scene: scene.api.create(PERSISTENT_VOLUME_CLAIMS, "default", claim("data")), True,
            id="VolumeRestrictions: the claim comes",
        ),
        pytest.param(
            [node("n")], pod("p", volumes=volume("data")), "VolumeRestrictions",
            lambda scene: scene.api.create(PERSISTENT_VOLUME_CLAIMS, "default", claim("other")), False,
            id="VolumeRestrictions: another claim comes",
        ),
    ],
)  # fmt: skip
@pytest.mark.anywhere
async def test_a_refused_pod_is_tried_again_when_that_may_help_and_only_then(
    there: list[Object], waits: Object, by: str, happens: Happens, is_tried: bool
) -> None:
    """TestCoreResourceEnqueue: the half in which nothing happens is what catches hot loops."""
    async with a_scene(*(each for each in there if each["kind"] == "Node")) as scene:
        await scene.has(*(each for each in there if each["kind"] == "Pod"))
        await scene.has(waits)
        assert scene.waits_in("p") == "unschedulable"
        assert by in scene.refused_by("p")
        before = scene.attempts("p")

        happens(scene)
        await scene.passes(15)

        assert (scene.node_of("p") != "" or scene.attempts("p") > before) is is_tried


# TestSchedulingGates, four cases.


@pytest.mark.anywhere
async def test_gated_pod_is_not_tried_and_has_no_events() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}, {"name": "two"}]), within=400)

        assert (scene.waits_in("p"), scene.attempts("p"), scene.events("p")) == ("gated", 0, [])
        condition = scene.condition("p")
        assert condition is not None
        assert condition[:2] == ("False", "SchedulingGated")


@pytest.mark.anywhere
async def test_a_pod_with_one_gate_left_stays_gated() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}, {"name": "two"}]))
        await scene.changes("p", spec(schedulingGates=[{"name": "two"}]))

        assert (scene.waits_in("p"), scene.attempts("p")) == ("gated", 0)


@pytest.mark.anywhere
async def test_a_label_opens_no_gate() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}]))
        await scene.changes("p", labels(app="x"))

        assert (scene.waits_in("p"), scene.attempts("p")) == ("gated", 0)


@pytest.mark.over_a_socket
async def test_a_pod_whose_gates_are_gone_is_scheduled() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}]))
        await scene.changes("p", spec(schedulingGates=[]))

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_freed_room_goes_to_the_pod_whose_gates_are_gone() -> None:
    async with a_scene(node("n", pods="1")) as scene:
        await scene.has(*(pod(name, schedulingGates=[{"name": name}]) for name in ("p", "q")), pod("free"))
        assert scene.node_of("free") == "n"

        await scene.changes("p", spec(schedulingGates=[]))
        assert scene.waits_in("p") == "unschedulable"
        await scene.loses("free", at_once=True, within=10)

        assert (scene.node_of("p"), scene.waits_in("q")) == ("n", "gated")


@pytest.mark.anywhere
async def test_a_plugin_that_gates_is_only_asked_after_events_that_it_registered_for() -> None:
    """TestPreEnqueuePlugin, TestPreEnqueuePluginEventsToRegister."""
    is_open: list[bool] = []
    asked: list[str] = []

    def says(each: fwk.Pod) -> fwk.Status:
        asked.append(each.name)
        return fwk.SUCCESS if is_open else fwk.unschedulable("closed")

    on_nodes = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]
    async with a_scene(node("n"), plugins=[gating(says, events=on_nodes)]) as scene:
        await scene.has(pod("p"))
        is_open.append(True)
        before = len(asked)
        await scene.changes("n", labels(zone="a"), resource=NODES, within=30)
        assert (scene.waits_in("p"), len(asked)) == ("gated", before)

        await scene.has(node("m"))

        assert scene.node_of("p") != ""


# Bindings that fail.


@pytest.mark.anywhere
async def test_a_pod_whose_binding_fails_is_bound_by_another_attempt() -> None:
    """TestRequeueByBindFailure: it waits for nothing but the end of its pause."""
    refused: list[str] = []

    def refuses(request: httpx.Request) -> httpx.Response | None:
        if is_binding(request) and not refused:
            refused.append(request.url.path)
            return refusal(403, "Forbidden", "not now")
        return None

    async with a_scene(node("n"), interfere=refuses) as scene:
        await scene.has(pod("p"), within=0.2)

        assert scene.waits_in("p") == "error backoff"
        assert scene.condition("p") == ("False", "SchedulerError", 'running Bind plugin "DefaultBinder": not now')

        await scene.passes(5)

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_pods_that_pause_need_not_wait_when_there_is_nothing_else_to_do() -> None:
    """TestPopFromBackoffQWhenActiveQEmpty."""
    async with a_scene(node("n"), plugins=[]) as scene:
        await scene.has(pod("p", nodeSelector={"zone": "a"}), within=0.1)
        assert scene.waits_in("p") == "unschedulable"

        await scene.changes("n", labels(zone="a"), resource=NODES, within=0.1)

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_pods_that_failed_wait_until_their_pause_is_over_though_there_is_nothing_else_to_do() -> None:
    """TestPopFromBackoffQWhenActiveQEmpty: never from the error queue."""
    fails = [True]

    def says(each: fwk.Pod, _: fwk.NodeInfo) -> fwk.Status:
        return fwk.error("out of order") if fails else fwk.SUCCESS

    async with a_scene(node("n"), plugins=[filtering(says)]) as scene:
        await scene.has(pod("p"), within=0.1)
        assert scene.waits_in("p") == "error backoff"
        assert scene.condition("p") == ("False", "SchedulerError", 'running "Filtering" filter plugin: out of order')
        fails.clear()

        await scene.passes(0.5)
        assert scene.node_of("p") == ""

        await scene.passes(3)
        assert scene.node_of("p") == "n"


@pytest.mark.parametrize("where", ["Reserving", "Permitting"])
@pytest.mark.parametrize(
    "code", [fwk.Code.UNSCHEDULABLE, fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, fwk.Code.ERROR, fwk.Code.PENDING], ids=str
)
@pytest.mark.anywhere
async def test_late_refusal_waits_for_an_event_and_late_error_is_retried_without_one(
    where: str, code: fwk.Code
) -> None:
    """TestReScheduling, six cases: the refusals of Reserve and of Permit, and their errors."""
    says = [fwk.Status(code, ("not now",))]
    events = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]

    def answer() -> fwk.Status:
        return says[0] if says else fwk.SUCCESS

    plugin = (
        reserving(lambda _: answer(), events=events)
        if where == "Reserving"
        else permitting(lambda *_: (answer(), 0), events=events)
    )
    async with a_scene(node("n"), plugins=[plugin]) as scene:
        await scene.has(pod("p"), within=0.2)
        if code is fwk.Code.ERROR:
            point = where.removesuffix("ing").replace("Reserv", "Reserve").replace("Permitt", "Permit")
            assert scene.condition("p") == ("False", "SchedulerError", f'running {point} plugin "{where}": not now')
            assert scene.waits_in("p") == "error backoff"
        else:
            assert scene.condition("p") == ("False", "Unschedulable", "0/1 nodes are available: 1 not now.")
            assert (scene.waits_in("p"), scene.refused_by("p")) == ("unschedulable", {where})
        assert not scene.is_assumed("p")
        says.clear()

        # What has nothing to do with it, though it is room that gets free.
        await scene.has(pod("other", "100m"))
        await scene.loses("other", within=25)
        assert (scene.node_of("p") != "") is (code is fwk.Code.ERROR)

        await scene.has(node("m"))

        assert scene.node_of("p") != ""


@pytest.mark.anywhere
async def test_room_of_a_pod_rejected_at_permit_is_free_for_others() -> None:
    """TestReScheduling, Permit rejects after a while. The end of the promise alone would be no news to a pod of higher
    priority.
    """
    events = [fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE)]
    handles: list[fwk.Handle] = []

    def says(each: fwk.Pod, handle: fwk.Handle) -> tuple[fwk.Status, float]:
        handles.append(handle)
        return (WAIT, 600) if each.name == "held" else (fwk.SUCCESS, 0)

    patient = priority_class("patient", 1000, preemptionPolicy="Never")
    async with a_scene(node("n"), patient, plugins=[permitting(says, events=events)]) as scene:
        await scene.has(pod("held", "1500m"))
        await scene.has(pod("other", "1500m", "patient"))
        assert scene.waits_in("other") == "unschedulable"

        (waiting,) = handles[0].waiting_pods
        assert waiting.reject("Permitting", "not now")
        await scene.passes(15)

        assert scene.node_of("other") == "n"
        assert scene.node_of("held") == ""
        assert ("FailedScheduling", "0/1 nodes are available: 1 not now.") in scene.events("held")


async def test_a_pod_that_waits_too_long_is_tried_without_any_event() -> None:
    """TestHighPriorityFlushUnschedulablePodsLeftover, whole: five minutes."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", "3"), within=280)
        assert scene.attempts("p") == 1

        await scene.passes(60)

        assert scene.attempts("p") == 2


async def test_a_pod_that_cannot_be_scheduled_is_written_about_once() -> None:
    """TestUpdatePodStatus: the same refusal again changes nothing on the API server."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", "3"))
        since = scene.now
        await scene.changes("n", allocatable(cpu="2900m"), resource=NODES, subresource="status", within=320)
        await scene.has(node("m", "100m"), within=320)

        assert scene.attempts("p") > 1
        changed = [each for each in scene.history(since) if each["metadata"]["name"] == "p"]
        messages = [each["status"]["conditions"][0]["message"] for each in changed]
        assert len(messages) == len(set(messages))
