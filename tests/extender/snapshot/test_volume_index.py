from extender.snapshot import Attribute
from extender.snapshot.volume_index import VolumeIndex
from extender.testing import make_cache, make_node, make_pod
from extender.testing.storage import ebs_disk, ephemeral


def test_classes_are_found_by_the_names_of_their_claims() -> None:
    """
    In all namespaces, each class once, also those that come later.
    """
    cache = make_cache(make_node("n"), pods=[make_pod("a").claim("x").claim("x").claim("y").node("n")])
    snapshot = cache.update_snapshot()
    before = snapshot.tallies.index(Attribute.VOLUMES, VolumeIndex).users(["x", "y"])
    cache.add_pod(make_pod("b").claim("x").namespace("other").node("n").obj())
    index = cache.update_snapshot().tallies.index(Attribute.VOLUMES, VolumeIndex)

    assert before == [0]
    assert index.users(["x", "y"]) == [0, 1]
    assert index.users(["x"], first=1) == [1]
    assert index.users(["z"]) == []


def test_classes_with_disks() -> None:
    pods = [make_pod("a").claim("x"), make_pod("b").volume(ebs_disk("v")), make_pod("c").volume(ephemeral())]
    snapshot = make_cache(make_node("n"), pods=[pod.node("n") for pod in pods]).update_snapshot()

    index = snapshot.tallies.index(Attribute.VOLUMES, VolumeIndex)

    assert index.with_disks() == [1]
    assert index.with_disks(first=2) == []
