"""Pods that are equal but for their names are looked at once, and become what they would have become one by one."""

from typing import Any

import pytest

from extender.answers.trial import Trial as EngineTrial
from reprieve import Cluster, Placement, ReprieveError, Trial
from tests.reprieve.test_library import node, nodes_of, pod, state_of


def of_one_template(name: str, cpu: str = "1", **metadata: Any) -> dict[str, Any]:
    pod_object = pod(name, cpu)
    del pod_object["metadata"]["uid"]
    pod_object["metadata"] |= metadata
    return pod_object


def pods_in(trial: Trial) -> list[Any]:
    inner: EngineTrial = trial._trial
    cluster = inner.cluster
    return sorted((*cluster.cache.pods, *cluster.pending.values()), key=lambda pod: pod.key)


def one_by_one(trial: Trial, objects: list[dict[str, Any]]) -> list[Placement]:
    return [placed for obj in objects for placed in trial.schedule(obj)]


def test_copies_are_what_they_would_be_by_themselves() -> None:
    """To each field but the UID, which is of its own; and in the order in which they were given."""
    objects = [of_one_template(name, cpu) for cpu in ("1", "2") for name in (f"a{cpu}", f"c{cpu}", f"b{cpu}")]
    cluster = Cluster.load([node("n", "6"), node("m", "1")])
    with cluster.trial() as together, cluster.trial() as apart:
        placed, expected = together.schedule(objects), one_by_one(apart, objects)

        assert placed == expected
        copies, alone = pods_in(together), pods_in(apart)
        assert len({pod.uid for pod in copies}) == 6
        assert [(pod.labels, pod.priority, pod.spec) for pod in copies] == [
            (pod.labels, pod.priority, pod.spec) for pod in alone
        ]
        together.add_nodes(like="n")
        apart.add_nodes(like="n")
        assert [placement.pod for placement in together.schedule()] == [placement.pod for placement in apart.schedule()]


def test_copies_go_with_their_step() -> None:
    with Cluster.load([node("n")]).trial() as trial:
        before = state_of(trial)

        trial.schedule([of_one_template(name) for name in "abc"])
        trial.undo()

        assert state_of(trial) == before
        assert nodes_of(trial.schedule(of_one_template("b"))) == {"default/b": "n"}


def test_uids_that_were_given_are_kept() -> None:
    with Cluster.load([node("n"), pod("there", on="n")]).trial() as trial:
        trial.schedule([of_one_template("a", uid="1"), of_one_template("b", uid="2"), of_one_template("c", uid="2")])
        trial.schedule([of_one_template("d", uid="uid-there"), of_one_template("e", uid="5")])

        uids = {pod.name: pod.uid for pod in pods_in(trial)}
    assert (uids["a"], uids["b"], uids["e"], uids["there"]) == ("1", "2", "5", "uid-there")
    assert len(set(uids.values())) == 6


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (of_one_template("There"), "a lowercase RFC 1123 subdomain"),
        (of_one_template("a"), 'pods "a" already exists'),
        (of_one_template("there"), 'pods "there" already exists'),
        (of_one_template("b") | {"status": {1}}, "is a set"),
        (of_one_template("b", labels={"app": 5}), "Pod"),
        (of_one_template("b") | {"specs": {}}, 'unknown field "specs"'),
    ],
)
def test_copy_that_would_be_refused_is(second: dict[str, Any], says: str) -> None:
    with Cluster.load([node("n"), pod("there", on="n")]).trial() as trial:
        before = state_of(trial)

        with pytest.raises(ReprieveError) as refused:
            trial.schedule([of_one_template("a"), second])

        assert says in str(refused.value)
        assert state_of(trial) == before


def test_pod_that_waits_is_replaced() -> None:
    with Cluster.load([node("n"), pod("a", "9")]).trial() as trial:
        placed = trial.schedule([of_one_template("b"), of_one_template("a")])

        assert nodes_of(placed) == {"default/b": "n", "default/a": "n"}
        assert trial.pods == nodes_of(placed)
