"""URLs as Go's net/url reads and prints them."""

import pytest
from hypothesis import given, strategies as st

from extender.values.golang.urls import UrlError, parse, parse_request_uri
from tests.kit.tables import cases


@cases(
    "text, printed",
    ("the scheme is written small", "HTTP://Example.COM/%7Ea", "http://Example.COM/%7Ea"),
    ("what must be escaped is", "http://a/b c", "http://a/b%20c"),
    ("what was valid stays as it was", "http://a/[b]", "http://a/[b]"),
    ("an escaped slash, too", "http://a/%2f", "http://a/%2f"),
    ("user and password", "http://u:p%40@a:1/", "http://u:p%40@a:1/"),
    ("a zone", "http://[fe80::1%25en0]:80/", "http://[fe80::1%25en0]:80/"),
    ("no path", "mailto:a@b", "mailto:a@b"),
    ("no host", "http:/a", "http:/a"),
    ("an empty host", "file:///a", "file:///a"),
    ("no scheme", "//a/b", "//a/b"),
    ("an empty query", "/a:b?", "/a:b?"),
    ("a relative path", "a/b:c", "a/b:c"),
    ("a fragment", "http://a?x#y z", "http://a?x#y%20z"),
    ("beyond ASCII", "http://ä/ö", "http://%C3%A4/%C3%B6"),
    ("a star", "*", "*"),
    ("nothing", "", ""),
)
def test_a_url_is_printed(text: str, printed: str) -> None:
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":a", "missing protocol scheme"),
        ("a:b:c/d\x01", "net/url: invalid control character in URL"),
        ("1:2", "first path segment in URL cannot contain colon"),
        ("http://a:b", 'invalid port ":b" after host'),
        ("http://a:1:2", 'invalid port ":1:2" after host'),
        ("http://[::1", "missing ']' in host"),
        ("http://[::1]a", 'invalid port "a" after host'),
        ("http://[1.2.3.4]/", "invalid IP-literal"),
        ("http://a[::1]/", "invalid IP-literal"),
        ("http://[x]/", 'invalid host: ParseAddr("x"): unable to parse IP'),
        ("http://a b/", 'invalid character " " in host name'),
        ("http://%41/", 'invalid URL escape "%41"'),
        ("/%zz", 'invalid URL escape "%zz"'),
        ("/%4", 'invalid URL escape "%4"'),
        ("http://a^b@c/", "net/url: invalid userinfo"),
    ],
)
def test_malformed_url_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(UrlError) as raised:
        parse(text)

    assert str(raised.value).endswith(f": {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [("", 'parse "": empty url'), ("a", 'parse "a": invalid URI for request'), ("//a:b", None), ("/a#b", None)],
)
def test_a_request_needs_an_absolute_url_or_path(text: str, message: str | None) -> None:
    if message is None:
        assert parse_request_uri(text).path
    else:
        with pytest.raises(UrlError) as raised:
            parse_request_uri(text)
        assert str(raised.value) == message


@given(text=st.text(alphabet="aA0:/?#[]@%2F.& +;é", max_size=25))
def test_printed_url_parses_to_the_same_url(text: str) -> None:
    """Printing and reading again change nothing any more."""
    try:
        url = parse(text)
    except UrlError:
        return

    assert str(parse(str(url))) == str(url)
    assert parse(str(url)).values() == url.values()
    assert parse(str(url)).hostname() == url.hostname()
