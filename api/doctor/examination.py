"""All checks of one extender, one after the other."""

import socket
import ssl
from collections.abc import AsyncIterator
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from api.doctor import Finding, bad, ok, samples, skipped, warning
from api.doctor.checks import bind_verb, every_verb, filter_verb, preempt_verb, prioritize_verb
from api.doctor.checks.every_verb import IS_IT_RUNNING, SERVED
from api.doctor.examined_service import ExaminedService
from extender.client.http_extender import warnings_of
from extender.values.reasons import in_one_line

ENCRYPTED: Final = "is private"

CONFIGURED: Final = "is configured with care"

TRUSTED: Final = "has a certificate that is trusted"

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


async def examine(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields the findings about an extender. No question changes anything in a healthy one."""
    unreachable = await _unreachable(service)
    if unreachable is not None:
        yield unreachable
        return
    async for finding in _connection(service):
        yield finding
    if service.given_up:
        return
    async for finding in _until_given_up(service):
        yield finding


async def _until_given_up(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields the findings about the configuration and all answers, as long as the extender is asked at all."""
    for text in warnings_of(service.extender):
        if not text.startswith("tlsConfig: without"):
            yield warning("", CONFIGURED, text, "change the configuration, or know why not")
    async for finding in _answers(service):
        yield finding
        if service.given_up:
            yield skipped("", "answers every question", f"nothing more was asked, as {service.given_up}")
            return


async def _answers(service: ExaminedService) -> AsyncIterator[Finding]:
    extender = service.extender
    asked = samples.asked(service.names, in_full=service.in_full)
    is_any_served = not service.may_lack_verbs
    for verb, checks in (
        (extender.filter_verb, (partial(every_verb.checks, verb=extender.filter_verb, body=asked), filter_verb.checks)),
        (
            extender.prioritize_verb,
            (partial(every_verb.checks, verb=extender.prioritize_verb, body=asked), prioritize_verb.checks),
        ),
        (extender.preempt_verb, (preempt_verb.checks,)),
        (extender.bind_verb, (bind_verb.checks,)),
    ):
        is_served = bool(verb)
        for check in checks:
            if is_served:
                async for finding in check(service):
                    yield finding
                    is_served = finding.check != SERVED
        is_any_served |= is_served
    if not is_any_served and not service.given_up:
        advice = "is the path right? That of Reprieve is /extender"
        yield bad("", SERVED, f"nothing answers below {extender.url_prefix}", advice)


async def _unreachable(service: ExaminedService) -> Finding | None:
    """Returns what keeps callers from connecting; every other check would only repeat it."""
    try:
        await service.connect()
    except OSError as exc:
        service.given_up = "it cannot be reached"
        return bad("", "takes connections", f"{service.address}: {in_one_line(exc)}", _advice(exc))
    except ValueError as exc:
        service.given_up = "it has no address"
        return bad(
            "",
            "takes connections",
            f"{service.extender.url_prefix}: not an address: {exc}",
            "write http://HOST:PORT/PATH",
        )
    return None


def _advice(exc: OSError) -> str:
    if isinstance(exc, ConnectionRefusedError):
        return IS_IT_RUNNING
    if isinstance(exc, socket.gaierror):
        return "is the name right, and can this machine resolve it?"
    return "is the address right, and does a firewall let calls through?"


async def _connection(service: ExaminedService) -> AsyncIterator[Finding]:
    url = urlsplit(service.extender.url_prefix)
    if url.scheme != "https" and url.hostname in _LOOPBACK:
        yield ok("", ENCRYPTED, "HTTP, which does not leave this machine")
        return
    if url.scheme != "https":
        yield warning(
            "",
            ENCRYPTED,
            f"{url.scheme}: anyone on the network can read and change decisions",
            "set enableHTTPS and a CA",
        )
        return
    if not service.verifies_certificate:
        yield warning(
            "", TRUSTED, "without a CA the certificate is not verified: any server is trusted", "give caFile or caData"
        )
        return
    try:
        days = await service.days_of_certificate()
    except TimeoutError:
        service.given_up = "it shows no certificate"
        yield bad(
            "",
            TRUSTED,
            f"it has shown none within {service.seconds:g} s",
            "does it speak TLS, or is http:// the right scheme?",
        )
        return
    except (OSError, ssl.SSLError) as exc:
        service.given_up = "its certificate is not trusted"
        yield bad("", TRUSTED, in_one_line(exc), "give the CA that signed its certificate, and its name")
        return
    if days < 14:
        yield warning("", TRUSTED, f"its certificate expires in {days:.0f} days", "renew it")
    else:
        yield ok("", TRUSTED, f"its certificate is valid for {days:.0f} days")
