"""What becomes of a chart in a cluster: where its pods go, whom they evict, and assertions that say why they fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.values.objects.meta import Object
from reprieve import Chart, Cluster, ReprieveError
from tests.kit.objects import node, pod, priority_class, workload
from tests.kit.tables import cases

ZONE = "topology.kubernetes.io/zone"
MONITOR = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "m"}, "spec": {}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}


def cluster(*objects: Object, nodes: int = 3, cpu: str = "4") -> Cluster:
    """Nodes in zones of their own, zone-0 and on."""
    zone_nodes = [node(f"node-{number}", cpu, labels={ZONE: f"zone-{number}"}) for number in range(nodes)]
    return Cluster.load([*zone_nodes, priority_class("high", 100), *objects])


def deployment(name: str = "shop", replicas: int = 3, cpu: str = "1", **spec: Any) -> Object:
    return workload("Deployment", name, pod(name, cpu, **spec), replicas=replicas)


def text(*objects: Object) -> str:
    return yaml.safe_dump_all(objects)


def chart(*objects: Object, base: Cluster | None = None) -> Chart:
    return (base or cluster()).chart(text(*objects))


def running(name: str, on: str, cpu: str = "3", **more: Any) -> Object:
    return pod(name, cpu, nodeName=on, **more)


def failure(asserts: Any, *arguments: Any, **keywords: Any) -> str:
    with pytest.raises(AssertionError) as failed:
        asserts(*arguments, **keywords)
    return str(failed.value)


def test_chart_that_fits_keeps_its_promises() -> None:
    release = chart(deployment(), CONFIG_MAP, MONITOR)

    assert release.will_fit()
    assert release.evicts_nobody()
    assert release.spreads_over("zone", min_domains=3, max_skew=0)
    assert sorted(release.pods.values()) == ["node-0", "node-1", "node-2"]
    assert repr(release) == "<Chart the chart: 3 pods, 0 evicted>"


def test_kind_that_is_not_known_is_left_out_with_a_note() -> None:
    assert chart(deployment(), MONITOR).notes == (
        "left out, since no pods are known to come of them: ServiceMonitor (monitoring.coreos.com/v1)",
    )


def test_failure_says_which_pods_are_pending_and_what_would_help() -> None:
    message = failure(chart(deployment(replicas=2, cpu="5"), deployment("small"), MONITOR).will_fit)

    assert message.splitlines() == [
        "the chart: 2 of 5 pods would be pending",
        "",
        "default/shop-1: It fits on none of 3 nodes: NodeResourcesFit refuses 3; no eviction would make room.",
        "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful "
        "for scheduling.",
        "  node-0 lacks 2 cpu",
        "  node-1 lacks 2 cpu",
        "  node-2 lacks 2 cpu",
        "  it would fit if you ask for 3 of cpu instead of 5 (3 nodes)",
        "note: left out, since no pods are known to come of them: ServiceMonitor (monitoring.coreos.com/v1)",
    ]


@cases(
    "spec, words",
    ("a label that no node has", {"nodeSelector": {"disk": "ssd"}}, "\n  no node has disk=ssd\n"),
    ("a gate", {"schedulingGates": [{"name": "quota"}]}, "It is held back by the scheduling gate quota"),
)
def test_failure_says_what_the_pods_lack(spec: dict[str, Any], words: str) -> None:
    assert words in failure(chart(deployment(replicas=1, **spec)).will_fit)


def test_pod_of_each_workload_is_explained() -> None:
    message = failure(chart(*(deployment(name, 2, "9") for name in "abcd")).will_fit)

    assert message.startswith("the chart: 8 of 8 pods would be pending\n")
    assert [line.partition(":")[0] for line in message.splitlines() if ": It fits" in line] == [
        "default/a-1", "default/b-1", "default/c-1",
    ]  # fmt: skip


def test_failure_says_who_is_evicted_for_whom_and_what_would_spare_them() -> None:
    base = cluster(running("old", "node-0"), running("older", "node-1", cpu="4"), nodes=2)

    release = chart(deployment(replicas=1, cpu="2", priorityClassName="high"), base=base)

    assert release.will_fit()
    assert [(eviction.victim.pod.key, eviction.node) for eviction in release.evictions] == [("default/old", "node-0")]
    assert failure(release.evicts_nobody).splitlines() == [
        "the chart: 1 evicted: default/old from node-0 (preempted by default/shop-1)",
        "",
        "default/shop-1: It fits on none of 2 nodes: NodeResourcesFit refuses 2; evicting 1 pod from node-0 would make "
        "room.",
        "0/2 nodes are available: 2 Insufficient cpu.",
        "  node-0 lacks 1 cpu",
        "  node-1 lacks 2 cpu",
        "  it would fit if you ask for 1 of cpu instead of 2 (1 node)",
        "  it would fit if you add a node like node-0 (1 node)",
        "  node-1 is not the one to evict from: ties with node-0 on every criterion",
    ]


@cases(
    "limits, note",
    ("over two zones if nothing else is said", {}, ""),
    ("as far as is asked", {"min_domains": 2, "max_skew": 2}, ""),
    ("over more", {"min_domains": 3}, "over at least 3, but a skew of 2: 2 in zone-0, 0 in zone-1"),
    ("more evenly", {"max_skew": 1}, "with a skew of at most 1, but a skew of 2: 2 in zone-0"),
    ("of one workload", {"workload": "Deployment/shop"}, ""),
)
def test_spread_is_at_least_over_so_many_values_and_at_most_so_uneven(limits: dict[str, Any], note: str) -> None:
    """Two pods in zone-0, the only node with room for two, none in zone-1, and one in zone-2."""
    base = cluster(running("full", "node-1", cpu="4"), running("half", "node-2"), running("some", "node-0", cpu="2"))

    shop = chart(deployment(), deployment("alone", 1, "0"), base=base)

    if note:
        assert note in failure(shop.spreads_over, ZONE, **limits)
        assert f"(they have no constraint over {ZONE} with DoNotSchedule)" in failure(shop.spreads_over, ZONE, **limits)
    else:
        assert shop.spreads_over(ZONE, **limits)


def test_spread_of_pods_that_are_pending_says_why_they_are() -> None:
    large = deployment("large", 1, "9")

    message = failure(chart(deployment(cpu="3", nodeSelector={ZONE: "zone-0"}), large).spreads_over, "zone")

    assert "Deployment/shop: spread by zone over at least 2, but a skew of 1: 1 in zone-0, 0 in zone-1" in message
    assert "default/shop-2: It fits on none of 3 nodes" in message
    assert "default/large-1" not in message


@cases(
    "workload, words",
    ("one that is not there", "Deployment/web", "the chart has no pods of Deployment/web"),
    ("none has several pods", "", "the chart has no pods of a workload with several"),
)
def test_nothing_to_spread_is_no_success(workload: str, words: str) -> None:
    with pytest.raises(ReprieveError, match=words):
        chart(deployment(replicas=1)).spreads_over(ZONE, workload=workload)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topology_key": None}, "None is not a node label"),
        ({"topology_key": ZONE, "min_domains": "2"}, "'2' values cannot be asked for"),
        ({"topology_key": ZONE, "max_skew": 0.5}, "0.5 is no skew"),
        ({"topology_key": ZONE, "max_skew": -1}, "-1 is no skew"),
    ],
)
def test_spread_that_cannot_be_asked_for_is_said_in_a_line(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ReprieveError, match=words):
        chart(deployment(replicas=2)).spreads_over(**arguments)


# Charts whose workloads run already.


def there_already(replicas: int, **more: Any) -> Cluster:
    """The cluster after a chart of so many replicas was applied to it."""
    with cluster(**more).trial() as trial:
        trial.schedule([deployment(replicas=replicas)])
        return Cluster.load(trial.objects())


def test_pods_that_run_already_count() -> None:
    release = chart(deployment(replicas=3), base=there_already(2))

    assert release.will_fit()
    assert release.spreads_over("zone", min_domains=3)
    assert [*release.pods] == ["default/shop-3", "default/shop-1", "default/shop-2"]


def test_unchanged_chart_whose_pods_are_pending_does_not_pass() -> None:
    release = chart(deployment(replicas=3), base=there_already(3, nodes=1, cpu="2"))

    assert failure(release.will_fit).startswith("the chart: 1 of 3 pods would be pending\n")


def test_pod_on_a_node_that_is_not_known_is_in_no_domain() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "shop", "uid": "u", "controller": True}
    lost = running("shop-0", "gone", "1", labels={"app": "shop"})
    lost["metadata"]["ownerReferences"] = [owner]

    release = chart(workload("StatefulSet", "shop", pod("shop"), replicas=3), base=cluster(lost, nodes=2))

    assert release.spreads_over("zone")
    assert "a skew of 0: 1 in zone-0, 1 in zone-1" in failure(release.spreads_over, "zone", min_domains=3)


def test_another_template_is_rolled_out() -> None:
    release = chart(deployment(replicas=3, cpu="2"), base=there_already(3))

    assert release.will_fit()
    assert len(release.pods) == 3


def test_rollout_that_stops_is_a_failure() -> None:
    words = failure(chart(deployment(replicas=3, cpu="9"), base=there_already(3)).will_fit)

    assert words.startswith("the chart: 1 of 4 pods would be pending\n")
    assert (
        "note: The rollout of Deployment default/shop would stop there: 3 pods of the old template would stay" in words
    )


# What is given.


def test_chart_may_be_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "one.yaml").write_text(text(deployment()))
    (tmp_path / "more" / "two.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    (tmp_path / "values.txt").write_text("not to be read")

    pods = [cluster().chart(form).pods for form in (tmp_path, str(tmp_path), tmp_path / "one.yaml", text(deployment()))]

    assert pods[1:] == pods[:-1]


def test_objects_without_a_namespace_go_to_that_of_the_release() -> None:
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("default", "shop")]

    release = cluster(*spaces).chart(text(deployment(replicas=1)), namespace="shop")

    assert [*release.pods] == ["shop/shop-1"]
    with pytest.raises(ReprieveError, match=r'^Deployment web/shop: namespaces "web" not found$'):
        cluster(*spaces).chart(text(deployment()), namespace="web")


@cases(
    "source, words",
    ("no such file", "nowhere.yaml", "^nowhere.yaml: no such file or directory"),
    ("no pods", text(CONFIG_MAP, MONITOR), "^the chart: ConfigMap, ServiceMonitor, and no pod or workload in it$"),
    ("nothing", "\n", "^the text has no objects$"),
    ("none wanted", text(deployment(replicas=0)), "^the chart: no pod comes of it: its workloads want none now$"),
    ("no YAML", "kind: [\n", "^yaml: line 2: did not find expected node content$"),
    ("no object", "a: b\n", "every document has to be a Kubernetes object"),
)
def test_what_cannot_be_tried_is_said_in_a_line(source: str, words: str) -> None:
    with pytest.raises(ReprieveError, match=words) as failed:
        cluster().chart(source)

    assert "\n" not in str(failed.value)


def test_source_of_a_chart_is_not_taken_for_manifests(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: shop\n")

    with pytest.raises(ReprieveError, match=r"is the source of a chart: give what `helm template .*` prints"):
        cluster().chart(tmp_path)


def test_chart_is_tried_in_a_thread_that_runs_a_loop() -> None:
    async def test() -> bool:
        return chart(deployment()).will_fit()

    assert asyncio.run(test())
