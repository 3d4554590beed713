"""What a pod asks for in all, and what makes it."""

from extender.answers.parts import requested, workload_of
from extender.testing.builders import PodBuilder, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import OwnerReference
from tests.kit.tables import cases


@cases(
    "pod, asks",
    ("containers add up", make_pod().req(cpu="500m", memory="1Gi").req(cpu="1"), {"cpu": "1500m", "memory": "1Gi"}),
    ("the largest of what runs before them", make_pod().req(cpu="1").init_req(cpu="3"), {"cpu": "3"}),
    ("with overhead", make_pod().req(cpu="1").overhead(cpu="100m"), {"cpu": "1100m"}),
    ("nothing", make_pod(), {}),
    ("what cannot be read", make_pod().req(cpu="much"), {}),
)
def test_requests(pod: PodBuilder, asks: dict[str, str]) -> None:
    assert requested(pod.obj()) == asks


@cases(
    "kind, owner, labels, workload",
    ("its controller", "StatefulSet", "db", {}, "StatefulSet/db"),
    ("the Deployment of a ReplicaSet", "ReplicaSet", "web-5d9", {"pod-template-hash": "5d9"}, "Deployment/web"),
    ("a ReplicaSet of no Deployment", "ReplicaSet", "web-5d9", {}, "ReplicaSet/web-5d9"),
    ("the hash means nothing to others", "Job", "web-5d9", {"pod-template-hash": "5d9"}, "Job/web-5d9"),
)
def test_workload_of_a_pod_is_named_after_its_controller(
    kind: str, owner: str, labels: dict[str, str], workload: str
) -> None:
    pod = make_pod().label(labels).obj()
    of_both = [OwnerReference(kind="Node", name="n"), OwnerReference(kind=kind, name=owner, controller=True)]

    assert workload_of(pod) == ""
    assert workload_of(replaced(pod, metadata=replaced(pod.metadata, owner_references=of_both))) == workload
