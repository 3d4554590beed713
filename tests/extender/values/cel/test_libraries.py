"""The libraries that Kubernetes adds to CEL, one example for each promise of their documentation.

Upstream: apiserver/pkg/cel/library, ip.go, cidr.go, urls.go, format.go, regex.go, lists.go; cel-go/ext, sets.go,
lists.go.
"""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from extender.values.cel import CelError, CompileError, compiled, evaluate, facts_of, is_cheap
from extender.values.cel.library import FORMATS, OF_LISTS
from extender.values.objects.devices import Device, DeviceAttribute
from tests.kit.tables import cases

FACTS = facts_of(
    "dra.example.com",
    Device(
        attributes={
            "address": DeviceAttribute(string="10.1.2.3"),
            "home": DeviceAttribute(string="https://example.com/gpu"),
            "lanes": DeviceAttribute(int_value=8),
            "version": DeviceAttribute(version="1.2.3"),
        }
    ),
)
OF = 'device.attributes["dra.example.com"]'


def holds(expression: str) -> bool:
    return evaluate(expression, FACTS)


def error_of(expression: str) -> str:
    with pytest.raises(CelError) as raised:
        holds(expression)
    return str(raised.value)


# Addresses and networks.


@pytest.mark.parametrize(
    "expression",
    [
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1') && !isIP('')",
        "!isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && !isIP('010.0.0.1')",
        "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd')",
        "!ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8::0:0:0:abcd')",
        "ip('2001:DB8::1') == ip('2001:db8:0::1') && ip('1.1.1.1') != ip('1.1.1.2')",
        "string(ip('2001:DB8::0')) == '2001:db8::' && ['x'].map(x, string(ip('::1')))[0] == '::1'",
        "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('127.0.0.1').isUnspecified()",
        "ip('127.9.9.9').isLoopback() && ip('::1').isLoopback() && !ip('2001:db8::abcd').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "ip('ff02::1').isLinkLocalMulticast() && ip('ff12::1').isLinkLocalMulticast() && "
        "!ip('fd00::1').isLinkLocalMulticast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast() && "
        "!ip('fd80::1').isLinkLocalUnicast()",
        "ip('192.168.0.1').isGlobalUnicast() && ip('2001:db8::abcd').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast() && "
        "!ip('0.0.0.0').isGlobalUnicast()",
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && "
        "!isCIDR('10.0.0.0')",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
        "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('0.0.0.0/0').containsIP('::1')",
        "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24')) && "
        "!cidr('192.168.1.0/24').containsCIDR(cidr('192.168.2.0/24'))",
        "cidr('192.168.0.0/16').containsCIDR('192.168.0.0/16') && "
        "!cidr('192.168.0.0/24').containsCIDR('192.168.0.0/16')",
        "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('::1/128').ip().family() == 6",
        "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('192.168.0.1/24') != "
        "cidr('192.168.0.1/24').masked()",
        "cidr('192.168.0.0/16').prefixLength() == 16 && cidr('::1/128').prefixLength() == 128",
        "string(cidr('2001:DB8::/32')) == '2001:db8::/32'",
        "string(1) == '1' && string(true) == 'true' && string(b'a') == 'a'",
        f"cidr('10.0.0.0/8').containsIP({OF}.address)",
    ],
)
def test_addresses_and_networks(expression: str) -> None:
    assert is_cheap(expression)
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "ip('127.0.0.256') == ip('::')",
            'IP Address "127.0.0.256" parse error during conversion from string: ParseAddr("127.0.0.256"): IPv4 field '
            "has value >255",
        ),
        ("ip('fe80::1%eth0') == ip('::')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("ip.isCanonical('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        (
            "cidr('10.0.0.0/33').prefixLength() == 1",
            "network address parse error during conversion from string: " * 2
            + 'netip.ParsePrefix("10.0.0.0/33"): prefix length out of range',
        ),
        (
            "cidr('::ffff:1.2.3.4/128').prefixLength() == 1",
            'network address parse error during conversion from string: IPv4-mapped IPv6 address "::ffff:1.2.3.4/128" '
            "is not allowed",
        ),
        (f"cidr('10.0.0.0/8').containsIP({OF}.lanes)", "no such overload"),
        (f"{OF}.version.family() == 4", "no such overload"),
    ],
)
def test_malformed_address_is_a_conversion_error(expression: str, message: str) -> None:
    assert error_of(expression) == message


# URLs.


@pytest.mark.parametrize(
    "expression",
    [
        "isURL('https://user:pass@example.com:80/path?query=val') && isURL('/absolute-path') && isURL('mailto:a@b')",
        "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('') && !isURL('http://a b/')",
        "url('https://example.com/').getScheme() == 'https' && url('/path').getScheme() == ''",
        "url('https://example.com:80/').getHost() == 'example.com:80' && url('https://[::1]:80/').getHost() == "
        "'[::1]:80'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('/path').getHostname() == ''",
        "url('https://example.com:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
        "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
        "url('https://example.com/a%2Fb').getEscapedPath() == '/a%2Fb' && url('https://example.com').getEscapedPath() "
        "== ''",
        "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "url('https://example.com/path?key with spaces=value+more').getQuery() == {'key with spaces': ['value more']}",
        "url('https://example.com/path').getQuery() == {} && url('https://example.com/?a;b&c=%zz&d').getQuery() == "
        "{'d': ['']}",
        "url('HTTPS://example.com/#f') == url('https://example.com/#f') && url('http://a') != url('http://a/')",
        f"url({OF}.home).getHost() == 'example.com'",
    ],
)
def test_urls(expression: str) -> None:
    assert holds(expression)


def test_malformed_url_is_a_conversion_error() -> None:
    assert error_of("url('../a').getHost() == ''") == (
        'URL parse error during conversion from string: parse "../a": invalid URI for request'
    )


# Formats.


EXAMPLES = [
    ("dns1123Label", "my-label-name", "contains a space", "a lowercase RFC 1123 label must consist of"),
    ("dns1123Subdomain", "apiextensions.k8s.io", "contains a space", "a lowercase RFC 1123 subdomain must consist of"),
    ("dns1035Label", "my-label-name", "1a", "a DNS-1035 label must consist of"),
    ("qualifiedName", "apiextensions.k8s.io/v1beta1", "contains a space", "name part must consist of"),
    ("dns1123LabelPrefix", "my-label-prefix-", "-", "a lowercase RFC 1123 label must consist of"),
    ("dns1123SubdomainPrefix", "mysubdomain.prefix.-", "a space-", "a lowercase RFC 1123 subdomain must consist of"),
    ("dns1035LabelPrefix", "my-label-prefix-", "12-", "a DNS-1035 label must consist of"),
    ("labelValue", "my-cool-label-Value", "!!", "a valid label must be an empty string or consist of"),
    ("uri", "http://example.com", "a b", 'parse "a b": invalid URI for request'),
    ("uuid", "123e4567-E89B-12d3-a456-426614174000", "123e4567", "does not match the UUID format"),
    ("byte", "aGVsbG8=", "aGVsbG8", "invalid base64"),
    ("date", "2020-02-29", "2021-02-29", "invalid date"),
    ("datetime", "2021-01-01T00:00:00.5+01:00", "2021-01-01T24:00:00Z", "invalid datetime"),
]


@pytest.mark.parametrize(("name", "valid", "invalid", "error"), EXAMPLES)
def test_formats(name: str, valid: str, invalid: str, error: str) -> None:
    assert holds(f"!format.{name}().validate({json.dumps(valid)}).hasValue()")
    assert holds(f"format.{name}().validate({json.dumps(invalid)}).value()[0].startsWith({json.dumps(error)})")
    assert holds(f"format.named('{name}').value() == format.{name}()")


def test_every_format_has_an_example() -> None:
    assert [name for name, *_ in EXAMPLES] == list(FORMATS)


@pytest.mark.parametrize(
    "expression",
    [
        "!format.named('unknown').hasValue() && format.named('uuid').hasValue()",
        "format.uuid() != format.byte()",
        "format.byte().validate('aGVsbG8').orValue([]) == ['invalid base64'] && "
        "format.byte().validate('aGVsbG8=').orValue([]) == []",
        "[format.date(), format.uuid()].exists(f, !f.validate('2021-01-01').hasValue())",
        "{'a': format.byte().validate('x')}['a'].hasValue()",
        "optional.of(format.byte()).optMap(f, f.validate('x').hasValue()).value()",
        "cel.bind(f, format.named('date').value(), true ? f.validate('x').hasValue() : false)",
        "format.date().validate('0000-02-29') == optional.none()",
    ],
)
def test_formats_are_values_and_their_answers_optionals(expression: str) -> None:
    assert holds(expression)


# Regular expressions.


@pytest.mark.parametrize(
    "expression",
    [
        "'abc 123'.find('[0-9]+') == '123' && 'abc 123'.find('xyz') == '' && 'abc 123'.find('') == ''",
        "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('xyz') == []",
        "'123 abc 456'.findAll('[0-9]+', 1) == ['123'] && '123'.findAll('[0-9]', 0) == [] && '12'.findAll('[0-9]', -1) "
        "== ['1', '2']",
        "'abab'.findAll('a*') == ['a', 'a', '']",
        "'äöü ß'.find('[äöüß]+') == 'äöü' && 'äaß'.findAll('[^a]') == ['ä', 'ß']",
        "'Abc'.find('(?i)ABC') == 'Abc' && 'ab'.find('a|ab') == 'a'",
    ],
)
def test_regular_expressions(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?<!a)", "invalid or unsupported Perl syntax: `(?<!`"),
    ],
)
def test_malformed_regular_expression_is_an_error_in_gos_words(pattern: str, error: str) -> None:
    assert error_of(f"'a'.find('{pattern}') == ''") == f"Illegal regex: error parsing regexp: {error}"


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*.*)*b"])
def test_no_regular_expression_takes_longer_than_reading_the_text(pattern: str) -> None:
    """An engine that tries one way after the other would take longer than the universe is old."""
    assert holds(f"'{'a' * 500}'.find('{pattern}') == '' && '{'a' * 500}'.findAll('{pattern}').size() == 0")


# Lists and sets.


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3].isSorted() && ['a', 'b', 'b', 'c'].isSorted() && ![2.0, 1.0].isSorted() && [1].isSorted() && "
        "[].isSorted()",
        "[duration('1s'), duration('1m')].isSorted() && [1u, 2u].isSorted() && [false, true].isSorted() && [b'a', "
        "b'b'].isSorted()",
        "[1, 3].sum() == 4 && [1.0, 3.0].sum() == 4.0 && [].sum() == 0",
        "[3, 1].min() == 1 && [1, 3].max() == 3 && ['b', 'a'].min() == 'a' && [b'b', b'a'].max() == b'b' && [dyn(1), "
        "2.5].max() == 2.5",
        "[1, 2, 2, 3].indexOf(2) == 1 && ['a', 'b', 'b', 'c'].lastIndexOf('b') == 2 && [1.0].indexOf(1.1) == -1 && "
        "[].indexOf('x') == -1",
        "[dyn(true), 1].indexOf(1) == 1 && [dyn(1), 2].indexOf(2.0) == 1",
        "'abcb'.indexOf('b') == 1 && 'abcb'.lastIndexOf('b') == 3",
        "sets.contains([1, 2], [1]) && !sets.contains([1], [1, 2]) && sets.contains([], [])",
        "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [2]) && sets.intersects([1, 2], [2, 3]) && "
        "!sets.intersects([1], [])",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].sortBy(x, -x) == [2, 1] && [1, 1, 2].distinct() == [1, 2] && [1, "
        "2].reverse() == [2, 1]",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 3].slice(1, 2) == [2] && lists.range(3) == [0, 1, 2]",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "[5, 6].all(i, v, v == i + 5) && [5, 6].exists(i, v, i == 1 && v == 6) && [5, 6].transformList(i, v, v * i) == "
        "[0, 6]",
        "lists.range(['a', 'b'].size()) == [0, 1]",
    ],
)
def test_lists_and_sets(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[].min() == 1", "min called on empty list"),
        ("[9223372036854775807, 1].sum() == 0", "integer overflow"),
        ("[dyn(1), 'a'].max() == 1", "no such overload"),
        (f"[{OF}.version].isSorted() && [{OF}.version, {OF}.version].isSorted()", "no such overload"),
    ],
)
def test_lists_that_make_no_sense_are_errors(expression: str, message: str) -> None:
    assert error_of(expression) == message


@pytest.mark.parametrize("name", sorted({function.name for function in OF_LISTS}))
def test_an_optional_in_a_list_ends_the_worker_at_most(name: str) -> None:
    """The interpreter cannot convert it for a function in Python, and the process may end. So the worker is asked,
    which is started again.
    """
    argument = "1" if "ndexOf" in name else ""
    expression = f"dyn(dyn([optional.of(1), {{'a': optional.none()}}]).{name}({argument})) == 1"

    assert not is_cheap(expression)
    assert error_of(expression) in ("no such overload", "operation cancelled: actual cost limit exceeded")
    assert holds("[1].sum() == 1")


# What they may cost.


@cases(
    "expression",
    ("a long range", "lists.range(1000000000).size() > 0"),
    ("a range of unknown length", f"lists.range({OF}.lanes).size() > 0"),
    ("everything compared with everything", "lists.range(9000).distinct().size() > 0"),
    ("sets", "[lists.range(3000)].all(l, sets.equivalent(l, l))"),
    ("lists in a list", "lists.range(3000).map(x, lists.range(3000)).flatten().size() > 0"),
    (
        "patterns",
        "lists.range(5000).all(x, " + " || ".join(f"'{'x' * 90}'.find('x+y{n}') == ''" for n in range(20)) + ")",
    ),
)
def test_no_function_goes_beyond_the_budget(expression: str) -> None:
    assert error_of(expression) == "operation cancelled: actual cost limit exceeded"


@pytest.mark.parametrize(
    "call",
    ["isURL(t)", "url(t).getHost() == ''", "format.uuid().validate(t).hasValue()", "isIP(t)", "t.find('a+') == ''"],
)
def test_the_budget_is_enough_for_every_attribute_of_a_device(call: str) -> None:
    """A function that fails for one of them is no reason to fail, because another side of `||` is true."""
    assert holds(f"{OF}.all(name, cel.bind(t, dyn({OF}[name]), {call} || true))")


def test_functions_give_the_same_answer_in_the_worker() -> None:
    """A version there is carried as it is here."""
    expression = f"[1].sum() == 1 && {OF}.version == semver('1.2.3') && {OF}.version.major() == 1 && isIP({OF}.address)"

    assert not is_cheap(expression)
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1].transformMap(i, v, v) == {}", "the macros transformMap and transformMapEntry are not supported"),
        (
            "[duration('1s')].sum() == duration('1s')",
            "found no matching overload for 'sum' applied to '(list(google.protobuf.Duration))'",
        ),
        ("[1u].max() == 1u", "found no matching overload for 'max' applied to '(list(uint))'"),
        ("ip('1.1.1.1') == '1.1.1.1'", "found no matching overload for '_==_' applied to '(net.IP, string)'"),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math'"),
        ("authorizer.path('/').check('get').allowed()", "undeclared reference to 'authorizer'"),
        (f"{OF}.lanes.includes(8)", "undeclared reference to 'includes'"),
    ],
)
def test_unsupported_macro_or_wrongly_typed_call_does_not_compile(expression: str, message: str) -> None:
    """The first three do upstream; the others do not there, either."""
    with pytest.raises(CompileError) as raised:
        compiled(expression)

    assert message in str(raised.value)


@given(text=st.text(max_size=40), pattern=st.sampled_from(["[", "a*", "%", "1.2.3.4", "::", "http://["]))
def test_no_text_ends_more_than_its_own_evaluation(text: str, pattern: str) -> None:
    literal: Any = json.dumps(text, ensure_ascii=False).replace("\x7f", "")
    calls = [f"is{name}(s)" for name in ("IP", "CIDR", "URL", "Quantity", "Semver")]
    calls += [f"format.{name}().validate(s).hasValue()" for name in FORMATS]
    calls += [
        f"s.find('{pattern}') == ''",
        "s.find(s) == ''",
        "url(s).getQuery() == {}",
        "string(cidr(s).masked()) == ''",
    ]
    for call in calls:
        try:
            assert compiled(f"cel.bind(s, {literal}, {call})").matches(FACTS) in (True, False)
        except CelError as exc:
            assert str(exc)
