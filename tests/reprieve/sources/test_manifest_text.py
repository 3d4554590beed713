"""What people paste: YAML or JSON, one object or many."""

import pytest

from extender.values import limits
from reprieve.sources.manifest_text import ManifestTextError, objects_in
from tests.kit.tables import cases


@cases(
    "text, kinds",
    ("documents", "kind: Pod\n---\nkind: Node\n", ["Pod", "Node"]),
    ("empty documents", "---\nkind: Pod\n--- # and nothing else\n", ["Pod"]),
    ("JSON", '{"kind": "Pod"}', ["Pod"]),
    ("a List", "kind: List\nitems:\n- kind: Pod\n- kind: Deployment\n", ["Pod", "Deployment"]),
    ("nothing", "", []),
)
def test_objects_are_found(text: str, kinds: list[str]) -> None:
    assert [obj["kind"] for obj in objects_in(text)] == kinds


def test_values_are_those_of_kubectl() -> None:
    (pod,) = objects_in("kind: Pod\nspec: {priority: 5, on: yes, text: 'yes'}\n")

    assert pod["spec"] == {"priority": 5, "true": True, "text": "yes"}


@cases(
    "text, why",
    ("broken", "kind: Pod\n---\nkind: [", "document 2: yaml: "),
    ("no object", "just text", "has to be a Kubernetes object"),
    ("no kind", "metadata: {}", "with apiVersion and kind"),
    ("too long", "x" * (limits.MANIFEST_CHARACTERS + 1), "too long"),
    (
        "a bomb",
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: "
        "[*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
        "aliasing",
    ),
)
def test_text_without_a_kubernetes_object_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ManifestTextError, match=why):
        objects_in(text)
