"""What a pod asks for in all, and what makes it."""

import pytest

from extender.answers.parts import requested, workload_of
from extender.testing.builders import PodBuilder, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import OwnerReference


@pytest.mark.parametrize(
    ("pod", "asks"),
    [
        pytest.param(
            make_pod().req(cpu="500m", memory="1Gi").req(cpu="1"),
            {"cpu": "1500m", "memory": "1Gi"},
            id="containers add up",
        ),
        pytest.param(
            make_pod().req(cpu="1").init_req(cpu="3"), {"cpu": "3"}, id="the largest of what runs before them"
        ),
        pytest.param(make_pod().req(cpu="1").overhead(cpu="100m"), {"cpu": "1100m"}, id="with overhead"),
        pytest.param(make_pod(), {}, id="nothing"),
        pytest.param(make_pod().req(cpu="much"), {}, id="what cannot be read"),
    ],
)
def test_requests(pod: PodBuilder, asks: dict[str, str]) -> None:
    assert requested(pod.obj()) == asks


@pytest.mark.parametrize(
    ("kind", "owner", "labels", "workload"),
    [
        pytest.param("StatefulSet", "db", {}, "StatefulSet/db", id="its controller"),
        pytest.param(
            "ReplicaSet", "web-5d9", {"pod-template-hash": "5d9"}, "Deployment/web", id="the Deployment of a ReplicaSet"
        ),
        pytest.param("ReplicaSet", "web-5d9", {}, "ReplicaSet/web-5d9", id="a ReplicaSet of no Deployment"),
        pytest.param(
            "Job", "web-5d9", {"pod-template-hash": "5d9"}, "Job/web-5d9", id="the hash means nothing to others"
        ),
    ],
)
def test_workload_of_a_pod_is_named_after_its_controller(
    kind: str, owner: str, labels: dict[str, str], workload: str
) -> None:
    pod = make_pod().label(labels).obj()
    of_both = [OwnerReference(kind="Node", name="n"), OwnerReference(kind=kind, name=owner, controller=True)]

    assert workload_of(pod) == ""
    assert workload_of(replaced(pod, metadata=replaced(pod.metadata, owner_references=of_both))) == workload
