"""A node decoded with images that others have, too, is the node that it would be alone."""

import pytest
from msgspec import Raw

from extender.values.objects import decoding
from extender.values.objects.node import Node, NodeDecoder

IMAGE = '{"names":["a@sha256:1","a:1"],"sizeBytes":5}'


def written(images: str, more: str = "") -> Raw:
    return Raw(
        f'{{"metadata":{{"name":"n"}},"spec":{{"unschedulable":true}},"status":{{"images":{images}{more}}}}}'.encode()
    )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(written(f"[{IMAGE}]"), id="an image"),
        pytest.param(written(f'[{IMAGE},{{"names":["b"]}},{{}}]'), id="images with parts missing"),
        pytest.param(written("[]"), id="no images"),
        pytest.param(written(f'[{IMAGE}],"images":[{{"names":["c"]}}]'), id="images twice"),
        pytest.param(written("null"), id="null for all images"),
        pytest.param(written(f"[{IMAGE},null]"), id="null for an image"),
        pytest.param(written('[{"names":null,"sizeBytes":null}]'), id="null for the parts of an image"),
        pytest.param(written('[{"names":[null]}]'), id="null for a name"),
        pytest.param(written('{"names":[]}'), id="no list"),
        pytest.param(written('[{"names":["\\ud800"]}]'), id="half a character"),
        pytest.param(written('[{"names":[1]}]'), id="a number for a name"),
        pytest.param(written('[{"names":["a"],"sizeBytes":9223372036854775808}]'), id="a size out of range"),
        pytest.param(Raw(b'{"metadata":{"name":"n"}}'), id="no status"),
        pytest.param(Raw(b'{"metadata":{"name":"n"},"status":null}'), id="null for the status"),
        pytest.param(Raw(b"[]"), id="no object"),
        pytest.param(Raw(b'{"status":{"images":[{}]'), id="no end"),
    ],
)
def test_a_node_is_decoded_or_refused_as_any_object(data: Raw) -> None:
    decode = NodeDecoder()
    decode(written(f"[{IMAGE}]"))

    try:
        expected = decoding.decode(Node, data)
    except decoding.DecodeError as exc:
        with pytest.raises(decoding.DecodeError) as refused:
            decode(data)
        assert str(refused.value) == str(exc)
    else:
        assert decode(data) == expected
        assert type(decode(data).status) is type(expected.status)


def test_all_parts_of_a_node_are_kept() -> None:
    status = ',"allocatable":{"cpu":"1"},"capacity":{"cpu":2},"declaredFeatures":["F"],"conditions":[{"type":"Ready","status":"True"}]'

    node = NodeDecoder()(written(f"[{IMAGE}]", status))

    for part in (node, node.status):
        assert [name for name in part.__struct_fields__ if getattr(part, name) == getattr(type(part)(), name)] == []


def test_an_image_of_several_nodes_is_there_once() -> None:
    decode = NodeDecoder()

    first, second = decode(written(f'[{IMAGE},{{"names":["b"]}}]')), decode(written(f"[{IMAGE}]"))

    assert first.status.images[0] is second.status.images[0]


def test_an_image_of_another_size_is_another() -> None:
    decode = NodeDecoder()
    decode(written(f"[{IMAGE}]"))

    (image,) = decode(written(f"[{IMAGE.replace('5', '6')}]")).status.images

    assert image.size_bytes == 6
