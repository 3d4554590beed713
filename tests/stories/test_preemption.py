"""Who has to go for whom. Upstream: test/integration/scheduler/preemption/preemption_test.go.

Not told: TestPodGroupPreemption (pod groups are behind a feature gate that is off), and rows that have a test of their
own on a lower floor (ReadWriteOncePod: tests/extender/engine/plugins/test_volume_restrictions.py).
"""

import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import NAMESPACES, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.values.objects.pod import Pod
from tests.kit.device_objects import DRIVER, WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import budget, node, pod, priority_class
from tests.kit.pod_specs import away_from
from tests.kit.saying_plugins import filtering
from tests.kit.scene import a_scene

FITS_NOT = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.over_a_socket
async def test_basic_pod_preemption() -> None:
    """TestPreemption, basic pod preemption: the victim is told why it has to go, and the pod where it may hope to
    run.
    """
    async with a_scene(node("n")) as scene:
        await scene.has(pod("low", "1500m", "low", stays=True))
        await scene.has(pod("high", "1500m", "high"))

        assert scene.leaving() == {"low"}
        assert scene.condition("low", "DisruptionTarget") == (
            "True",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        assert scene.events("low")[-1] == (
            "Preempted",
            f"Preempted by pod {scene.pod('high')['metadata']['uid']} on node n",
        )
        assert scene.nominated_node_of("high") == "n"
        assert scene.condition("high") == ("False", "Unschedulable", FITS_NOT)
        assert scene.waits_in("high") == "unschedulable"

        await scene.lets_go("low")

        assert scene.node_of("high") == "n"
        assert scene.nominated_node_of("high") == ""


def _with_selector(expression: str) -> Object:
    claim = device_claim()
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    return claim


def _broken(pod: Pod, _: fwk.NodeInfo) -> fwk.Status:
    if pod.name == "high":
        raise OSError("no licence")
    return fwk.SUCCESS


FAILING_PLUGIN = filtering(lambda pod, _: fwk.error("out of order") if pod.name == "high" else fwk.SUCCESS)


@pytest.mark.parametrize(
    ("objects", "plugins", "words"),
    [
        pytest.param(
            [device_class(None), devices("n", "gpu-1"), _with_selector(f'device.attributes["{DRIVER}"].model == "x"')], [],
            'running "DynamicResources" filter plugin: claim default/gpu: selector #0: CEL runtime error: no such key: model',
            id="a selector of devices",
        ),
        pytest.param(
            [device_class(None), devices("n", "gpu-1"), _with_selector("1/0 == 1")], [],
            'running "DynamicResources" filter plugin: claim default/gpu: selector #0: CEL runtime error: division by zero',
            id="a selector that divides by zero",
        ),
        pytest.param([], [FAILING_PLUGIN], 'running "Filtering" filter plugin: out of order', id="a plugin that answers so"),
        pytest.param([], [filtering(_broken)], 'running "Filtering" filter plugin: no licence', id="a plugin that raises"),
    ],
)  # fmt: skip
async def test_error_of_a_filter_in_the_dry_run_is_told_as_one_of_preemption(
    objects: list[Object], plugins: list[type[fwk.Plugin]], words: str
) -> None:
    """Upstream: default_preemption.go, PostFilter, which puts the word before every status."""
    wants = WITH_DEVICE if objects else {}
    async with a_scene(node("n"), *objects, plugins=plugins) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high", **wants))

        condition = scene.condition("high")
        assert condition is not None
        assert condition[:2] == ("False", "Unschedulable")
        assert condition[2].startswith(f"{FITS_NOT} preemption: {words}")
        assert scene.leaving() == set()


async def test_error_of_a_filter_on_one_node_of_the_dry_run_fails_the_attempt() -> None:
    """As it does in Filter. Upstream leaves that node out, and evicts on the other one."""

    def says(pod: Pod, node_info: fwk.NodeInfo) -> fwk.Status:
        return fwk.error("out of order") if (pod.name, node_info.name) == ("high", "m") else fwk.SUCCESS

    async with a_scene(node("m"), node("n"), plugins=[filtering(says)]) as scene:
        await scene.has(pod("low", "1500m", "low"), pod("lower", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"))

        condition = scene.condition("high")
        assert condition is not None
        assert condition[2].endswith('preemption: running "Filtering" filter plugin: out of order')
        assert scene.leaving() == set()


@pytest.mark.anywhere
async def test_a_node_that_a_plugin_refuses_for_good_is_left_alone() -> None:
    """TestPreemption, with unresolvable filter."""
    refuses = filtering(lambda pod, _: fwk.unresolvable("never here") if pod.name == "high" else fwk.SUCCESS)
    async with a_scene(node("n"), plugins=[refuses]) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "100m", "high"))

        assert scene.leaving() == set()
        assert scene.nominated_node_of("high") == ""
        assert scene.condition("high") == (
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 never here. no new claims to deallocate, preemption: 0/1 nodes are available: "
            "1 Preemption is not helpful for scheduling.",
        )


@pytest.mark.parametrize("topology", ["rack", "kubernetes.io/hostname"])
@pytest.mark.anywhere
async def test_victims_are_pods_on_either_side_of_anti_affinity(topology: str) -> None:
    """TestPreemption, preemption is performed to satisfy anti-affinity: of the pod, and of one that would mind it.
    Another one stays.
    """
    async with a_scene(node("n", labels={"rack": "a"})) as scene:
        await scene.has(
            pod("minded", "100m", "middle", labels={"pod": "p0"}),
            pod("minds", "100m", "low", affinity=away_from(topology, pod="preemptor")),
            pod("stays", "100m", "low", labels={"pod": "p2"}),
        )
        await scene.has(
            pod("high", "100m", "high", labels={"pod": "preemptor"}, affinity=away_from(topology, pod="p0")), within=10
        )

        assert scene.pods() == {"stays", "high"}
        assert scene.node_of("high") == "n"


@pytest.mark.anywhere
async def test_no_pod_is_evicted_where_anti_affinity_would_still_refuse_the_preemptor() -> None:
    """TestPreemption, preemption is not performed when anti-affinity is not satisfied: the one that minds is as
    important.
    """
    async with a_scene(node("n")) as scene:
        await scene.has(
            pod("minded", "100m", "middle", labels={"pod": "p0"}),
            pod("minds", "100m", "high", affinity=away_from(pod="preemptor")),
        )
        await scene.has(
            pod("high", "100m", "high", labels={"pod": "preemptor"}, affinity=away_from(pod="p0")), within=10
        )

        assert scene.pods() == {"minded", "minds", "high"}
        assert scene.leaving() == set()
        assert scene.nominated_node_of("high") == ""


@pytest.mark.anywhere
async def test_a_pod_that_does_not_preempt_waits() -> None:
    """TestNonPreemption."""
    async with a_scene(node("n"), priority_class("patient", 1000, preemptionPolicy="Never")) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("patient", "1500m", "patient"))

        assert scene.leaving() == set()
        assert scene.nominated_node_of("patient") == ""
        condition = scene.condition("patient")
        assert condition is not None
        assert condition[2].endswith("preemption: not eligible due to preemptionPolicy=Never.")
        assert scene.waits_in("patient") == "unschedulable"


@pytest.mark.anywhere
async def test_no_pod_is_evicted_without_the_preemption_plugin() -> None:
    """TestDisablePreemption."""
    async with a_scene(node("n"), without=("DefaultPreemption",)) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"))

        assert scene.leaving() == set()
        assert scene.nominated_node_of("high") == ""


@pytest.mark.anywhere
async def test_many_pods_of_low_priority_do_not_starve_one_of_high() -> None:
    """TestPreemptionStarvation."""
    async with a_scene(node("n")) as scene:
        await scene.has(*(pod(f"low-{number}", "400m", "low") for number in range(5)))
        await scene.has(
            *(pod(f"waits-{number}", "400m", "low") for number in range(10)), pod("high", "1500m", "high"), within=30
        )

        assert scene.node_of("high") == "n"
        assert sum(1 for name in scene.pods() if scene.node_of(name)) == 2


@pytest.mark.anywhere
async def test_room_that_was_made_is_not_taken_by_later_pods() -> None:
    """TestPreemptionRaces: none of many pods of low priority gets into the room between the victims' going and the
    preemptor's coming.
    """
    async with a_scene(node("n", pods="500")) as scene:
        for race in range(5):
            await scene.has(*(pod(f"victim-{race}-{number}", "1", "low") for number in range(2)))
            await scene.has(
                pod(f"high-{race}", "2", "high"),
                *(pod(f"later-{race}-{number}", "100m", "low") for number in range(20)),
                within=20,
            )

            assert [name for name in scene.pods() if scene.node_of(name)] == [f"high-{race}"]

            for name in scene.pods():
                await scene.loses(name, within=0)
            await scene.passes(5)


def keeping(name: str, minimum: int, **labels: str) -> Object:
    return budget(name, {"matchLabels": labels}, minAvailable=minimum)


@pytest.mark.over_a_socket
async def test_victims_without_a_budget_are_evicted_first() -> None:
    """TestPDBInPreemption, a non-PDB violating pod is preempted despite its higher priority."""
    async with a_scene(node("n")) as scene:
        scene.api.create(POD_DISRUPTION_BUDGETS, "default", keeping("kept", 2, app="kept"))
        await scene.has(
            pod("kept-1", "500m", "low", labels={"app": "kept"}), pod("kept-2", "500m", "low", labels={"app": "kept"})
        )
        await scene.has(pod("loose", "500m", "middle"))
        await scene.has(pod("high", "900m", "high"), within=10)

        assert scene.pods() == {"kept-1", "kept-2", "high"}


@pytest.mark.anywhere
async def test_the_node_is_preferred_where_no_budget_is_violated() -> None:
    """TestPDBInPreemption, a node without any PDB violating pods is preferred for preemption."""
    async with a_scene(node("kept"), node("loose")) as scene:
        scene.api.create(POD_DISRUPTION_BUDGETS, "default", keeping("kept", 1, app="kept"))
        await scene.has(
            pod("protected", "1500m", "low", labels={"app": "kept"}, nodeSelector={"kubernetes.io/hostname": "kept"}),
            pod("free", "1500m", "middle", nodeSelector={"kubernetes.io/hostname": "loose"}),
        )
        await scene.has(pod("high", "1500m", "high"), within=10)

        assert scene.pods() == {"protected", "high"}
        assert scene.node_of("high") == "loose"


@pytest.mark.parametrize(
    "selector",
    [{}, {"matchLabels": {}}, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}],
    ids=["all pods", "all pods, spelled with labels", "pods without a label"],
)
async def test_the_node_is_preferred_that_a_budget_without_labels_does_not_cover(selector: Object) -> None:
    """The free pod is of another namespace, and has the higher priority."""
    async with a_scene(node("kept"), node("loose")) as scene:
        scene.api.create(NAMESPACES, "", {"metadata": {"name": "other"}})
        scene.api.create(POD_DISRUPTION_BUDGETS, "default", budget("kept", selector, minAvailable=1))
        free = pod("free", "1500m", "middle", nodeSelector={"kubernetes.io/hostname": "loose"})
        scene.api.create(PODS, "other", free)
        await scene.has(pod("bare", "1500m", "low", nodeSelector={"kubernetes.io/hostname": "kept"}))
        await scene.has(pod("high", "1500m", "high", labels={"app": "high"}), within=10)

        assert scene.node_of("bare") == "kept"
        assert scene.node_of("high") == "loose"


@pytest.mark.parametrize(
    ("operator", "excluded", "leaving"),
    [("NotIn", "default", set()), ("NotIn", "other", {"low"}), ("In", "default", {"low"})],
)
@pytest.mark.anywhere
async def test_only_pods_of_selected_namespaces_are_evicted_for_anti_affinity(
    operator: str, excluded: str, leaving: set[str]
) -> None:
    namespaces = ("kubernetes.io/metadata.name", operator, excluded)
    async with a_scene(node("n")) as scene:
        await scene.has(pod("low", "100m", "low", labels={"one": ""}, stays=True))
        await scene.has(pod("high", "100m", "high", affinity=away_from(labelled="one", namespaces=namespaces)))

        assert scene.leaving() == leaving
        assert scene.node_of("high") == ("" if leaving else "n")


@pytest.mark.anywhere
async def test_budgets_are_violated_when_there_is_no_other_way_and_then_as_little_as_possible() -> None:
    """TestPDBInPreemption, a node with fewer PDB violating pods is preferred for preemption."""
    async with a_scene(node("one"), node("two"), node("three")) as scene:
        scene.api.create(POD_DISRUPTION_BUDGETS, "default", keeping("first", 2, app="first"))
        scene.api.create(POD_DISRUPTION_BUDGETS, "default", keeping("second", 2, app="second"))
        await scene.has(
            pod("first-1", "2", "low", labels={"app": "first"}, nodeSelector={"kubernetes.io/hostname": "one"}),
            pod("first-2", "1", "low", labels={"app": "first"}, nodeSelector={"kubernetes.io/hostname": "two"}),
            pod("second-1", "1", "low", labels={"app": "second"}, nodeSelector={"kubernetes.io/hostname": "two"}),
            pod("second-2", "1", "low", labels={"app": "second"}, nodeSelector={"kubernetes.io/hostname": "three"}),
            pod("second-3", "1", "low", labels={"app": "second"}, nodeSelector={"kubernetes.io/hostname": "three"}),
        )
        await scene.has(pod("high", "2", "high"), within=10)

        assert scene.node_of("high") in ("one", "three")
        assert scene.node_of("first-2") == scene.node_of("second-1") == "two"
