"""All checks of one extender, one after the other."""

import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from extender.client.http_extender import warnings_of
from extender.client.http_extender.calling import words
from extender.values.reasons import in_one_line
from reprieve.lab.doctor import Finding, Grade, bad, every_verb, node_verbs, ok, pod_verbs, samples, skipped, warning
from reprieve.lab.doctor.every_verb import IS_IT_RUNNING, SERVED, NoAnswerError
from reprieve.lab.doctor.examined_service import ExaminedService

CONNECTS: Final = "takes connections"
ENCRYPTED: Final = "is private"
CONFIGURED: Final = "is configured safely"
_IS_IT_TLS: Final = "does it speak TLS, or is http:// the right scheme?"
TRUSTED: Final = "has a certificate that is trusted"

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


async def examine(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields the findings about an extender. No question changes anything in a healthy one."""
    first = await _unreachable(service) or await _connection(service)
    yield first
    if first.grade is Grade.BAD:
        return
    for text in warnings_of(service.extender):
        if not text.startswith("tlsConfig: without"):
            yield warning(CONFIGURED, text, "change the configuration, unless this is intended")
    async for finding in _answers(service):
        yield finding
        if service.given_up:
            yield skipped("answers every question", f"nothing more was asked, because {service.given_up}")
            return


async def _answers(service: ExaminedService) -> AsyncIterator[Finding]:
    extender = service.extender
    question = samples.asked(service.names, in_full=service.in_full)
    is_any_served = not service.may_lack_verbs
    for verb, understood, checks in (
        (extender.filter_verb, question, node_verbs.filter_checks),
        (extender.prioritize_verb, question, node_verbs.prioritize_checks),
        (extender.preempt_verb, None, pod_verbs.preempt_checks),
        (extender.bind_verb, None, pod_verbs.bind_checks),
    ):
        is_served = bool(verb)
        if is_served and understood is not None:
            async for finding in _of_verb(verb, every_verb.checks(service, verb, understood)):
                yield finding
                is_served = finding.check != SERVED
        if is_served:
            async for finding in _of_verb(verb, checks(service)):
                yield finding
                is_served = finding.check != SERVED
        is_any_served |= is_served
    if not is_any_served and not service.given_up:
        advice = "is the path right? That of Reprieve is /extender"
        yield bad(SERVED, f"nothing answers below {extender.url_prefix}", advice)


async def _of_verb(verb: str, findings: AsyncIterator[Finding]) -> AsyncIterator[Finding]:
    """Yields the findings with the verb in them, up to the one of an answer that cannot be looked at."""
    try:
        async for finding in findings:
            yield replace(finding, verb=verb)
    except NoAnswerError as exc:
        yield replace(exc.finding, verb=verb)


async def _unreachable(service: ExaminedService) -> Finding | None:
    """Returns what keeps callers from connecting; every other check would only repeat it."""
    try:
        await service.connect()
    except OSError as exc:
        service.given_up = "it cannot be reached"
        return bad(CONNECTS, f"{service.address}: {in_one_line(exc)}", _advice(exc))
    except ValueError as exc:
        service.given_up = "it has no address"
        return bad(CONNECTS, f"{service.extender.url_prefix}: not an address: {exc}", "write http://HOST:PORT/PATH")
    return None


def _advice(exc: OSError) -> str:
    if isinstance(exc, ConnectionRefusedError):
        return IS_IT_RUNNING
    if isinstance(exc, socket.gaierror):
        return "is the name right, and can this machine resolve it?"
    return "is the address right, and does a firewall let calls through?"


async def _connection(service: ExaminedService) -> Finding:
    url = urlsplit(service.extender.url_prefix)
    if url.scheme != "https" and url.hostname in _LOOPBACK:
        return ok(ENCRYPTED, "HTTP, which does not leave this machine")
    if url.scheme != "https":
        readable = f"{url.scheme}: anyone on the network can read and change decisions"
        return warning(ENCRYPTED, readable, "set enableHTTPS and a CA")
    if not service.verifies_certificate:
        unverified = "without a CA the certificate is not verified: any server is trusted"
        return warning(TRUSTED, unverified, "give caFile or caData")
    try:
        days = await service.days_of_certificate()
    except TimeoutError:
        service.given_up = "it presents no certificate"
        return bad(TRUSTED, f"it presented none within {service.seconds:g} s", _IS_IT_TLS)
    except (OSError, ssl.SSLError) as exc:
        service.given_up = "its certificate is not trusted"
        is_shown = isinstance(exc, ssl.SSLCertVerificationError)
        advice = "give the CA that signed its certificate, and its name" if is_shown else _IS_IT_TLS
        return bad(TRUSTED, words(exc, url.hostname or "", url.port or 443), advice)
    if days < 14:
        return warning(TRUSTED, f"its certificate expires in {days:.0f} days", "renew it")
    return ok(TRUSTED, f"its certificate is valid for {days:.0f} days")
