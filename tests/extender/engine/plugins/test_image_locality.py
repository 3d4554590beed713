import pytest

from extender.engine.plugins.image_locality import ImageLocality, normalized_image_name
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot, score_nodes
from extender.values.objects.pod import Container, ImageVolume, Volume
from tests.kit.tables import cases

MIB = 1024 * 1024


@cases(
    "name, normalized",
    ("no tag is latest", "nginx", "nginx:latest"),
    ("a tag stays", "nginx:1.27", "nginx:1.27"),
    ("a port is no tag", "registry:5000/nginx", "registry:5000/nginx:latest"),
    ("a digest counts as one", "nginx@sha256:abc", "nginx@sha256:abc"),
    ("nothing at all", "", ":latest"),
)
def test_image_names(name: str, normalized: str) -> None:
    """Kubelets report images with their tag."""
    assert normalized_image_name(name) == normalized


@cases(
    "pod, scores",
    ("pulling it can be saved", make_pod().image("big"), {"has-big": 50}),
    ("23 MiB are not worth it", make_pod().image("small"), {}),
    ("1000 MiB are all that counts", make_pod().image("huge"), {"has-big": 100}),
    ("for each container", make_pod().image("huge").image("other"), {"has-big": 100}),
    ("out of all of them", make_pod().image("big").image("other"), {"has-big": 24}),
    ("init containers count", make_pod().init_container(Container(image="big")), {"has-big": 50}),
    (
        "image volumes count as containers do",
        make_pod().image("other").volume(Volume(name="v", image=ImageVolume(reference="big"))),
        {"has-big": 24},
    ),
    (
        "no more than a second container would",
        make_pod().image("big").volume(Volume(name="v", image=ImageVolume(reference="big"))),
        {"has-big": 50},
    ),
    ("no containers", make_pod(), {}),
)
def test_score(pod: PodBuilder, scores: dict[str, int]) -> None:
    """Bytes on the node, times the share of nodes that have the image, on a scale from 23 to 1000 MiB a container."""
    halfway = 23 * MIB + 977 * MIB // 2
    snapshot = make_snapshot(
        make_node("has-big").image("big:latest", size=4 * halfway).image("huge:latest", size=2**63 - 1),
        make_node("has-small").image("small:latest", size=4 * 23 * MIB),
        make_node("empty-a"),
        make_node("empty-b"),
    )

    assert {node: score for node, score in score_nodes(ImageLocality(), snapshot, pod.obj()).items() if score} == scores


@pytest.mark.parametrize("extra_images", [7, 97])
def test_pods_with_few_and_with_many_images(extra_images: int) -> None:
    """Each image counts as often as the pod has it, however many other images it has."""
    size = 4000 * MIB
    nodes = [
        make_node(f"n{place}").image("shared:1", size=size).image(f"own-{place}:1", size=size) for place in range(4)
    ]
    pod = make_pod().image("shared:1").image("own-1:1").image("own-1:1")
    for place in range(extra_images):
        pod = pod.image(f"nowhere-{place}:1")

    scores = score_nodes(ImageLocality(), make_snapshot(*nodes), pod.obj())

    span = 1000 * (3 + extra_images) - 23
    assert (scores["n0"], scores["n1"]) == (100 * (4000 - 23) // span, 100 * (4000 + 2 * 1000 - 23) // span)


def test_an_image_on_many_nodes_scores_more() -> None:
    nodes = [make_node(f"n{number}") for number in range(4)]
    everywhere = [node.image("web:1", size=500 * MIB) for node in nodes]

    spread = score_nodes(ImageLocality(), make_snapshot(*everywhere), make_pod().image("web:1").obj())
    alone = score_nodes(ImageLocality(), make_snapshot(everywhere[0], *nodes[1:]), make_pod().image("web:1").obj())

    assert (spread["n0"], alone["n0"]) == (48, 10)
