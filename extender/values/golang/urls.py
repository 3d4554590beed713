"""URLs as Go reads and prints them, with the texts of its errors.

Upstream: Go's net/url (1.26), Parse, ParseRequestURI, URL.
"""

import enum
from dataclasses import dataclass, replace
from typing import Final, final

from extender.values.golang.ip_addresses import AddressError, parse_address
from extender.values.golang.quoting import quoted


class UrlError(ValueError):
    """The text is not a URL."""


class _Part(enum.Enum):
    """The part of a URL that is escaped or unescaped."""

    PATH = enum.auto()
    USER = enum.auto()
    HOST = enum.auto()
    ZONE = enum.auto()
    QUERY = enum.auto()
    FRAGMENT = enum.auto()


_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_PLAIN: Final = {
    _Part.PATH: _UNRESERVED | set(b"$&+,/:;=@"),
    _Part.USER: _UNRESERVED | set(b"$&+,;="),
    _Part.HOST: _UNRESERVED | set(b"!$&'()*+,;=:[]<>\""),
    _Part.ZONE: _UNRESERVED | set(b"!$&'()*+,;=:[]<>\""),
    _Part.QUERY: _UNRESERVED,
    _Part.FRAGMENT: _UNRESERVED | set(b"$&+,/:;=?@!()*"),
}
"""The bytes that need not be escaped. Upstream: shouldEscape."""
_ALSO_VALID: Final = frozenset(b"!$&'()*+,;=:@[]%")
_USERINFO: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:~!$&'()*+,;=%@")
_SCHEME_START: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SCHEME: Final = _SCHEME_START | set("0123456789+-.")
_HEX_DIGITS: Final = frozenset(b"0123456789abcdefABCDEF")


@final
@dataclass(frozen=True, slots=True)
class Url:
    """A URL in its parts, unescaped as far as they are bytes."""

    scheme: str = ""
    opaque: str = ""
    user: tuple[bytes, bytes | None] | None = None
    """The name and the password, if there is one."""
    host: bytes = b""
    """The host, and the port if there is one."""
    path: bytes = b""
    written_path: str = ""
    """As it was written."""
    has_no_host: bool = False
    """The scheme is followed by a path."""
    query: str | None = None
    """As it was written; None without a question mark."""
    fragment: bytes = b""
    written_fragment: str = ""

    def escaped_path(self) -> str:
        return _escaped_as_written(self.path, self.written_path, _Part.PATH)

    def hostname(self) -> bytes:
        """The host without its port, and without brackets. Upstream: URL.Hostname."""
        name = self._host_and_port()[0]
        return name[1:-1] if name.startswith(b"[") and name.endswith(b"]") else name

    def port(self) -> str:
        return self._host_and_port()[1]

    def _host_and_port(self) -> tuple[bytes, str]:
        before, colon, port = self.host.rpartition(b":")
        return (before, port.decode()) if colon and _is_port(colon + port) else (self.host, "")

    def values(self) -> dict[str, list[str]]:
        """Returns the parameters of the query, without those that are written wrongly. Upstream: URL.Query."""
        values: dict[str, list[str]] = {}
        for pair in (self.query or "").split("&"):
            if not pair or ";" in pair:
                continue
            name, _, value = pair.partition("=")
            try:
                texts = [text_of(_unescaped(part, _Part.QUERY)) for part in (name, value)]
            except UrlError:
                continue
            values.setdefault(texts[0], []).append(texts[1])
        return values

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            path = self.escaped_path()
            has_authority = bool(self.host) or self.user is not None
            if (self.scheme or has_authority) and not (self.has_no_host and not has_authority):
                text += "//" if has_authority or path else ""
                text += _userinfo(self.user) + _escaped(self.host, _Part.HOST)
            if path and path[0] != "/" and self.host:
                text += "/"
            if not text and ":" in path.partition("/")[0]:
                text += "./"
            text += path
        if self.query is not None:
            text += f"?{self.query}"
        if self.fragment:
            text += f"#{_escaped_as_written(self.fragment, self.written_fragment, _Part.FRAGMENT)}"
        return text


def text_of(raw: bytes) -> str:
    """Returns unescaped bytes as text. Where they are no UTF-8, Go's text would have them as they are."""
    return raw.decode(errors="replace")


def parse(text: str) -> Url:
    """Returns an absolute or relative URL. Raises UrlError."""
    before, _, fragment = text.partition("#")
    url = _parsed(before, via_request=False)
    if not fragment:
        return url
    try:
        unescaped = _unescaped(fragment, _Part.FRAGMENT)
    except UrlError as exc:
        raise _parse_error(text, exc) from exc
    return replace(url, fragment=unescaped, written_fragment=fragment)


def parse_request_uri(text: str) -> Url:
    """Returns an absolute URL or path without a fragment. Raises UrlError."""
    return _parsed(text, via_request=True)


def _parse_error(text: str, exc: UrlError) -> UrlError:
    return UrlError(f"parse {quoted(text)}: {exc}")


def _parsed(text: str, *, via_request: bool) -> Url:
    try:
        return _parse(text, via_request=via_request)
    except UrlError as exc:
        raise _parse_error(text, exc) from exc


def _parse(text: str, *, via_request: bool) -> Url:
    if any(character < " " or character == "\x7f" for character in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(path=b"*", written_path="*")
    scheme, rest = _scheme(text)
    rest, mark, query = rest.partition("?")
    has_query = query if mark else None
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, query=has_query)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host, has_no_host = None, b"", False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(authority)
    elif scheme and rest.startswith("/"):
        has_no_host = True
    return Url(scheme, "", user, host, _unescaped(rest, _Part.PATH), rest, has_no_host, has_query)


def _scheme(text: str) -> tuple[str, str]:
    """Returns the scheme, in lower case, and what follows it (getScheme)."""
    for index, character in enumerate(text):
        if character == ":":
            if index == 0:
                raise UrlError("missing protocol scheme")
            return text[:index].lower(), text[index + 1 :]
        if character not in (_SCHEME if index else _SCHEME_START):
            break
    return "", text


def _authority(text: str) -> tuple[tuple[bytes, bytes | None] | None, bytes]:
    userinfo, separator, host_text = text.rpartition("@")
    host = _host(host_text)
    if not separator:
        return None, host
    if not _USERINFO.issuperset(userinfo):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    return (_unescaped(name, _Part.USER), _unescaped(password, _Part.USER) if colon else None), host


def _host(text: str) -> bytes:
    """Returns the host without its escapes (parseHost)."""
    bracket = text.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        inside, closing, after = text.rpartition("]")
        if not closing:
            raise UrlError("missing ']' in host")
        if not _is_port(after.encode()):
            raise UrlError(f"invalid port {quoted(after)} after host")
        before, zone_mark, zone = inside.partition("%25")
        literal = _unescaped(before, _Part.HOST) + (_unescaped(zone_mark + zone, _Part.ZONE) if zone_mark else b"")
        try:
            address, _ = parse_address(text_of(literal[1:]))
        except AddressError as exc:
            raise UrlError(f"invalid host: {exc}") from exc
        if address.version == 4:
            raise UrlError("invalid IP-literal")
        return literal + b"]" + _unescaped(after, _Part.HOST)
    colon = text.find(":")
    if colon >= 0 and not _is_port(text[colon:].encode()):
        raise UrlError(f"invalid port {quoted(text[colon:])} after host")
    return _unescaped(text, _Part.HOST)


def _is_port(text: bytes) -> bool:
    """Returns whether the text is empty, or a colon with perhaps digits (validOptionalPort)."""
    return not text or (text[:1] == b":" and all(0x30 <= digit <= 0x39 for digit in text[1:]))


def _unescaped(text: str, part: _Part) -> bytes:
    raw = text.encode(errors="replace")
    is_host = part in (_Part.HOST, _Part.ZONE)
    decoded = bytearray()
    index = 0
    while index < len(raw):
        byte = raw[index]
        if byte == 0x25:
            escape = raw[index : index + 3]
            if len(escape) < 3 or not _HEX_DIGITS.issuperset(escape[1:]):
                raise UrlError(f"invalid URL escape {quoted(text_of(escape))}")
            character = int(escape[1:], 16)
            is_ascii_in_host = part is _Part.HOST and character < 0x80 and escape != b"%25"
            is_plain_in_zone = (
                part is _Part.ZONE and escape != b"%25" and character != 0x20 and character not in _PLAIN[_Part.HOST]
            )
            if is_ascii_in_host or is_plain_in_zone:
                raise UrlError(f"invalid URL escape {quoted(text_of(escape))}")
            decoded.append(character)
            index += 3
            continue
        if is_host and byte < 0x80 and byte not in _PLAIN[part]:
            raise UrlError(f"invalid character {quoted(chr(byte))} in host name")
        decoded.append(0x20 if byte == 0x2B and part is _Part.QUERY else byte)
        index += 1
    return bytes(decoded)


def _escaped(raw: bytes, part: _Part) -> str:
    plain = _PLAIN[part]
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in raw)


def _escaped_as_written(raw: bytes, original: str, part: _Part) -> str:
    """Returns the part as it was written, if that is a valid way to write it."""
    if raw == b"*" and part is _Part.PATH:
        return "*"
    plain = _PLAIN[part]
    is_valid = all(byte in _ALSO_VALID or byte in plain for byte in original.encode(errors="replace"))
    return original if is_valid else _escaped(raw, part)


def _userinfo(user: tuple[bytes, bytes | None] | None) -> str:
    if user is None:
        return ""
    name, password = user
    return f"{_escaped(name, _Part.USER)}{'' if password is None else f':{_escaped(password, _Part.USER)}'}@"
