"""The functions of URLs.

Upstream: apiserver/pkg/cel/library, urls.go (v1.36.2).
"""

from typing import Final

from extender.values.cel.functions import BOOL, STRING, STRINGS_BY_NAME, CelType, Function
from extender.values.golang.urls import Url, UrlError, parse, parse_request_uri, text_of

URL: Final = CelType.of_kubernetes("kubernetes.URL", parse)


def _url(text: str) -> Url:
    """Returns an absolute URL or path, with a fragment if it has one."""
    try:
        parse_request_uri(text)
        return parse(text)
    except UrlError as exc:
        raise UrlError(f"URL parse error during conversion from string: {exc}") from exc


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


FUNCTIONS: Final = (
    Function("string_to_url", "url", (STRING,), URL, _url, is_member=False),
    Function("is_url_string", "isURL", (STRING,), BOOL, _is_url, is_member=False),
    Function("url_get_scheme", "getScheme", (URL,), STRING, lambda url: url.scheme),
    Function("url_get_host", "getHost", (URL,), STRING, lambda url: text_of(url.host)),
    Function("url_get_hostname", "getHostname", (URL,), STRING, lambda url: text_of(url.hostname())),
    Function("url_get_port", "getPort", (URL,), STRING, Url.port),
    Function("url_get_escaped_path", "getEscapedPath", (URL,), STRING, Url.escaped_path),
    Function("url_get_query", "getQuery", (URL,), STRINGS_BY_NAME, Url.values),
)
