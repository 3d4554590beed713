"""Names, keys and values are judged as Kubernetes judges them, and refusals read as Kubernetes writes them."""

from collections.abc import Callable

from extender.values.golang.field_errors import aggregate, child, index, invalid, not_supported
from extender.values.golang.quoting import quoted
from extender.values.objects.name_syntax import (
    dns_label_errors,
    label_key_errors,
    label_value_errors,
    regex_error,
    subdomain_errors,
)
from extender.values.objects.resource_names import (
    is_extended_resource_name,
    is_pod_level_resource,
    is_scalar_resource_name,
)
from tests.kit.tables import cases

SUBDOMAIN_OF_253 = ".".join(["a" * 62] * 4) + "aa"


@cases(
    "errors_of, good, bad",
    (
        "label keys",
        label_key_errors,
        ["a", "A_b.c-1", "x.y/Z", "a" * 63, f"{SUBDOMAIN_OF_253}/a"],
        ["", "/", "/a", "a/", "a/b/c", "-a", "a\n", "a" * 64, "X.y/z", f"{SUBDOMAIN_OF_253}a/b", "é" * 32],
    ),
    (
        "label values",
        label_value_errors,
        ["", "a", "A_b.c-1", "a" * 63],
        ["-", "a b", "a\n", "a/b", "a" * 64, "\ud800"],
    ),
    ("DNS labels", dns_label_errors, ["a", "my-name", "0"], ["", "A", "a.b", "-a", "a-", "a" * 64]),
    (
        "object names",
        subdomain_errors,
        ["a", "a.b-c.d", SUBDOMAIN_OF_253],
        ["", "A", "a..b", ".a", "a_b", f"{SUBDOMAIN_OF_253}a"],
    ),
)
def test_valid_names_have_no_errors_and_invalid_ones_have(
    errors_of: Callable[[str], list[str]], good: list[str], bad: list[str]
) -> None:
    assert [text for text in good if errors_of(text)] == []
    assert [text for text in bad if not errors_of(text)] == []


def test_several_things_wrong_with_a_key() -> None:
    """Prefix and name are judged each for itself, length and form as well."""
    prefix_error, too_long, wrong_form = label_key_errors("A/" + "-" * 64)

    assert prefix_error.startswith(
        "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
    )
    assert too_long == "name part must be no more than 63 bytes"
    assert wrong_form.startswith(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    )
    assert label_key_errors("/a") == ["prefix part must be non-empty"]


def test_dots_in_a_label_are_named() -> None:
    """A subdomain where a label belongs is told apart from other mistakes."""
    assert dns_label_errors("a.b") == ["must not contain dots"]


def test_patterns_in_errors() -> None:
    """Examples are strung together with upstream's odd commas."""
    assert regex_error("bad", "[a]") == "bad (regex used for validation is '[a]')"
    assert regex_error("bad", "[a]", "a", "b") == "bad (e.g. 'a',  or 'b', regex used for validation is '[a]')"


def test_errors_about_fields() -> None:
    """A path, the kind of error, the value as Go prints it, and the reason."""
    path = index(child(child("", "spec"), "items"), 2)

    assert str(invalid(path, 'a"b', "no")) == 'spec.items[2]: Invalid value: "a\\"b": no'
    assert (
        str(invalid(path, ["<a>", "\u2028"], "no")) == 'spec.items[2]: Invalid value: ["\\u003ca\\u003e","\\u2028"]: no'
    )
    assert str(invalid(path, None, "no")) == "spec.items[2]: Invalid value: null: no"
    assert (
        str(not_supported(path, "x", ["a", "b"])) == 'spec.items[2]: Unsupported value: "x": supported values: "a", "b"'
    )


def test_several_errors_are_one_text() -> None:
    """One error stands alone, several stand in brackets, the same one is told once."""
    assert aggregate(["a"]) == "a"
    assert aggregate(["a", "a"]) == "a"
    assert aggregate(["a", "b", "a"]) == "[a, b]"


def test_quoting() -> None:
    """Quotes, backslashes and what cannot be printed are escaped as by Go's %q; other scripts are not."""
    assert quoted('é"\\\n\x00\x7f\u200b\U000e0001 ') == '"é\\"\\\\\\n\\x00\\x7f\\u200b\\U000e0001 "'


def test_kinds_of_resources() -> None:
    """Domains, and a few prefixes, make a resource one that is counted by itself."""
    huge = "hugepages-" + "x" * 400
    scalars = [
        "example.com/gpu",
        "hugepages-1Gi",
        huge,
        "attachable-volumes-csi-x",
        "kubernetes.io/batman",
        "x.kubernetes.io/y",
    ]
    rest = ["cpu", "pods", "requests.example.com/gpu", "gpu", "Example.com/gpu", "example.com/", "a/b/c", "x" * 400]

    assert [name for name in scalars if not is_scalar_resource_name(name)] == []
    assert [name for name in rest if is_scalar_resource_name(name)] == []
    assert [name for name in scalars if is_extended_resource_name(name)] == ["example.com/gpu"]
    assert [name for name in scalars + rest if is_pod_level_resource(name)] == ["hugepages-1Gi", huge, "cpu"]
