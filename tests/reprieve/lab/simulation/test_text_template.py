"""Templates as text/template renders them."""

import pytest

from reprieve.lab.simulation.text_template import TemplateError, Value, is_constant, rendered

VALUES: dict[str, Value] = {"Index": 7, "Count": 50, "size": "2Gi", "flag": True}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("name: a", "name: a"),
        ("pod-{{.Index}}", "pod-7"),
        ("{{ .Index }} of {{- .Count -}}", "7 of 50"),
        ("{{.size}} {{.flag}}", "2Gi true"),
        ("{{DivideInt .Index 5}}", "1"),
        ("{{Mod .Index 5}}", "2"),
        ("{{Mod -7 5}}", "-2"),
        ("{{AddInt 1 (MultiplyInt .Index 2)}}", "15"),
        ("{{SubtractInt .Index 10}} {{DivideFloat .Index 2}}", "-3 3.5"),
        ("{{ AddFloat 0.5 0.5 }}", "1"),
        ('{{AddInt "3" 4}}', "7"),
    ],
)
def test_values_and_functions(template: str, text: str) -> None:
    assert rendered(template, VALUES) == text


@pytest.mark.parametrize(
    "action",
    ["", ".Nothing", "range .Items", "if .flag", ".Index | printf", "Unknown 1", "DivideInt 1 0", "AddInt .size", "Mod 1", "AddInt 1 )"],
)  # fmt: skip
def test_unsupported_action_is_quoted_in_the_error(action: str) -> None:
    with pytest.raises(TemplateError, match=r"^\{\{"):
        rendered(f"a: {{{{{action}}}}}", VALUES)


def test_an_action_has_an_end() -> None:
    with pytest.raises(TemplateError, match="has no end"):
        rendered("a: {{.Index", VALUES)


def test_nesting_has_a_limit() -> None:
    with pytest.raises(TemplateError):
        rendered("{{" + "AddInt (" * 5000 + "1" + ")" * 5000 + "}}", VALUES)


def test_a_text_without_actions_is_constant() -> None:
    assert is_constant("a: {b: 1}")
    assert not is_constant("a: {{.Index}}")
