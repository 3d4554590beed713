"""What each change of a pod does to the cache, the queue and those who wait.

Upstream: pkg/scheduler/eventhandlers_test.go, TestAddPod, TestUpdatePod, TestDeletePod.
"""

from extender.engine.runtime.demands import DEMANDS
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim
from tests.extender.engine.scheduler.stage import Stage, a_stage

P = make_pod("p").req(cpu="1")
BIG = make_pod("big").req(cpu="2").priority(5)
FIT = "NodeResourcesFit"


def two_nodes() -> Stage:
    stage = a_stage()
    stage.node(make_node("n").capacity(cpu="2"))
    stage.node(make_node("m").capacity(cpu="2"))
    return stage


def on_node(stage: Stage, pod: PodBuilder) -> str:
    cached_pod = stage.world.cluster.cache.pod(pod.obj().uid)
    return cached_pod.spec.node_name if cached_pod is not None else ""


def changed(pod: PodBuilder, version: str) -> Pod:
    built = pod.obj()
    return replaced(built, metadata=replaced(built.metadata, resource_version=version))


async def test_a_pod_without_a_node_is_queued() -> None:
    stage = two_nodes()
    stage.tell(None, P)

    assert stage.is_tried(P)
    assert on_node(stage, P) == ""


async def test_pod_bound_by_another_scheduler_takes_its_room() -> None:
    stage = two_nodes()
    stage.tell(None, P.scheduler_name("other").node("n"))

    assert on_node(stage, P) == "n"
    assert not stage.waits(P)


async def test_a_pod_of_another_scheduler_is_neither_queued_nor_looked_at() -> None:
    stage = two_nodes()
    theirs = P.scheduler_name("other")
    stage.tell(None, theirs)
    stage.tell(theirs, changed(theirs.label(app="x"), "2"))
    stage.tell(theirs, None)

    assert not stage.waits(P)
    assert stage.world.queue.pending_counts()["active"] == 0


async def test_a_finished_pod_is_gone() -> None:
    stage = two_nodes()
    stage.refused(BIG, FIT)
    stage.tell(None, P.node("n"))
    stage.tell(P.node("n"), P.node("n").phase("Succeeded"))

    assert on_node(stage, P) == ""
    assert stage.is_tried(BIG)


async def test_unchanged_version_of_a_pod_is_not_queued_again() -> None:
    """A pod that was tried meanwhile would be queued a second time."""
    stage = two_nodes()
    stage.tell(None, changed(P, "1"))
    info = stage.popped()
    stage.world.queue.done(info.pod.uid)
    stage.tell(changed(P, "1"), changed(P, "1"))

    assert not stage.waits(P)


async def test_a_pod_that_others_bind_leaves_the_queue() -> None:
    stage = two_nodes()
    stage.tell(None, P)
    stage.tell(P, P.node("n"))

    assert not stage.waits(P)
    assert on_node(stage, P) == "n"


async def test_bound_pod_confirms_its_assumption() -> None:
    stage = two_nodes()
    stage.tell(None, P)
    stage.popped()
    stage.world.cluster.assume(P.obj().uid, "n")
    stage.tell(P, P.node("n"))

    assert on_node(stage, P) == "n"
    assert not stage.world.cluster.cache.is_assumed(P.obj())


async def test_a_pod_that_others_bind_elsewhere_is_there_and_not_where_it_was_assumed() -> None:
    stage = two_nodes()
    stage.tell(None, P)
    stage.popped()
    stage.world.cluster.assume(P.obj().uid, "n")
    stage.tell(P, P.node("m"))

    assert on_node(stage, P) == "m"


async def test_an_assumed_pod_that_changes_is_left_alone() -> None:
    stage = two_nodes()
    stage.tell(None, changed(P, "1"))
    stage.world.queue.done(stage.popped().pod.uid)
    stage.world.cluster.assume(P.obj().uid, "n")
    stage.tell(changed(P, "1"), changed(P.nominated_node("n"), "2"))

    assert not stage.waits(P)
    assert stage.world.queue.nominated_pods() == {}
    assert on_node(stage, P) == "n"


async def test_an_assumed_pod_that_goes_makes_room_at_once() -> None:
    """Deleted, or on its way out: in both cases nobody has to wait for its binding to fail."""
    stage = two_nodes()
    for goes in (None, changed(P.terminating(), "2")):
        stage.tell(None, changed(P, "1"))
        stage.world.queue.done(stage.popped().pod.uid)
        stage.world.cluster.assume(P.obj().uid, "n")
        waits = BIG.uid(f"big-{goes is None}").name(f"big-{goes is None}")
        stage.refused(waits, FIT)

        stage.tell(changed(P, "1"), goes)

        assert on_node(stage, P) == ""
        assert stage.is_tried(waits)
        stage.tell(waits, None)


async def test_a_pod_that_waits_for_leave_and_goes_is_refused() -> None:
    """Its room is free once what was kept for it is; that others may look already is said at once."""
    stage = two_nodes()
    stage.tell(None, P)
    stage.popped()
    assumed = stage.world.cluster.assume(P.obj().uid, "n")
    assert assumed is not None
    waiting = stage.world.waiting_pods.add(assumed, {"Hold": 60.0})
    stage.refused(BIG, FIT)

    stage.tell(P, None)

    assert (await waiting.wait()).message == "removed"
    assert stage.is_tried(BIG)


async def test_a_pod_that_goes_leaves_the_queue() -> None:
    stage = two_nodes()
    stage.tell(None, P)
    stage.tell(P, None)

    assert not stage.waits(P)
    assert stage.world.pod_by_key("default/p") is None


async def test_a_pod_that_leaves_a_node_makes_room() -> None:
    stage = two_nodes()
    stage.tell(None, P.node("n"))
    stage.refused(BIG, FIT)
    stage.tell(P.node("n"), None)

    assert on_node(stage, P) == ""
    assert stage.is_tried(BIG)


async def test_a_missed_deletion_of_an_old_state_takes_the_pod_from_its_node() -> None:
    """What was known of the pod last is older than its binding."""
    stage = two_nodes()
    stage.tell(None, P)
    stage.world.queue.done(stage.popped().pod.uid)
    stage.world.cluster.assume(P.obj().uid, "n")
    stage.tell(P, None)

    assert on_node(stage, P) == ""
    assert not stage.waits(P)


async def test_another_pod_of_the_name_is_a_deletion_and_a_new_pod() -> None:
    stage = two_nodes()
    old, new = P.uid("old").node("n"), P.uid("new")
    stage.tell(None, old)
    stage.tell(old, new)

    assert on_node(stage, old) == ""
    assert stage.is_tried(new)


async def test_ended_nomination_requeues_only_pods_that_had_to_respect_it() -> None:
    stage = two_nodes()
    promised = make_pod("promised").req(cpu="2").priority(5).nominated_node("n")
    below, above = BIG.name("below").uid("below").priority(5), BIG.name("above").uid("above").priority(6)
    stage.tell(None, changed(promised, "1"))
    stage.popped()
    stage.refused(below, FIT)
    stage.refused(above, FIT)

    stage.tell(changed(promised, "1"), changed(promised.nominated_node(""), "2"))

    assert stage.is_tried(below)
    assert not stage.is_tried(above)


async def test_deleted_nominated_pod_requeues_pods_that_had_to_respect_it() -> None:
    stage = two_nodes()
    promised = make_pod("promised").req(cpu="2").priority(5).nominated_node("n")
    stage.tell(None, promised)
    stage.refused(BIG, FIT)

    stage.tell(promised, None)

    assert stage.is_tried(BIG)
    assert stage.world.queue.nominated_pods() == {}


async def test_nomination_is_kept_for_queued_pods() -> None:
    stage = two_nodes()
    stage.tell(None, P.nominated_node("n"))
    stage.tell(None, make_pod("gated").nominated_node("n").gate("wait"))
    stage.tell(None, make_pod("theirs").nominated_node("n").scheduler_name("other"))

    nominated = stage.world.queue.nominated_pods()
    assert {node: [pod.name for pod in pods] for node, pods in nominated.items()} == {"n": ["p"]}


async def test_pod_that_demanded_too_much_is_tried_again_when_it_demands_less() -> None:
    stage = two_nodes()
    much, less, more = (P.label(note="x" * size) for size in (80_000, 10, 90_000))
    stage.refused(much, DEMANDS)

    stage.tell(much, changed(more, "2"))
    stage.tell(changed(more, "2"), changed(more, "3"))
    was_tried = stage.is_tried(P)
    stage.tell(changed(more, "3"), changed(less, "4"))

    assert not was_tried
    assert stage.is_tried(P)


async def test_pod_that_demanded_too_much_is_tried_again_when_another_claim_takes_the_name_of_its_own() -> None:
    stage = two_nodes()
    stage.refused(P.claim("data"), DEMANDS)

    stage.handlers.changed(None, PersistentVolumeClaim(metadata=ObjectMeta(name="other", namespace="default")))
    was_tried = stage.is_tried(P)
    stage.handlers.changed(None, PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default")))

    assert not was_tried
    assert stage.is_tried(P)
