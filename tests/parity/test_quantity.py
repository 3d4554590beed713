"""Quantities read, add, compare, round and print as apimachinery's resource.Quantity does."""

from typing import Any

from extender.values.objects.quantity import Quantity, QuantityError, milli_value_of, quantity_of, scale_up, value_of
from tests.kit.many_cases import each_case
from tests.parity.cases import component_cases


def to_read() -> list[dict[str, Any]]:
    return [case for case in component_cases("quantity") if case["input"]["op"] != "sum"]


def sums() -> list[dict[str, Any]]:
    return [case for case in component_cases("quantity") if case["input"]["op"] == "sum"]


def parsed() -> list[dict[str, Any]]:
    return [case for case in to_read() if case["input"]["op"] == "parse" and case["expect"]["ok"]]


def from_json(raw: str) -> Quantity:
    """The text as upstream takes it out of a JSON value: escapes in it are not undone."""
    if raw == "null":
        return Quantity()
    is_text = len(raw) >= 2 and raw[0] == raw[-1] == '"'
    return Quantity.parse((raw[1:-1] if is_text else raw).strip())


def as_int64(quantity: Quantity) -> int | None:
    """Whole units that upstream has without a big decimal, and without rounding."""
    if quantity.is_big or quantity.exponent < 0:
        return None
    whole, fits = scale_up(quantity.amount, quantity.exponent)
    return whole if fits else None


def described(quantity: Quantity) -> dict[str, Any]:
    whole = as_int64(quantity)
    answer = {
        "asInt64Exact": whole is not None,
        "canonical": quantity.canonical(),
        "format": quantity.format,
        "isZero": not quantity,
        "json": str(quantity),
        "milliValue": quantity.milli_value(),
        "sign": quantity.sign,
        "string": str(quantity),
        "value": quantity.value(),
    }
    return answer if whole is None else answer | {"asInt64": whole}


def read(text: str, is_json: bool) -> dict[str, Any]:
    try:
        quantity = from_json(text) if is_json else Quantity.parse(text)
    except QuantityError as exc:
        return {"ok": False, "error": str(exc)}
    return {"ok": True} | described(quantity)


def total_of(items: list[dict[str, str]]) -> Quantity:
    total = Quantity.parse(items[0]["s"])
    for item in items[1:]:
        term = Quantity.parse(item["s"])
        total = total + term if item["op"] == "+" else total - term
    return total


@each_case(to_read)
def test_reading(case: dict[str, Any]) -> None:
    """A text or JSON value becomes the same quantity, or the same refusal."""
    question = case["input"]

    answer = read(question.get("s", question.get("raw")), is_json=question["op"] == "json")

    assert case["expect"] == answer


@each_case(sums)
def test_sums(case: dict[str, Any]) -> None:
    """A chain of additions and subtractions ends in the same quantity."""
    question, expected = case["input"], dict(case["expect"])
    rounding = expected.pop("roundUp", None)

    total = total_of(question["items"])

    against = Quantity.parse(question["cmpWith"])
    assert expected == described(total) | {"cmp": total.cmp(against), "equal": total == against}
    if rounding is not None:
        rounded, exact = total.round_up(rounding["scale"])
        assert rounding == {"scale": rounding["scale"], "exact": exact, "canonical": rounded.canonical()}


@each_case(parsed)
def test_quick_reading(case: dict[str, Any]) -> None:
    """The cached functions of the hot path give the same numbers as the quantity."""
    raw = case["input"]["s"]

    numbers = value_of(raw), milli_value_of(raw), str(quantity_of(raw))

    assert numbers == (case["expect"]["value"], case["expect"]["milliValue"], case["expect"]["string"])
