"""Who a caller is: the user of a verified client certificate, else of a bearer token, else of the page's cookie. Nobody
is anonymous.

Upstream: apiserver/pkg/authentication/request/x509/x509.go, CommonNameUserConversion;
authenticatorfactory/delegating.go (v1.36.2).
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import HTTPConnection
from starlette.types import Receive
from uvicorn.protocols.http import h11_impl, httptools_impl

from extender.client.access_review import User
from extender.values import limits

TOKEN_COOKIE: Final = "reprieve-token"  # noqa: S105 - the name of a cookie
"""The cookie in which the page keeps a token."""

CERTIFIED: Final = "reprieve.certified"
"""The key of an ASGI scope under which the user of the client certificate is kept."""


def certified_user(caller: HTTPConnection) -> User | None:
    """Returns the user of the caller's certificate; None without one that was verified."""
    user: User | None = caller.scope.get(CERTIFIED)
    return user


def user_of_certificate(receive: Receive) -> User | None:
    """Returns the user whom the client certificate of a connection names: the common name, in the organizations as
    groups.

    None without a certificate that the server's client CA has verified, or if it has no common name.

    Arguments:
        receive: of the server itself. ASGI has no place for the certificate; uvicorn's `receive` is a method of what
            holds the connection. A server of another kind, or a wrapper around it, leaves all callers without a
            certificate.
    """
    cycle = getattr(receive, "__self__", None)
    if not isinstance(cycle, (httptools_impl.RequestResponseCycle, h11_impl.RequestResponseCycle)):
        return None
    certificate: Mapping[str, Any] = cycle.transport.get_extra_info("peercert") or {}
    subject = [attribute for names in certificate.get("subject", ()) for attribute in names]
    common_names = [value for kind, value in subject if kind == "commonName"]
    if not common_names or not common_names[-1]:
        return None
    groups = [value for kind, value in subject if kind == "organizationName"]
    return User(common_names[-1], groups=(*groups, "system:authenticated"))


def token_of(caller: HTTPConnection) -> str:
    """Returns the token of the Authorization header or, without such a header, of the cookie; empty if there is
    none.
    """
    bearer = bearer_of(caller)
    found = caller.cookies.get(TOKEN_COOKIE, "") if bearer is None else bearer
    return found if found.isascii() and len(found) <= limits.TOKEN_CHARACTERS else ""


def bearer_of(caller: HTTPConnection) -> str | None:
    """Returns the token of the Authorization header; None without such a header."""
    scheme, _, token = caller.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
