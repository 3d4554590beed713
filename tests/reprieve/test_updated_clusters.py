"""A cluster after changes is the one that was loaded with them; what they leave alone is shared."""

import random
from pathlib import Path
from typing import Any

import pytest

from extender.testing import random_cluster
from extender.values.objects.kinds import NODES, PODS
from reprieve import Cluster, ReprieveError
from tests.api.test_asking_with_few_rights import ANN, OBJECTS, role
from tests.extender.answers.test_trial import objects_of
from tests.kit.api_with_roles import serving_with_roles
from tests.kit.random_storage import random_cluster_with_volumes
from tests.kit.tables import cases
from tests.reprieve.test_library import as_mapping, node, nodes_of, pod, state_of

Object = dict[str, Any]


def deleted(obj: Object) -> Object:
    return {"type": "DELETED", "object": obj}


@pytest.mark.parametrize("seed", range(12))
def test_what_came_and_went_is_there_as_if_it_had_been_loaded(seed: int) -> None:
    """In any number of changes, of which each may come as an object or as an event."""
    chance = random.Random(seed)
    drawn = (random_cluster, random_cluster_with_volumes)[seed % 2](chance)
    objects = [as_mapping(obj) for obj in objects_of(drawn, chance)]
    first, later = objects[: len(objects) // 2], objects[len(objects) // 2 :]
    removed = chance.sample(objects, len(objects) // 4)

    cluster = Cluster.load(first)
    for obj in later:
        cluster = cluster.updated([chance.choice((obj, {"type": "ADDED", "object": obj}))])
    cluster = cluster.updated(map(deleted, removed))

    with cluster.trial() as trial, Cluster.load(obj for obj in objects if obj not in removed).trial() as loaded:
        assert trial.pods == loaded.pods
        assert state_of(trial)[2:] == state_of(loaded)[2:]
        assert nodes_of(trial.schedule()).keys() == nodes_of(loaded.schedule()).keys()


def test_the_cluster_before_stays_as_it_was() -> None:
    cluster = Cluster.load([node("a"), pod("one", on="a")])
    with cluster.trial() as trial:
        before = state_of(trial)

    cluster.updated([deleted(pod("one")), node("b"), node("a", cpu="1"), pod("two", on="b")])

    with cluster.trial() as trial:
        assert state_of(trial) == before


def test_what_stays_is_shared() -> None:
    cluster = Cluster.load([node("a"), pod("one", on="a"), pod("two")])

    updated = cluster.updated([pod("three", on="a")])

    before, after = ({item.name: item for item in state._questions.items()} for state in (cluster, updated))
    assert all(after[name] is item for name, item in before.items())


@cases(
    "change, pods",
    ("a pod on another node", pod("one", on="b"), {"default/one": "b", "default/two": ""}),
    ("a pending one that runs now", pod("two", on="b"), {"default/one": "a", "default/two": "b"}),
    ("a finished one", {**pod("one", on="a"), "status": {"phase": "Succeeded"}}, {"default/two": ""}),
    (
        "another one of its name",
        {"type": "MODIFIED", "object": {**pod("one"), "metadata": {"name": "one", "uid": "another"}}},
        {"default/one": "", "default/two": ""},
    ),
    ("a name is enough", deleted({"kind": "Pod", "metadata": {"name": "two"}}), {"default/one": "a"}),
    ("what is not there", deleted(pod("none")), {"default/one": "a", "default/two": ""}),
    (
        "an event of kopf's first list",
        {"type": None, "object": pod("three")},
        {"default/one": "a", "default/two": "", "default/three": ""},
    ),
    (
        "an event of the Kubernetes client",
        {"type": "DELETED", "object": "a model", "raw_object": pod("two")},
        {"default/one": "a"},
    ),
    ("none", {"type": "BOOKMARK", "object": {"kind": "Pod"}}, {"default/one": "a", "default/two": ""}),
    (
        "a kind of which nothing hangs",
        {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "one"}},
        {"default/one": "a", "default/two": ""},
    ),
)
def test_a_change_has_the_meaning_that_a_watch_gives_it(change: Object, pods: dict[str, str]) -> None:
    cluster = Cluster.load([node("a"), node("b"), pod("one", on="a"), pod("two")])

    with cluster.updated([change]).trial() as trial:
        assert trial.pods == pods


@cases(
    "changes, words",
    ("a number", [3], "3 is no object with a kind"),
    ("a name", ["default/one"], "'default/one' is no object with a kind"),
    ("no kind", [{"metadata": {"name": "one"}}], "is no object with a kind"),
    ("nothing", [{"type": "DELETED", "object": None}], "None is no object with a kind"),
    (
        "the end of a watch",
        [{"type": "ERROR", "object": {"kind": "Status", "message": "too old resource version"}}],
        "an event of type ERROR is no change: too old resource version; list the objects anew",
    ),
    ("a wrong form", [{"kind": "Pod", "metadata": {"name": "one"}, "spec": 3}], "Pod one: Expected `object`"),
    ("none at all", None, "None is no object with a kind"),
)
def test_what_is_no_change_is_told_in_one_line(changes: Any, words: str) -> None:
    cluster = Cluster.load([node("a")])

    with pytest.raises(ReprieveError) as raised:
        cluster.updated(changes)

    assert words in str(raised.value)


def test_what_could_not_be_listed_stays_unknown(tmp_path: Path) -> None:
    with serving_with_roles(OBJECTS, {ANN: role(NODES, PODS)}) as api:
        cluster = Cluster.connect(api.kubeconfig(ANN, tmp_path))

    with cluster.updated([node("n3")]).trial() as trial:
        assert "not known" in trial.schedule("dev/volumes")[0].message
