"""A node decoded with images that others have, too, is the node that it would be alone."""

import pytest
from msgspec import Raw

from extender.values.objects import decoding
from extender.values.objects.node import Node, NodeDecoder
from tests.kit.tables import cases

IMAGE = '{"names":["a@sha256:1","a:1"],"sizeBytes":5}'


def node_json(images: str, more: str = "") -> Raw:
    return Raw(
        f'{{"metadata":{{"name":"n"}},"spec":{{"unschedulable":true}},"status":{{"images":{images}{more}}}}}'.encode()
    )


@cases(
    "data",
    ("an image", node_json(f"[{IMAGE}]")),
    ("images with parts missing", node_json(f'[{IMAGE},{{"names":["b"]}},{{}}]')),
    ("no images", node_json("[]")),
    ("images twice", node_json(f'[{IMAGE}],"images":[{{"names":["c"]}}]')),
    ("null for all images", node_json("null")),
    ("null for an image", node_json(f"[{IMAGE},null]")),
    ("null for the parts of an image", node_json('[{"names":null,"sizeBytes":null}]')),
    ("null for a name", node_json('[{"names":[null]}]')),
    ("no list", node_json('{"names":[]}')),
    ("half a character", node_json('[{"names":["\\ud800"]}]')),
    ("a number for a name", node_json('[{"names":[1]}]')),
    ("a size out of range", node_json('[{"names":["a"],"sizeBytes":9223372036854775808}]')),
    ("no status", Raw(b'{"metadata":{"name":"n"}}')),
    ("null for the status", Raw(b'{"metadata":{"name":"n"},"status":null}')),
    ("no object", Raw(b"[]")),
    ("no end", Raw(b'{"status":{"images":[{}]')),
)
def test_a_node_is_decoded_or_refused_as_any_object(data: Raw) -> None:
    decode = NodeDecoder()
    decode(node_json(f"[{IMAGE}]"))

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

    node = NodeDecoder()(node_json(f"[{IMAGE}]", status))

    for part in (node, node.status):
        assert [name for name in part.__struct_fields__ if getattr(part, name) == getattr(type(part)(), name)] == []


def test_an_image_of_several_nodes_is_there_once() -> None:
    decode = NodeDecoder()

    first, second = decode(node_json(f'[{IMAGE},{{"names":["b"]}}]')), decode(node_json(f"[{IMAGE}]"))

    assert first.status.images[0] is second.status.images[0]


def test_an_image_of_another_size_is_another() -> None:
    decode = NodeDecoder()
    decode(node_json(f"[{IMAGE}]"))

    (image,) = decode(node_json(f"[{IMAGE.replace('5', '6')}]")).status.images

    assert image.size_bytes == 6
