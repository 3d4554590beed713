"""Addresses and networks as Go's net/netip reads them."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from extender.values.golang.ip_addresses import AddressError, parse_address, parse_prefix


@given(address=st.ip_addresses())
def test_every_address_is_read_back(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert parse_address(str(address)) == (address, "")
    assert parse_address(address.exploded) == (address, "")


@given(text=st.from_regex(r"[0-9a-f.:/]*(%[0-9a-f.:]*)?", fullmatch=True))
def test_addresses_are_read_as_python_reads_them(text: str) -> None:
    """Python's reader, which has other words for what is wrong, reads the same addresses, but for zones with / or %."""
    try:
        expected = ipaddress.ip_address(text)
    except ValueError:
        with pytest.raises(AddressError):
            parse_address(text)
    else:
        zone = text.partition("%")[2]
        assert parse_address(text)[1] == zone
        assert parse_address(text)[0].packed == expected.packed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unable to parse IP"),
        ("bad", "unable to parse IP"),
        ("%eth0", "missing IPv6 address"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.03.4", "IPv4 field has octet with leading zero"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.", 'IPv4 field must have at least one digit (at ".")'),
        ("1.2.a.4", 'unexpected character (at "a.4")'),
        ("fe80::1%", "zone must be a non-empty string"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        (":::1", 'each colon-separated field must have at least one digit (at ":1")'),
        ("1:2", "address string too short"),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:", 'colon must be followed by more characters (at ":")'),
        ("1:g", 'each colon-separated field must have at least one digit (at "g")'),
        ("1g:2", 'unexpected character, want colon (at "g:2")'),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2:3:4::5:6:7:8", "the :: must expand to at least one field of zeros"),
        ("1:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
        (
            "::1:2:3:4:5:6:7:1.2.3.4",
            'too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")',
        ),
    ],
)
def test_malformed_address_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(AddressError) as raised:
        parse_address(text)

    assert str(raised.value) == f'ParseAddr("{text}"): {message}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.0", "no '/'"),
        ("10.0.0/8", 'ParseAddr("10.0.0"): IPv4 address too short'),
        ("fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
        ("10.0.0.0/", 'bad bits after slash: ""'),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("10.0.0.0/+8", 'bad bits after slash: "+8"'),
        ("10.0.0.0/33", "prefix length out of range"),
        ("::/1" + "0" * 5000, "prefix length out of range"),
    ],
)
def test_malformed_network_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(AddressError) as raised:
        parse_prefix(text)

    assert str(raised.value) == f'netip.ParsePrefix("{text}"): {message}'


@given(address=st.ip_addresses(), bits=st.integers(0, 128), other=st.ip_addresses())
def test_a_network_contains_what_pythons_contains(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    bits: int,
    other: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    bits = min(bits, address.max_prefixlen)
    prefix = parse_prefix(f"{address}/{bits}")
    network = ipaddress.ip_network(f"{address}/{bits}", strict=False)

    assert str(prefix.masked()) == str(network)
    assert prefix.contains(other) == (other.version == address.version and other in network)
