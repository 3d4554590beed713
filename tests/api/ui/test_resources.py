"""Views show any resource that nodes offer, and first the one that pending pods lack."""

import msgspec

from api.ui.resources import amount, most_lacking, quantity, resource_words, resources_of, usage
from extender.answers.overviews import ResourceOnNode
from extender.answers.pending import PendingResource
from tests.api.ui.samples import node, standing

GPU, CLASS = "nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu.example.com"
WITH_GPUS = msgspec.structs.replace(
    node(standing("a", 1500)),
    resources=(
        ResourceOnNode(name=GPU, allocatable=8, requested=3),
        ResourceOnNode(name=CLASS, allocatable=2, requested=2),
    ),
)


def test_resources_of_nodes_follow_cpu_memory_and_pods() -> None:
    assert resources_of((node(), WITH_GPUS)) == ("cpu", "memory", "pods", CLASS, GPU)


def test_usage_is_requested_and_allocatable_amount() -> None:
    assert [usage(WITH_GPUS, name) for name in ("cpu", "pods", GPU, CLASS)] == [(1500, 4000), (1, 110), (3, 8), (2, 2)]
    assert usage(node(), GPU) == (0, 0)


def test_amount_is_what_a_pod_requests_of_a_resource() -> None:
    pod = msgspec.structs.replace(standing("a", 1500, memory=5), requests={GPU: 2})

    assert [amount(pod, name) for name in ("cpu", "memory", "pods", GPU, CLASS)] == [1500, 5, 1, 2, 0]


def test_amounts_have_their_units() -> None:
    assert [quantity(2048, name) for name in ("cpu", "memory", "ephemeral-storage", "pods", GPU)] == [
        "2.048 cpu", "2 KiB", "2 KiB", "2,048", "2,048",
    ]  # fmt: skip
    assert resource_words(CLASS) == "gpu.example.com"


def test_the_resource_that_pending_pods_lack_is_shown_if_most_nodes_offer_it() -> None:
    lacking = [PendingResource(resource=name, pods=1) for name in ("example.com/none", GPU, "memory")]

    assert most_lacking(lacking, (WITH_GPUS,)) == GPU
    assert most_lacking(lacking, (WITH_GPUS, node())) == "memory"
    assert most_lacking((), (WITH_GPUS,)) == most_lacking(lacking, ()) == "cpu"
