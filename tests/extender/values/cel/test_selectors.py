"""Which devices a CEL selector matches, the errors of invalid selectors, and the bound on their cost."""

import pytest

from extender.values.cel import CelError, compiled, facts_of
from extender.values.cel.checked_expression import FormError
from extender.values.cel.cost import Size, work_of
from extender.values.cel.quantities import Semver, SemverError
from extender.values.objects.devices import Device, DeviceAttribute, DeviceCapacity
from tests.kit.tables import cases

GPU = Device(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string="a100"),
        "healthy": DeviceAttribute(bool_value=True),
        "numa": DeviceAttribute(int_value=1),
        "driverVersion": DeviceAttribute(version="535.104.5-rc.1+build7"),
        "vendor.example.com/family": DeviceAttribute(string="ampere"),
    },
    capacity={"memory": DeviceCapacity(value="40Gi"), "vendor.example.com/slots": DeviceCapacity(value=7)},
)


def matches(expression: str, device: Device = GPU, driver: str = "dra.example.com") -> bool:
    return compiled(expression).matches(facts_of(driver, device))


@cases(
    "expression, answer",
    ("all devices", "true", True),
    ("by driver", 'device.driver == "dra.example.com"', True),
    ("another driver", 'device.driver == "other.example.com"', False),
    ("an attribute, by default in the driver's domain", 'device.attributes["dra.example.com"].model == "a100"', True),
    ("an attribute in another domain", 'device.attributes["vendor.example.com"].family == "ampere"', True),
    ("by index", 'device.attributes["dra.example.com"]["model"] == "a100"', True),
    ("an attribute of unknown type is enough if it is a bool", 'device.attributes["dra.example.com"].healthy', True),
    ("numbers", 'device.attributes["dra.example.com"].numa > 0', True),
    ("values of different types are not equal", 'device.attributes["dra.example.com"].numa == "1"', False),
    ("one of a list", 'device.attributes["dra.example.com"].model in ["a100", "h100"]', True),
    ("regular expressions", 'device.attributes["dra.example.com"].model.matches("^[ah]100$")', True),
    ("functions on strings", 'device.attributes["dra.example.com"].model.lowerAscii().startsWith("a")', True),
    ("names for values", 'cel.bind(dra, device.attributes["dra.example.com"], dra.healthy && dra.numa == 1)', True),
    ("a domain that is there", '"dra.example.com" in device.attributes', True),
    ("a domain that is not", '"nope" in device.attributes', False),
    ("an attribute that is there", 'has(device.attributes["dra.example.com"].model)', True),
    ("an attribute that is not", 'has(device.attributes["dra.example.com"].color)', False),
    ("an unknown domain reads as empty", 'has(device.attributes["nope"].model)', False),
    ("two of them", '!has(device.attributes["nope"].x) && !has(device.capacity["nada"].y)', True),
    ("optional attributes", 'device.attributes["dra.example.com"].?color.orValue("red") == "red"', True),
    ("macros over names", 'device.attributes["dra.example.com"].exists(name, name == "model")', True),
    ("capacity, compared", 'device.capacity["dra.example.com"].memory.compareTo(quantity("10Gi")) >= 0', True),
    ("capacity, greater", 'device.capacity["dra.example.com"].memory.isGreaterThan(quantity("40G"))', True),
    ("capacity, less", 'device.capacity["dra.example.com"].memory.isLessThan(quantity("1"))', False),
    ("equal quantities, spelled differently", 'device.capacity["dra.example.com"].memory == quantity("40960Mi")', True),
    ("capacity as a number", 'device.capacity["vendor.example.com"].slots.asInteger() == 7', True),
    ("sums of quantities", 'quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")', True),
    ("what is a quantity", 'isQuantity("1.3Gi") && !isQuantity("200K") && sign(quantity("-1")) == -1', True),
    ("versions", 'device.attributes["dra.example.com"].driverVersion.isGreaterThan(semver("535.104.5-rc.0"))', True),
    ("before the release", 'device.attributes["dra.example.com"].driverVersion.isLessThan(semver("535.104.5"))', True),
    ("parts of a version", 'device.attributes["dra.example.com"].driverVersion.major() == 535', True),
    ("versions, read loosely", 'semver("v1.0", true) == semver("1.0.0+a") && !isSemver("v1.0")', True),
    ("not shared unless it says", "device.allowMultipleAllocations", False),
    ("what does not matter may fail", 'false && device.attributes["nope"].x == 1', False),
    ("on either side", 'device.attributes["nope"].x == 1 || true', True),
)
def test_selectors(expression: str, answer: bool) -> None:
    """A selector asks for driver, attributes and capacity of a device."""
    assert matches(expression) is answer


@cases(
    "expression, message",
    ("no bool", "1", "must evaluate to bool or the unknown type, not int"),
    ("far from a bool", '{"a": [1.5]}', "must evaluate to bool or the unknown type, not map(string, list(double))"),
    ("a quantity", 'device.capacity["x"].memory', "must evaluate to bool or the unknown type, not kubernetes.Quantity"),
    (
        "unknown name",
        "foo",
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
    ),
    (
        "unknown function, on a later line",
        "true &&\n  nope(1)",
        "compilation failed: ERROR: <input>:2:7: undeclared reference to 'nope' (in container '')\n |   nope(1)\n "
        "| ......^",
    ),
    (
        "types that do not go together",
        '1 + "a" == 2',
        "compilation failed: ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
        ' | 1 + "a" == 2\n | ..^',
    ),
    (
        "a quantity is no string",
        'quantity("1") == "1"',
        "compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_' applied to "
        "'(kubernetes.Quantity, string)'\n"
        ' | quantity("1") == "1"\n | ..............^',
    ),
    ("half a character", "\ud800", "compilation failed: the expression is no valid Unicode"),
)
def test_selectors_that_do_not_compile(expression: str, message: str) -> None:
    """A faulty selector is told what is wrong and where."""
    with pytest.raises(CelError) as raised:
        compiled(expression)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    "expression", ["", " ", "?!", "device.", "'", "(" * 500, "!" * 50_000, "[" * 40 + "]" * 40, "a." * 5000 + "b"]
)
def test_texts_that_are_no_expressions(expression: str) -> None:
    """Whatever is written as a selector, compiling it ends, and soon."""
    with pytest.raises(CelError, match=r"^compilation failed: "):
        compiled(expression)


@cases(
    "expression, message",
    ("no such attribute", 'device.attributes["dra.example.com"].color == "red"', "no such key: color"),
    ("no such domain", 'device.attributes["nope"].color == "red"', "no such key: color"),
    ("a string is not greater than a number", 'device.attributes["dra.example.com"].model > 3', "no such overload"),
    ("nor a quantity", 'device.attributes["dra.example.com"].model.isGreaterThan(quantity("1"))', "no such overload"),
    ("nor a map with an optional in it", 'dyn({"a": optional.of(1)}).isLessThan(quantity("1"))', "no such overload"),
    ("an optional is no text", 'quantity(dyn(optional.of("1"))).isInteger()', "no such overload"),
    ("nor a bool", "dyn(optional.of(true))", "CEL result of type optional_type could not be converted to bool"),
    ("a version is no text", 'device.attributes["dra.example.com"].driverVersion.startsWith("5")', "no such overload"),
    (
        "an attribute that is no bool",
        'device.attributes["dra.example.com"].model',
        "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'",
    ),
    (
        "nor is a number",
        'device.attributes["dra.example.com"].numa',
        "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
    ),
    ("dividing by zero", "1 / 0 == 1", "division by zero"),
    ("no quantity", 'quantity("200K") == quantity("1")', "unable to parse quantity's suffix"),
    ("no whole number", 'quantity("0.5").asInteger() == 1', "cannot convert value to integer"),
    ("no version", 'semver("1.2").major() == 1', "No Major.Minor.Patch elements found"),
    (
        "forged",
        'dyn(b"kubernetes.Quantity:x").isGreaterThan(quantity("1"))',
        "invalid literal for int() with base 10: 'x'",
    ),
)
def test_selectors_that_fail(expression: str, message: str) -> None:
    """A selector that makes no sense for a device fails, rather than not to match."""
    with pytest.raises(CelError) as raised:
        matches(expression)

    assert str(raised.value) == message


@cases(
    "device, message",
    ("of unknown type", Device(attributes={"x": DeviceAttribute()}), "attribute x: unsupported attribute value"),
    (
        "no version",
        Device(attributes={"x": DeviceAttribute(version="1.0")}),
        "attribute x: parse semantic version: No Major.Minor.Patch elements found",
    ),
    (
        "no quantity",
        Device(capacity={"x": DeviceCapacity(value="1K")}),
        "capacity x: unable to parse quantity's suffix",
    ),
)
def test_devices_that_cannot_be_read(device: Device, message: str) -> None:
    """A device with a faulty attribute is no match and no mismatch."""
    with pytest.raises(CelError) as raised:
        matches("true", device)

    assert str(raised.value) == message


def nested(rounds: int, inner: str = "true") -> str:
    expression = inner
    for name in "abcdefgh"[:rounds]:
        expression = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all({name}, {expression})"
    return expression


def doubled(times: int) -> str:
    expression = f"x{times}.size() > 0"
    for number in range(times, 0, -1):
        expression = f"cel.bind(x{number}, x{number - 1} + x{number - 1}, {expression})"
    return f'cel.bind(x0, "ab", {expression})'


@cases(
    "expression",
    ("loops in loops", nested(8)),
    ("a string doubled and doubled", doubled(25)),
    ("a list doubled and doubled", "[[1]]" + ".map(x, [x, x])" * 25 + " == []"),
    ("replaced by more and more", '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 10 + ' == ""'),
    ("split and joined by more", '"aaaa"' + '.split("").join("bbbbbbbb")' * 12 + ' == ""'),
    ("quoted and quoted", "strings.quote(" * 15 + '"' + "\\\\" * 500 + '"' + ")" * 15 + ' == ""'),
    ("thousands of large patterns", "[" + "1," * 9000 + '1].all(x, "a".matches("(a{900})" + string(x)))'),
    ("thousands of domains", "[" + "1," * 9000 + '1].all(x, has(device.attributes[string(x) + "d"].y) || true)'),
)
def test_selectors_that_cost_too_much(expression: str) -> None:
    """A selector that would take long, or much memory, is stopped or not begun."""
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        matches(expression)


def test_a_device_beyond_all_bounds_makes_selectors_costly() -> None:
    """The bound counts with what devices have at most; a device that has more is counted as it is."""
    huge = Device(attributes={"text": DeviceAttribute(string="a" * 20_000_000)})

    with pytest.raises(CelError, match="actual cost limit exceeded"):
        matches('device.attributes["dra.example.com"].text.contains("b")', huge)
    assert not matches('device.attributes["dra.example.com"].text == "b"', huge)


@pytest.mark.parametrize("data", [b"", b"\x08\x01", b"\x12\x02\x22\x00", b"\x0b"])
def test_the_cost_of_an_unknown_form(data: bytes) -> None:
    with pytest.raises(FormError):
        work_of(data, {"device.driver": Size(1, 1)})


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("1.0.0", "2.0.0"),
        ("1.9.0", "1.10.0"),
        ("1.0.1", "1.0.2"),
        ("1.0.0-alpha", "1.0.0"),
        ("1.0.0-alpha", "1.0.0-alpha.1"),
        ("1.0.0-alpha.1", "1.0.0-alpha.beta"),
        ("1.0.0-2", "1.0.0-11"),
    ],
)
def test_versions_are_ordered(smaller: str, larger: str) -> None:
    """Numbers by value, prereleases before releases, numbers before words."""
    one, other, same = map(Semver.parse, (smaller, larger, smaller))

    assert (one < other, other < one, one < same) == (True, False, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.0.0", 'Invalid character(s) found in major number "a"'),
        ("1.01.0", 'Minor number must not contain leading zeroes "01"'),
        ("1.0.x", 'Invalid character(s) found in patch number "x"'),
        ("1..0", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("1.0.18446744073709551616", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
        ("1.0." + "9" * 5000, f'strconv.ParseUint: parsing "{"9" * 5000}": value out of range'),
        ("1.0.0-", "Prerelease is empty"),
        ("1.0.0-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.0.0-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.0.0+", "Build meta data is empty"),
        ("1.0.0+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_texts_that_are_no_versions(text: str, message: str) -> None:
    """A version is three numbers, and identifiers that may follow."""
    with pytest.raises(SemverError) as raised:
        Semver.parse(text)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "version"),
    [("v1", "1.0.0"), ("1.2", "1.2.0"), ("01.002.0", "1.2.0"), ("v1.2.03-rc.1", "1.2.3-rc.1"), ("0.0.0", "0.0.0")],
)
def test_normalized_versions(text: str, version: str) -> None:
    """A leading v and leading zeros go, missing parts are zero."""
    assert str(Semver.parse_normalized(text)) == version


def test_a_short_version_has_no_prerelease() -> None:
    """Even loosely read, 1.2-rc.1 is no version."""
    with pytest.raises(SemverError, match="short version cannot contain PreRelease/Build meta data"):
        Semver.parse_normalized("1.2-rc")
