"""What pods take and nodes give: phases, defaults, in-place resize, and a clear word when a quantity is wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import PodBuilder, make_node, make_pod
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError, quantity_of
from extender.values.objects.resource_amounts import (
    Resources,
    allocatable,
    as_quantity,
    assigned_requests,
    balanced_scorer_requests,
    filter_requests,
    fit_scorer_requests,
    in_words,
    pod_limits,
    pod_requests,
    sum_requests,
    validate_requests,
)
from tests.kit.examples import examples
from tests.kit.tables import cases

MEMORY_DEFAULT = 200 * 1024 * 1024
GI = 1024**3


@cases(
    "pod, milli_cpu",
    ("containers run together", make_pod().req(cpu="1").req(cpu="500m"), 1500),
    ("an init container that needs less does not count", make_pod().req(cpu="1").init_req(cpu="500m"), 1000),
    ("init containers run one by one", make_pod().req(cpu="1").init_req(cpu="3").init_req(cpu="2"), 3000),
    ("a sidecar stays", make_pod().req(cpu="1").sidecar_req(cpu="1"), 2000),
    ("a later phase runs beside the sidecar", make_pod().req(cpu="1").sidecar_req(cpu="1").init_req(cpu="2"), 3000),
    ("an earlier phase does not", make_pod().req(cpu="1").init_req(cpu="2").sidecar_req(cpu="1"), 2000),
    ("overhead comes on top", make_pod().req(cpu="1").init_req(cpu="3").overhead(cpu="250m"), 3250),
    ("sums are rounded, not their parts", make_pod().req(cpu="100u").req(cpu="100u"), 1),
    ("a JSON number", make_pod().req(cpu=0.5), 500),
    ("nothing", make_pod(), 0),
)
def test_phases_of_a_pod(pod: PodBuilder, milli_cpu: int) -> None:
    """A pod needs the most that it needs at any one time."""
    assert filter_requests(pod.obj()).milli_cpu == milli_cpu
    assert assigned_requests(pod.obj())[0].milli_cpu == milli_cpu


@cases(
    "pod, milli_cpu, memory",
    ("a container that asks for nothing", make_pod().req(), 100, MEMORY_DEFAULT),
    ("an explicit zero stays zero", make_pod().req(cpu="0", memory="0"), 0, 0),
    ("each container for itself", make_pod().req(cpu="1").req(memory=5), 1100, MEMORY_DEFAULT + 5),
    ("no container, no default", make_pod(), 0, 0),
)
def test_defaults_for_spreading(pod: PodBuilder, milli_cpu: int, memory: int) -> None:
    """
    Containers that name no cpu or memory count with 100 millicores and 200 MiB where load is spread, and nowhere else.
    """
    amounts, non_zero_cpu, non_zero_memory = assigned_requests(pod.obj())

    assert (non_zero_cpu, non_zero_memory) == (milli_cpu, memory)
    assert amounts == filter_requests(pod.obj())
    assert fit_scorer_requests(pod.obj(), ("cpu", "memory")) == (milli_cpu, memory)
    assert balanced_scorer_requests(pod.obj(), ["cpu"]) == (amounts.milli_cpu,)


def resized(request: str, *, runs: str | None, allocated: str | None = None, reason: str = "") -> Pod:
    status: dict[str, Any] = {"name": "c0"}
    if runs is not None:
        status["resources"] = {"requests": {"cpu": runs} if runs else {}}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    spec = {"containers": [{"name": "c0", "resources": {"requests": {"cpu": request}}}]}
    return convert(Pod, {"spec": spec, "status": {"containerStatuses": [status], "conditions": conditions}})


@cases(
    "pod, milli_cpu",
    ("nothing is being resized", resized("1", runs="1", allocated="1"), 1000),
    ("it still runs with more", resized("1", runs="2", allocated="1"), 2000),
    ("more is set aside for it", resized("1", runs="1", allocated="3"), 3000),
    ("more may come later", resized("4", runs="2", allocated="2", reason="Deferred"), 4000),
    ("more can never come", resized("4", runs="2", allocated="3", reason="Infeasible"), 3000),
    ("it runs without a request", resized("4", runs="", allocated="3", reason="Infeasible"), 3000),
    ("the kubelet has not said what runs", resized("4", runs=None, allocated="9"), 4000),
)
def test_in_place_resize(pod: Pod, milli_cpu: int) -> None:
    """A pod on a node takes the most of what it asks for, what is set aside and what it runs with; a pending one what
    it asks for.
    """
    assert assigned_requests(pod)[0].milli_cpu == milli_cpu
    assert filter_requests(pod).milli_cpu == pod_requests(pod, use_status=False)["cpu"].milli_value()


def test_requests_of_the_whole_pod() -> None:
    """What is asked for the pod as a whole replaces what its containers add up to, except for the Fit scorer; overhead
    is added.
    """
    pod = convert(
        Pod,
        {
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/gpu": 1}}}],
                "resources": {"requests": {"cpu": "3", "example.com/gpu": 5}, "limits": {"cpu": "4"}},
                "overhead": {"cpu": "100m", "memory": "1Mi"},
            }
        },
    )

    assert filter_requests(pod) == Resources(3100, 2**20, 0, {"example.com/gpu": 1})
    assert assigned_requests(pod) == (filter_requests(pod), 3100, 2**20)
    assert fit_scorer_requests(pod, ["cpu"]) == (1100,)
    assert {name: str(amount) for name, amount in pod_limits(pod).items()} == {"cpu": "4100m"}


def test_resources_counted_one_by_one() -> None:
    """Extended resources, huge pages and attachable volumes are scalars; names without a domain that nobody knows are
    dropped.
    """
    names: dict[str, str | int | float] = {
        "example.com/gpu": 1,
        "hugepages-2Mi": "4Mi",
        "attachable-volumes-x": 2,
        "my.kubernetes.io/thing": 3,
        "unknown": 4,
        "pods": 5,
    }

    amounts = filter_requests(make_pod().req(names).obj())

    assert amounts.scalar == {
        "example.com/gpu": 1,
        "hugepages-2Mi": 2**22,
        "attachable-volumes-x": 2,
        "my.kubernetes.io/thing": 3,
    }
    assert fit_scorer_requests(make_pod().req(names).obj(), ["unheard-of"]) == (0,)


READERS: list[Callable[[Pod], object]] = [
    assigned_requests,
    filter_requests,
    validate_requests,
    lambda pod: pod_requests(pod, use_status=True),
    lambda pod: fit_scorer_requests(pod, ["cpu"]),
    lambda pod: balanced_scorer_requests(pod, ["cpu"]),
]


@pytest.mark.parametrize("read", READERS)
@cases(
    "pod, field",
    ("container", make_pod().req(cpu="10 GB"), "spec.containers[0].resources.requests[cpu]"),
    ("second container", make_pod().req().req(memory="1E+1000000"), "spec.containers[1].resources.requests[memory]"),
    ("init container", make_pod().req().init_req(cpu="1e"), "spec.initContainers[0].resources.requests[cpu]"),
    ("overhead", make_pod().req().overhead(cpu="x"), "spec.overhead[cpu]"),
    ("scalar", make_pod().req({"example.com/gpu": "x"}), "spec.containers[0].resources.requests[example.com/gpu]"),
    ("a name that cannot be one", make_pod().req({"not\na name": "x"}), "spec.containers[0].resources.requests[?]"),
)
def test_a_bad_quantity_is_named_by_its_field(pod: PodBuilder, field: str, read: Callable[[Pod], object]) -> None:
    """Whoever reads a pod with a bad quantity hears which field it is, and not what stands there."""
    with pytest.raises(QuantityError) as refusal:
        read(pod.obj())

    path, _, reason = str(refusal.value).partition(": ")
    assert path == field
    assert "quantit" in reason


def test_a_bad_quantity_in_the_status_is_named_too() -> None:
    with pytest.raises(QuantityError, match=r"^status\.containerStatuses\[0\]\.resources\.requests\[cpu\]: "):
        assigned_requests(resized("1", runs="?"))


def test_requests_must_not_be_negative() -> None:
    """A negative request is refused by name where requests are checked, and counts as nothing where they were not."""
    pod = make_pod().req(cpu="1").req(memory="-1Gi").obj()

    assert filter_requests(pod).memory == 0
    with pytest.raises(QuantityError) as refusal:
        validate_requests(pod)
    assert str(refusal.value) == "spec.containers[1].resources.requests[memory]: must be greater than or equal to 0"


def test_a_good_pod_is_not_refused() -> None:
    validate_requests(make_pod().req(cpu="1", memory="0").init_req(cpu=2).overhead(cpu="1m").obj())


def test_allocatable() -> None:
    """A node gives its amounts, and takes a number of pods."""
    node = (
        make_node()
        .capacity({"example.com/gpu": 2, "pods": "30"}, cpu="1500m", memory="2Gi", **{"ephemeral-storage": "1k"})
        .obj()
    )

    assert allocatable(node) == (Resources(1500, 2**31, 1000, {"example.com/gpu": 2}), 30)
    assert allocatable(make_node().obj()) == (Resources(), 0)


@pytest.mark.parametrize("amount", ["10 GB", "1e", "-1", "1E+1000000"])
def test_a_node_with_a_bad_amount_is_refused(amount: str) -> None:
    with pytest.raises(QuantityError, match=r"^status\.allocatable\[memory\]: "):
        allocatable(make_node().capacity(memory=amount).obj())


amounts = st.sampled_from(
    ["0", "1", "100m", "1u", "1.5Gi", "3E", "9223372036854775807", "-1", "-1500m", "-1u", "12e-10", "7Ei"]
)
lists = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), amounts, max_size=3)
containers = st.builds(
    lambda requests, policy, runs: (
        {"resources": {"requests": requests}, "restartPolicy": policy},
        {"resources": {"requests": runs}},
    ),
    lists,
    st.sampled_from([None, "Always"]),
    lists,
)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(containers, max_size=3), st.lists(containers, max_size=3), lists, lists)
def test_quick_sums_are_the_sums_of_quantities(
    plain: list[Any], init: list[Any], overhead: dict[str, str], whole: dict[str, str]
) -> None:
    """However a pod is made up, even with negative and overflowing amounts, the numbers are those of the sums of its
    quantities.
    """
    pairs = [
        ({**spec, "name": f"c{place}"}, {**status, "name": f"c{place}"})
        for place, (spec, status) in enumerate(plain + init)
    ]
    specs, statuses = [spec for spec, _ in pairs], [status for _, status in pairs]
    count = len(plain)
    spec = {
        "containers": specs[:count],
        "initContainers": specs[count:],
        "overhead": overhead,
        "resources": {"requests": whole},
    }
    pod = convert(
        Pod,
        {"spec": spec, "status": {"containerStatuses": statuses[:count], "initContainerStatuses": statuses[count:]}},
    )

    amounts = assigned_requests(pod)[0]

    sums = sum_requests(pod, quantity_of, use_status=True)
    zero = quantity_of(0)
    assert amounts.milli_cpu == sums.get("cpu", zero).milli_value()
    assert amounts.memory == sums.get("memory", zero).value()
    assert amounts.scalar == {name: amount.value() for name, amount in sums.items() if "/" in name}


@cases(
    "resource, amount, text",
    ("whole cores", "cpu", 2000, "2"),
    ("millicores", "cpu", 1500, "1500m"),
    ("more is requested than there is", "cpu", -200, "-200m"),
    ("nothing", "cpu", 0, "0"),
    ("memory in powers of two", "memory", 64 * GI, "64Gi"),
    ("below zero, too", "memory", -GI, "-1Gi"),
    ("too little for that", "memory", 1000, "1k"),
    ("storage", "ephemeral-storage", 3 * GI, "3Gi"),
    ("huge pages", "hugepages-2Mi", 4 * 1024**2, "4Mi"),
    ("things that are counted", "example.com/gpu", 3, "3"),
    ("pods", "pods", 110, "110"),
)
def test_amounts_are_written_as_canonical_quantities(resource: str, amount: int, text: str) -> None:
    assert as_quantity(resource, amount) == text


@pytest.mark.parametrize(
    ("resource", "quantity", "words"),
    [
        ("cpu", "60100m", "60.1"),
        ("cpu", "-50m", "-0.05"),
        ("cpu", "3", "3"),
        ("cpu", "10", "10"),
        ("cpu", "1k", "1000"),
        ("memory", "1500Mi", "1500Mi"),
        ("example.com/gpu", "10", "10"),
    ],
)
def test_people_read_cpu_in_cores(resource: str, quantity: str, words: str) -> None:
    assert in_words(resource, quantity) == words
