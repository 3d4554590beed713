"""What people paste: YAML or JSON, one object or many."""

import pytest

from extender.values import limits
from reprieve.sources.manifest_text import ManifestTextError, objects_in


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("kind: Pod\n---\nkind: Node\n", ["Pod", "Node"], id="documents"),
        pytest.param("---\nkind: Pod\n--- # and nothing else\n", ["Pod"], id="empty documents"),
        pytest.param('{"kind": "Pod"}', ["Pod"], id="JSON"),
        pytest.param("kind: List\nitems:\n- kind: Pod\n- kind: Deployment\n", ["Pod", "Deployment"], id="a List"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_objects_are_found(text: str, kinds: list[str]) -> None:
    assert [obj["kind"] for obj in objects_in(text)] == kinds


def test_values_are_those_of_kubectl() -> None:
    (pod,) = objects_in("kind: Pod\nspec: {priority: 5, on: yes, text: 'yes'}\n")

    assert pod["spec"] == {"priority": 5, "true": True, "text": "yes"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("kind: Pod\n---\nkind: [", "document 2: yaml: ", id="broken"),
        pytest.param("just text", "has to be a Kubernetes object", id="no object"),
        pytest.param("metadata: {}", "with apiVersion and kind", id="no kind"),
        pytest.param("x" * (limits.MANIFEST_CHARACTERS + 1), "too long", id="too long"),
        pytest.param("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
                     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: "
                     "[*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n", "aliasing", id="a bomb"),
    ],
)  # fmt: skip
def test_text_without_a_kubernetes_object_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ManifestTextError, match=why):
        objects_in(text)
