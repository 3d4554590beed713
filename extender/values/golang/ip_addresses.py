"""IP addresses and networks as Go reads them, with the texts of its errors.

Upstream: Go's net/netip, ParseAddr, ParsePrefix.
"""

from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, final

from extender.values.golang.quoting import quoted

Address = IPv4Address | IPv6Address

_DIGITS: Final = frozenset("0123456789")


class AddressError(ValueError):
    """The text is not an address or not a network."""


@final
class Prefix(NamedTuple):
    """An address with how many leading bits name its network; the others need not be zero."""

    address: Address
    bits: int

    def masked(self) -> "Prefix":
        """Returns the network: the other bits are zero."""
        hidden = self.address.max_prefixlen - self.bits
        return Prefix(type(self.address)(int(self.address) >> hidden << hidden), self.bits)

    def contains(self, address: Address) -> bool:
        """Returns whether the address is in the network. Addresses of the other family are not."""
        return address.version == self.address.version and Prefix(address, self.bits).masked() == self.masked()

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def parse_address(text: str) -> tuple[Address, str]:
    """Returns the address, and its zone, which is mostly empty. Raises AddressError."""
    for character in text:
        if character == ".":
            return IPv4Address(_four_bytes(text, text)), ""
        if character == ":":
            return _ipv6(text)
        if character == "%":
            raise _error(text, "missing IPv6 address")
    raise _error(text, "unable to parse IP")


def parse_prefix(text: str) -> Prefix:
    """Returns the address and the number of bits behind the last slash. Raises AddressError."""
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise _prefix_error(text, "no '/'")
    try:
        address, zone = parse_address(before)
    except AddressError as exc:
        raise _prefix_error(text, str(exc)) from exc
    if zone:
        raise _prefix_error(text, "IPv6 zones cannot be present in a prefix")
    # Nine digits: more are out of range, too, and Python refuses to read thousands of them.
    if not bits or not _DIGITS.issuperset(bits) or (len(bits) > 1 and bits[0] == "0"):
        raise _prefix_error(text, f"bad bits after slash: {quoted(bits)}")
    if len(bits) > 9 or int(bits) > address.max_prefixlen:
        raise _prefix_error(text, "prefix length out of range")
    return Prefix(address, int(bits))


def _error(text: str, message: str, place: str = "") -> AddressError:
    where = f" (at {quoted(place)})" if place else ""
    return AddressError(f"ParseAddr({quoted(text)}): {message}{where}")


def _prefix_error(text: str, message: str) -> AddressError:
    return AddressError(f"netip.ParsePrefix({quoted(text)}): {message}")


def _four_bytes(text: str, part: str) -> bytes:
    """Returns the bytes of a dotted address, which is the whole text or its end (parseIPv4Fields)."""
    octets: list[int] = []
    digits = ""
    for index, character in enumerate(part):
        if character in _DIGITS:
            if digits == "0":
                raise _error(text, "IPv4 field has octet with leading zero")
            digits += character
            if int(digits) > 255:
                raise _error(text, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(part) - 1) or part[index - 1] == ".":
                raise _error(text, "IPv4 field must have at least one digit", part[index:])
            if len(octets) == 3:
                raise _error(text, "IPv4 address too long")
            octets.append(int(digits))
            digits = ""
        else:
            raise _error(text, "unexpected character", part[index:])
    if len(octets) < 3:
        raise _error(text, "IPv4 address too short")
    return bytes([*octets, int(digits)])


def _ipv6(text: str) -> tuple[IPv6Address, str]:
    """Returns the IPv6 address and its zone (parseIPv6)."""
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _error(text, "zone must be a non-empty string")
    address = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
    while rest and len(address) < 16:
        digits = len(rest) - len(rest.lstrip("0123456789abcdefABCDEF"))
        if digits > 4:
            raise _error(text, "each group must have 4 or less digits", rest)
        if not digits:
            raise _error(text, "each colon-separated field must have at least one digit", rest)
        if rest[digits : digits + 1] == ".":
            if ellipsis < 0 and len(address) != 12:
                raise _error(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(address) > 12:
                raise _error(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            address += _four_bytes(text, rest)
            rest = ""
            break
        address += int(rest[:digits], 16).to_bytes(2)
        rest = rest[digits:]
        if not rest:
            break
        if rest[0] != ":":
            raise _error(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _error(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _error(text, "multiple :: in address", rest)
            ellipsis, rest = len(address), rest[1:]
    if rest:
        raise _error(text, "trailing garbage after address", rest)
    if len(address) < 16:
        if ellipsis < 0:
            raise _error(text, "address string too short")
        address[ellipsis:ellipsis] = bytes(16 - len(address))
    elif ellipsis >= 0:
        raise _error(text, "the :: must expand to at least one field of zeros")
    return IPv6Address(bytes(address)), zone
