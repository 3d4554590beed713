"""Remedies do no harm: taints of other agents are waited for, and what an image is built for stays."""

import asyncio
import random

import pytest

from extender.answers.explain.explanation import explain
from extender.answers.types import Explanation
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.testing import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
POD = make_pod("p")
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"


def node(name: str = "n") -> NodeBuilder:
    return make_node(name).capacity(cpu=4).label({ARCH: "arm64", OS: "linux"})


def explained(nodes: list[NodeBuilder], pod: Pod) -> Explanation:
    return asyncio.run(explain(PROFILE, make_snapshot(*nodes), pod, NO_NOMINATIONS))


@pytest.mark.parametrize(
    "key",
    [
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "example.com/uninitialized",
        "karpenter.sh/unregistered",
    ],
)
def test_agent_that_is_not_ready_is_waited_for(key: str) -> None:
    explanation = explained([node().taint(key)], POD.obj())

    assert ([fix.text for fix in explanation.fixes], [fact.text for fact in explanation.facts]) == (
        [f"wait until the taint {key}:NoSchedule is gone"],
        [f"tainted {key}:NoSchedule, until its agent is ready"],
    )
    assert (explanation.fixes[0].command, explanation.fixes[0].patch) == ("", {})


@pytest.mark.parametrize(
    "key", ["ToBeDeletedByClusterAutoscaler", "ToBeDeletedTaint", "karpenter.sh/disrupted", "karpenter.sh/disruption"]
)
def test_nobody_is_sent_to_a_node_that_is_being_removed(key: str) -> None:
    explanation = explained([node().taint(key)], POD.obj())

    assert ([fix.text for fix in explanation.fixes], [fact.text for fact in explanation.facts]) == (
        [],
        [f"tainted {key}:NoSchedule, because it is about to be removed"],
    )


def test_taint_of_an_agent_is_waited_for_beside_one_that_is_tolerated() -> None:
    explanation = explained([node().taint("gpu").taint("node.cilium.io/agent-not-ready")], POD.obj())

    assert [fix.text for fix in explanation.fixes] == [
        "tolerate the taint gpu:NoSchedule and wait until the taint node.cilium.io/agent-not-ready:NoSchedule is gone"
    ]


@cases(
    "pod, fixes",
    ("architecture", POD.node_selector({ARCH: "amd64"}), []),
    ("operating system", POD.node_selector({OS: "windows"}), []),
    ("in an affinity", POD.node_affinity(label_term(ARCH, "In", "amd64")), []),
    ("under its old name", POD.node_selector({"beta.kubernetes.io/arch": "amd64", "disk": "ssd"}), []),
    (
        "the others are dropped without it",
        POD.node_selector({ARCH: "arm64", "disk": "ssd", "rack": "r"}),
        ["drop disk=ssd from the node selector and drop rack=r from the node selector"],
    ),
    (
        "selector and affinity",
        POD.node_selector({OS: "linux", "disk": "ssd"}).node_affinity(label_term("rack", "In", "r")),
        ['drop disk=ssd from the node selector and drop the required node affinity, "rack In (r)"'],
    ),
)
def test_what_an_image_is_built_for_is_not_dropped(pod: PodBuilder, fixes: list[str]) -> None:
    assert [fix.text for fix in explained([node()], pod.obj()).fixes if fix.kind == "affinity"] == fixes
