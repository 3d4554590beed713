"""What is kept of objects: no more than scheduling looks at, and equal parts once."""

import msgspec
import pytest

from extender.client.informers.keeping import LAST_APPLIED, NodeKeeper, PodKeeper, SharedParts, keep_metadata
from extender.values import limits
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import StorageClass


def a_pod(name: str, **spec: object) -> Pod:
    manifest = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"app": "web"},
            "annotations": {"team": "a"},
        },
        "spec": {
            "nodeName": "n1",
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            **spec,
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    }
    return convert(Pod, msgspec.json.decode(msgspec.json.encode(manifest)))


def changed_at(pod: Pod, time: str) -> Pod:
    conditions = [replaced(condition, last_transition_time=time) for condition in pod.status.conditions]
    return replaced(pod, status=replaced(pod.status, conditions=conditions))


def test_pods_with_nodes_share_conditions_that_changed_at_different_times() -> None:
    keep = PodKeeper()

    first, second = (keep(changed_at(a_pod("a"), f"2026-01-01T00:00:0{place}Z")) for place in range(2))

    assert first.status.conditions is second.status.conditions
    assert first == a_pod("a")


def test_a_waiting_pod_keeps_since_when_it_is_refused() -> None:
    waiting = changed_at(a_pod("a", nodeName=""), "2026-01-01T00:00:00Z")

    assert PodKeeper()(waiting).status.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"


def test_a_pod_keeps_all_that_scheduling_looks_at() -> None:
    pod = a_pod("a")

    assert PodKeeper()(pod) == pod


def test_pods_of_one_workload_share_what_they_have_in_common() -> None:
    keep = PodKeeper()
    one, two = keep(a_pod("a")), keep(a_pod("b"))

    assert one.name != two.name
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.spec.node_name is two.spec.node_name
    assert one.labels is two.labels
    assert one.status.conditions is two.status.conditions


def test_pods_that_differ_share_only_the_rest() -> None:
    keep = PodKeeper()
    one, two = keep(a_pod("a")), keep(a_pod("b", containers=[{"name": "c", "resources": {"requests": {"cpu": "2"}}}]))

    assert one.spec.containers[0].resources.requests == {"cpu": "1"}
    assert two.spec.containers[0].resources.requests == {"cpu": "2"}
    assert one.spec.volumes is two.spec.volumes


def test_volumes_that_scheduling_ignores_do_not_make_equal_pods_look_different() -> None:
    """The volume of the service account has a name of its own in each pod."""
    pods = [
        a_pod("same", volumes=[{"name": f"kube-api-access-{end}", "projected": {}}, {"name": "d", "csi": {}}])
        for end in "ab"
    ]
    keep = PodKeeper()

    assert [volume.name for volume in keep(pods[0]).spec.volumes] == ["d"]
    assert keep(pods[0]) == keep(pods[1])


def test_the_copy_that_kubectl_keeps_is_dropped_and_other_annotations_stay() -> None:
    meta = {"name": "x", "annotations": {LAST_APPLIED: "{...}", "team": "a"}}
    kept_objects = [
        PodKeeper()(convert(Pod, {"metadata": meta})),
        NodeKeeper()(convert(Node, {"metadata": meta})),
        keep_metadata(convert(StorageClass, {"metadata": meta, "provisioner": "p"})),
    ]

    assert [obj.metadata.annotations for obj in kept_objects] == [{"team": "a"}] * 3
    assert kept_objects[2].provisioner == "p"


def test_nodes_share_images_and_capacities() -> None:
    def node(name: str) -> Node:
        status = {
            "allocatable": {"cpu": "4"},
            "images": [{"names": ["i:1"], "sizeBytes": 7}, {"names": [f"only-on-{name}"]}],
        }
        return convert(Node, msgspec.json.decode(msgspec.json.encode({"metadata": {"name": name}, "status": status})))

    keep = NodeKeeper()
    one, two = keep(node("n1")), keep(node("n2"))

    assert one == node("n1")
    assert one.status.allocatable is two.status.allocatable
    assert one.status.images[0] is two.status.images[0]
    assert two.status.images[1].names == ["only-on-n2"]


def test_a_table_that_is_full_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever passes through over the months, so much is remembered and no more."""
    monkeypatch.setattr(limits, "SHARED_PARTS", 300)
    strings, parts = SharedParts(), SharedParts()
    first, first_part = "".join(["a", "b"]), ["a"]
    assert (strings(first), parts(first_part)) == (first, first_part)
    for number in range(5):
        strings(f"other {number}")
        parts([number])

    assert strings("".join(["a", "b"])) is not first
    assert parts(["a"]) is not first_part


def test_long_part_is_not_remembered() -> None:
    """A tenant may create one pod of a megabyte after the other, each different."""
    parts = SharedParts()
    first, second = (["a" * limits.SHARED_PART_BYTES], ["a" * limits.SHARED_PART_BYTES])

    assert parts(first) is first
    assert parts(second) is second


@pytest.mark.parametrize(
    ("lengths", "names"),
    [
        pytest.param({"a": 100, "b": 16_000}, {"a", "b"}, id="at the limit"),
        pytest.param({"long": limits.POD_ANNOTATIONS, "card": 5}, {"card"}, id="one long"),
        pytest.param({f"a{number}": 4000 for number in range(60)}, {"a0", "a1", "a2", "a3"}, id="many"),
    ],
)
def test_the_longest_annotations_of_a_pod_with_a_node_are_not_kept(lengths: dict[str, int], names: set[str]) -> None:
    annotations = {name: "x" * length for name, length in lengths.items()}
    pod = a_pod("a")
    pod = replaced(pod, metadata=replaced(pod.metadata, annotations=annotations))
    waiting = replaced(pod, spec=replaced(pod.spec, node_name=""))

    assert PodKeeper()(pod).annotations.keys() == names
    assert PodKeeper()(waiting).annotations == annotations


def test_ports_of_a_pod_with_a_node_that_are_not_the_nodes_are_not_kept() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    pod = PodKeeper()(a_pod("a", containers=[{"name": "c", "ports": ports}]))

    assert [port.host_port for port in pod.spec.containers[0].ports] == [81]
