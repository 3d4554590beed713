"""Which devices a CEL selector matches, the errors of invalid selectors, and the bound on their cost."""

import pytest

from extender.values.cel import CelError, compiled, facts_of
from extender.values.cel.checked_expression import FormError
from extender.values.cel.cost import Size, work_of
from extender.values.cel.quantities import Semver, SemverError
from extender.values.objects.devices import Device, DeviceAttribute, DeviceCapacity

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


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        pytest.param("true", True, id="all devices"),
        pytest.param('device.driver == "dra.example.com"', True, id="by driver"),
        pytest.param('device.driver == "other.example.com"', False, id="another driver"),
        pytest.param(
            'device.attributes["dra.example.com"].model == "a100"',
            True,
            id="an attribute, by default in the driver's domain",
        ),
        pytest.param(
            'device.attributes["vendor.example.com"].family == "ampere"', True, id="an attribute in another domain"
        ),
        pytest.param('device.attributes["dra.example.com"]["model"] == "a100"', True, id="by index"),
        pytest.param(
            'device.attributes["dra.example.com"].healthy',
            True,
            id="an attribute of unknown type is enough if it is a bool",
        ),
        pytest.param('device.attributes["dra.example.com"].numa > 0', True, id="numbers"),
        pytest.param(
            'device.attributes["dra.example.com"].numa == "1"', False, id="values of different types are not equal"
        ),
        pytest.param('device.attributes["dra.example.com"].model in ["a100", "h100"]', True, id="one of a list"),
        pytest.param('device.attributes["dra.example.com"].model.matches("^[ah]100$")', True, id="regular expressions"),
        pytest.param(
            'device.attributes["dra.example.com"].model.lowerAscii().startsWith("a")', True, id="functions on strings"
        ),
        pytest.param(
            'cel.bind(dra, device.attributes["dra.example.com"], dra.healthy && dra.numa == 1)',
            True,
            id="names for values",
        ),
        pytest.param('"dra.example.com" in device.attributes', True, id="a domain that is there"),
        pytest.param('"nope" in device.attributes', False, id="a domain that is not"),
        pytest.param('has(device.attributes["dra.example.com"].model)', True, id="an attribute that is there"),
        pytest.param('has(device.attributes["dra.example.com"].color)', False, id="an attribute that is not"),
        pytest.param('has(device.attributes["nope"].model)', False, id="an unknown domain reads as empty"),
        pytest.param('!has(device.attributes["nope"].x) && !has(device.capacity["nada"].y)', True, id="two of them"),
        pytest.param(
            'device.attributes["dra.example.com"].?color.orValue("red") == "red"', True, id="optional attributes"
        ),
        pytest.param(
            'device.attributes["dra.example.com"].exists(name, name == "model")', True, id="macros over names"
        ),
        pytest.param(
            'device.capacity["dra.example.com"].memory.compareTo(quantity("10Gi")) >= 0', True, id="capacity, compared"
        ),
        pytest.param(
            'device.capacity["dra.example.com"].memory.isGreaterThan(quantity("40G"))', True, id="capacity, greater"
        ),
        pytest.param('device.capacity["dra.example.com"].memory.isLessThan(quantity("1"))', False, id="capacity, less"),
        pytest.param(
            'device.capacity["dra.example.com"].memory == quantity("40960Mi")',
            True,
            id="equal quantities, spelled differently",
        ),
        pytest.param('device.capacity["vendor.example.com"].slots.asInteger() == 7', True, id="capacity as a number"),
        pytest.param(
            'quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")', True, id="sums of quantities"
        ),
        pytest.param(
            'isQuantity("1.3Gi") && !isQuantity("200K") && sign(quantity("-1")) == -1', True, id="what is a quantity"
        ),
        pytest.param(
            'device.attributes["dra.example.com"].driverVersion.isGreaterThan(semver("535.104.5-rc.0"))',
            True,
            id="versions",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].driverVersion.isLessThan(semver("535.104.5"))',
            True,
            id="before the release",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].driverVersion.major() == 535', True, id="parts of a version"
        ),
        pytest.param(
            'semver("v1.0", true) == semver("1.0.0+a") && !isSemver("v1.0")', True, id="versions, read loosely"
        ),
        pytest.param("device.allowMultipleAllocations", False, id="not shared unless it says"),
        pytest.param('false && device.attributes["nope"].x == 1', False, id="what does not matter may fail"),
        pytest.param('device.attributes["nope"].x == 1 || true', True, id="on either side"),
    ],
)
def test_selectors(expression: str, answer: bool) -> None:
    """A selector asks for driver, attributes and capacity of a device."""
    assert matches(expression) is answer


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="no bool"),
        pytest.param(
            '{"a": [1.5]}',
            "must evaluate to bool or the unknown type, not map(string, list(double))",
            id="far from a bool",
        ),
        pytest.param(
            'device.capacity["x"].memory',
            "must evaluate to bool or the unknown type, not kubernetes.Quantity",
            id="a quantity",
        ),
        pytest.param(
            "foo",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
            id="unknown name",
        ),
        pytest.param(
            "true &&\n  nope(1)",
            "compilation failed: ERROR: <input>:2:7: undeclared reference to 'nope' (in container '')\n |   nope(1)\n "
            "| ......^",
            id="unknown function, on a later line",
        ),
        pytest.param(
            '1 + "a" == 2',
            "compilation failed: ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
            ' | 1 + "a" == 2\n | ..^',
            id="types that do not go together",
        ),
        pytest.param(
            'quantity("1") == "1"',
            "compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_' applied to "
            "'(kubernetes.Quantity, string)'\n"
            ' | quantity("1") == "1"\n | ..............^',
            id="a quantity is no string",
        ),
        pytest.param("\ud800", "compilation failed: the expression is no valid Unicode", id="half a character"),
    ],
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


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            'device.attributes["dra.example.com"].color == "red"', "no such key: color", id="no such attribute"
        ),
        pytest.param('device.attributes["nope"].color == "red"', "no such key: color", id="no such domain"),
        pytest.param(
            'device.attributes["dra.example.com"].model > 3',
            "no such overload",
            id="a string is not greater than a number",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].model.isGreaterThan(quantity("1"))',
            "no such overload",
            id="nor a quantity",
        ),
        pytest.param(
            'dyn({"a": optional.of(1)}).isLessThan(quantity("1"))',
            "no such overload",
            id="nor a map with an optional in it",
        ),
        pytest.param('quantity(dyn(optional.of("1"))).isInteger()', "no such overload", id="an optional is no text"),
        pytest.param(
            "dyn(optional.of(true))", "CEL result of type optional_type could not be converted to bool", id="nor a bool"
        ),
        pytest.param(
            'device.attributes["dra.example.com"].driverVersion.startsWith("5")',
            "no such overload",
            id="a version is no text",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].model',
            "CEL result of type string could not be converted to bool: unsupported native conversion from string to "
            "'bool'",
            id="an attribute that is no bool",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].numa',
            "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
            id="nor is a number",
        ),
        pytest.param("1 / 0 == 1", "division by zero", id="dividing by zero"),
        pytest.param('quantity("200K") == quantity("1")', "unable to parse quantity's suffix", id="no quantity"),
        pytest.param('quantity("0.5").asInteger() == 1', "cannot convert value to integer", id="no whole number"),
        pytest.param('semver("1.2").major() == 1', "No Major.Minor.Patch elements found", id="no version"),
        pytest.param(
            'dyn(b"kubernetes.Quantity:x").isGreaterThan(quantity("1"))',
            "invalid literal for int() with base 10: 'x'",
            id="forged",
        ),
    ],
)
def test_selectors_that_fail(expression: str, message: str) -> None:
    """A selector that makes no sense for a device fails, rather than not to match."""
    with pytest.raises(CelError) as raised:
        matches(expression)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("device", "message"),
    [
        pytest.param(
            Device(attributes={"x": DeviceAttribute()}),
            "attribute x: unsupported attribute value",
            id="of unknown type",
        ),
        pytest.param(
            Device(attributes={"x": DeviceAttribute(version="1.0")}),
            "attribute x: parse semantic version: No Major.Minor.Patch elements found",
            id="no version",
        ),
        pytest.param(
            Device(capacity={"x": DeviceCapacity(value="1K")}),
            "capacity x: unable to parse quantity's suffix",
            id="no quantity",
        ),
    ],
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


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(nested(8), id="loops in loops"),
        pytest.param(doubled(25), id="a string doubled and doubled"),
        pytest.param("[[1]]" + ".map(x, [x, x])" * 25 + " == []", id="a list doubled and doubled"),
        pytest.param('"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 10 + ' == ""', id="replaced by more and more"),
        pytest.param('"aaaa"' + '.split("").join("bbbbbbbb")' * 12 + ' == ""', id="split and joined by more"),
        pytest.param("strings.quote(" * 15 + '"' + "\\\\" * 500 + '"' + ")" * 15 + ' == ""', id="quoted and quoted"),
        pytest.param(
            "[" + "1," * 9000 + '1].all(x, "a".matches("(a{900})" + string(x)))', id="thousands of large patterns"
        ),
        pytest.param(
            "[" + "1," * 9000 + '1].all(x, has(device.attributes[string(x) + "d"].y) || true)',
            id="thousands of domains",
        ),
    ],
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
    one, other = Semver.parse(smaller), Semver.parse(larger)

    assert (one.compare(other), other.compare(one), one.compare(one)) == (-1, 1, 0)


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
