"""What an explanation tries and says, and what the past, groups and devices come to."""

from collections.abc import Mapping

import numpy as np

from extender.answers.cluster_map import DeviceRoom
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot
from extender.values.objects.decoding import replaced
from tests.extender.answers import test_questions as questions
from tests.extender.answers.explain.test_fixes import WEB, fixes_for, node, offers, on
from tests.extender.answers.what_if import test_rollouts as rollouts
from tests.extender.answers.what_if.test_what_if import ask
from tests.kit.devices import make_device_class, make_slice
from tests.kit.owners import owned_by
from tests.limits.rows import Filled, Kept


class Labelling(fwk.FilterPlugin, fwk.AdvicePlugin):
    """Refuses nodes, by their places, to pods without a label, and suggests some for a pod that nobody else refuses."""

    def __init__(self, label_of_node: Mapping[int, str], *suggested: str) -> None:
        super().__init__()
        self.label_of_node, self.suggested = label_of_node, suggested

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        refused = [self.label_of_node.get(place, "") not in {"", *pod.labels} for place in rows.node.tolist()]
        return fwk.reject(np.array(refused, np.bool_), "no label")

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> list[fwk.Suggestion]:
        return [labelled(pod, label) for label in self.suggested]


class LabellingAnyway(Labelling):
    """Suggests its label where others refuse a node, too."""

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion:
        return labelled(pod, self.label_of_node[0])


def labelled(pod: fwk.Pod, label: str) -> fwk.Suggestion:
    changed = replaced(pod, metadata=replaced(pod.metadata, labels={**pod.labels, label: "yes"}))
    return fwk.Suggestion("other", f"label it {label}", changed)


def fixed(number_of_nodes: int, *plugins: Labelling) -> int:
    """Returns how many fixes there are for a pod that these plugins refuse."""
    snapshot = make_snapshot(*(node(f"n{index}") for index in range(number_of_nodes)))
    return len(fixes_for(snapshot, WEB.obj(), framework=make_framework(*plugins)))


def fixes(number: int) -> int:
    """Returns how many fixes are told of so many, each of which opens a node."""
    labels = [f"l{index}" for index in range(number)]
    return fixed(number, Labelling(dict(enumerate(labels)), *labels))


def is_tried(number: int) -> bool:
    """Whether the last of so many suggestions of a plugin is tried, which alone helps."""
    labels = [f"l{index}" for index in range(number)]
    return fixed(1, Labelling({0: labels[-1]}, *labels)) > 0


def is_tried_together(number: int) -> bool:
    """Whether what two plugins suggest is tried for the last of so many pairs that refuse a node each."""
    last = number - 1
    plugins = [
        type(f"Of{row}", (Labelling,), {})({row: f"l{row}"}, f"l{last}" if row == last else "other")
        for row in range(number)
    ]
    return fixed(number, *plugins, LabellingAnyway(dict.fromkeys(range(number), "all"))) > 0


def is_lowest_priority(number: int) -> bool:
    """Whether so many tries find the lowest priority at which preemption helps."""
    priorities = range(10, 10 + 2 ** (number - 1))
    nodes = [node(f"n{priority}") for priority in priorities]
    pods = [make_pod(f"p{priority}").node(f"n{priority}").req(cpu=4).priority(priority) for priority in priorities]
    return any("above 10," in text for _, text, _ in offers(nodes, pods, WEB.req(cpu=4).priority(7)))


def is_tried_as_new(number: int) -> bool:
    """Whether a new node is tried of the last of so many kinds, of which alone one has room beside its DaemonSet."""
    nodes = [node(f"n{index}", cpu=10 + index) for index in range(number)]
    pods = [on(f"p{index}", f"n{index}").req(cpu=5 + index) for index in range(number - 1)]
    daemons = [PodBuilder(owned_by(pod.obj(), "DaemonSet", "d")) for pod in pods]
    full = on("full", f"n{number - 1}").req(cpu=10 + number - 1)
    return any("add a node" in text for _, text, _ in offers(nodes, [*daemons, full], WEB.req(cpu=10)))


def rolled_out(number: int) -> str:
    """Returns what is left out of a note about a template that differs in so many tolerations."""
    about = rollouts.cluster([4], rollouts.pod("web-a", "n1"))
    tolerations = [{"key": f"t{index}", "operator": "Exists"} for index in range(number)]
    (note,) = ask(about, rollouts.workload(1, pod_spec={"tolerations": tolerations})).notes
    return note.partition(" and ")[2]


def is_said_of_group(number: int) -> bool:
    """Whether the explanation of a member says what would become of so many."""
    members = [questions.a_pod(f"train-{index}").group("train") for index in range(number)]
    about = questions.about_gang(questions.A.capacity(cpu=number, pods=number), pods=members)
    return questions.explained(about, "train-0").group is not None


async def searched(number: int) -> int:
    """Returns how many of so many attempts an answer about the past has."""
    scheduling, about = questions.deciding()
    scheduling.comes(make_node("n").capacity(cpu=number, pods=number))
    scheduling.comes(*(questions.a_pod(f"p{index}") for index in range(number)))
    await scheduling.decides()
    return sum(similar.count for similar in (await about.history(range="", since="", until="")).alike)


def nodes_counted() -> list[int]:
    """Returns of how many nodes the devices are counted the first time, and the second."""
    cluster = Cluster()
    for obj in (make_node("a").obj(), make_node("b").obj(), make_device_class("any", "true")):
        cluster.changed(None, obj)
    for name in "ab":
        cluster.changed(None, make_slice(f"gpu-{name}", name=name, pool=name, nodeName=name))
    room = DeviceRoom(cluster)
    return [len(room.now()), len(room.now())]


EXPLANATIONS: dict[str, Filled | Kept] = {
    "FIXES": Filled(fixes, at=6, above=6),
    "FIXES_TRIED": Filled(is_tried, at=True, above=False),
    "FIXES_TRIED_TOGETHER": Filled(is_tried_together, at=True, above=False),
    "PRIORITIES_TRIED": Filled(is_lowest_priority, at=True, above=False),
    "NODE_KINDS_TRIED": Filled(is_tried_as_new, at=True, above=False),
    "ROLLOUT_DIFFERENCES": Filled(rolled_out, above="1 more"),
    "GROUP_MEMBERS": Filled(is_said_of_group, at=True, above=False, lowered_to=10),
    "HISTORY_SEARCHED": Filled(searched, at=10, above=10, lowered_to=10),
    "DEVICE_COUNT_SECONDS": Kept(1, nodes_counted, whole=[2, 2], cut=[1, 1]),
}
