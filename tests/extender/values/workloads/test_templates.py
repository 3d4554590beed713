"""Templates have short, stable names."""

from extender.values.workloads.templates import template_hash

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}


def test_a_template_keeps_its_hash_whatever_the_order_of_its_members() -> None:
    reordered = {"spec": TEMPLATE["spec"], "metadata": TEMPLATE["metadata"]}

    assert template_hash(reordered) == template_hash(TEMPLATE)


def test_another_template_or_a_collision_gives_another_hash() -> None:
    other = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "web:2"}]}}

    hashes = {template_hash(TEMPLATE), template_hash(TEMPLATE, 1), template_hash(TEMPLATE, 2), template_hash(other)}
    assert len(hashes) == 4
