"""Extenders that can never be called are refused before the first call, all errors at once; what upstream accepts is at
most warned of.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender.client.http_extender import check_extenders, make_extenders, warnings_of
from extender.values.config.configuration import ConfigErrors, Configuration, Extender, ExtenderTLSConfig
from extender.values.golang.times import Duration

TLS: dict[str, Any] = {"url_prefix": "https://e", "enable_https": True}
INSECURE = ExtenderTLSConfig(insecure=True)


def errors_of(*extenders: Extender) -> list[str]:
    try:
        check_extenders(Configuration(extenders=extenders))
    except ConfigErrors as exc:
        return [str(error) for error in exc.errors]
    return []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"url_prefix": "http://127.0.0.1:8888/extender"}, id="http"),
        pytest.param({"url_prefix": "http://[::1]:80/"}, id="IPv6"),
        pytest.param({**TLS, "tls_config": INSECURE}, id="insecure, as configured"),
        pytest.param({"url_prefix": "http://e", "http_timeout": Duration.of(30)}, id="a long timeout"),
    ],
)
def test_extenders_that_can_be_called(options: dict[str, Any]) -> None:
    assert errors_of(Extender(**options)) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "extenders[0].urlPrefix: Required value"),
        (
            {"url_prefix": "ftp://e"},
            'urlPrefix: Invalid value: "ftp://e": must be a URL with scheme http or https and a host',
        ),
        (
            {"url_prefix": "e:80"},
            'urlPrefix: Invalid value: "e:80": must be a URL with scheme http or https and a host',
        ),
        (
            {"url_prefix": "http:///x"},
            'urlPrefix: Invalid value: "http:///x": must be a URL with scheme http or https and a host',
        ),
        ({"url_prefix": "http://e:x"}, "urlPrefix: Invalid value: Invalid port"),
        (
            {"url_prefix": "ftp://me:secret@e"},
            'urlPrefix: Invalid value: "ftp://me:***@e": must be a URL with scheme http or https and a host',
        ),
        (
            {**TLS, "tls_config": ExtenderTLSConfig(ca_file="/x", insecure=True)},
            "tlsConfig.insecure: Forbidden: specifying a root",
        ),
        (
            {**TLS, "tls_config": ExtenderTLSConfig(ca_file="/nowhere/ca")},
            "tlsConfig: Invalid value: /nowhere/ca cannot be read",
        ),
        (
            {**TLS, "tls_config": ExtenderTLSConfig(ca_data=b"x")},
            "tlsConfig: Invalid value: the certificate authority is no PEM",
        ),
    ],
)
def test_extenders_that_cannot(options: dict[str, Any], error: str) -> None:
    (message,) = errors_of(Extender(**options))

    assert message.removeprefix("extenders[0].").startswith(error.removeprefix("extenders[0]."))
    assert "secret" not in message


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"url_prefix": "http://me:secret@e"}, "urlPrefix: user and password are sent in clear"),
        ({"url_prefix": "http://e#f"}, "urlPrefix: the verb is appended to its query or fragment"),
        ({"url_prefix": "http://e?q=1"}, "urlPrefix: the verb is appended to its query or fragment"),
        ({"url_prefix": "http://e", "enable_https": True}, "enableHTTPS: has no effect"),
        (
            {"url_prefix": "http://e", "http_timeout": Duration.parse("-1s")},
            "httpTimeout: -1s means that all scheduling waits",
        ),
        ({"url_prefix": "http://e", "http_timeout": Duration.parse("31s")}, "httpTimeout: 31s is longer than 30s"),
        (TLS, "tlsConfig: without caFile or caData no certificate is verified"),
        ({**TLS, "tls_config": INSECURE}, "tlsConfig: without caFile or caData no certificate is verified"),
        (
            {"url_prefix": "http://e", "tls_config": ExtenderTLSConfig(cert_file="/x")},
            "tlsConfig: a certificate needs its key",
        ),
        (
            {"url_prefix": "http://e", "tls_config": ExtenderTLSConfig(key_data=b"x")},
            "tlsConfig: a certificate needs its key",
        ),
    ],
)
def test_extender_that_kube_scheduler_accepts_is_accepted_with_a_warning(
    options: dict[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    extender = Extender(**options)
    (http_extender,) = make_extenders(Configuration(extenders=(extender,)))
    asyncio.run(http_extender.aclose())

    assert errors_of(extender) == []
    (message,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith(f"extenders[0].{warning}")
    assert "secret" not in message


@pytest.mark.parametrize(
    "options", [{"url_prefix": "http://e"}, {"url_prefix": "https://e"}, {"url_prefix": "https://me:secret@e"}]
)
def test_most_extenders_are_not_warned_of(options: dict[str, Any]) -> None:
    assert [*warnings_of(Extender(**options))] == []


def test_all_errors_of_extenders_are_reported_at_once() -> None:
    torn = ExtenderTLSConfig(ca_data=b"x")
    errors = errors_of(
        Extender(url_prefix="ftp://e", tls_config=torn),
        Extender(url_prefix="http://e"),
        Extender(**TLS, tls_config=torn),
    )

    paths = [error.partition(": ")[0] for error in errors]
    assert paths == ["extenders[0].urlPrefix", "extenders[0].tlsConfig", "extenders[2].tlsConfig"]


def test_extenders_are_made_in_calling_order_and_only_if_all_can_be_called(tmp_path: Path) -> None:
    """Those that may fail come last."""
    good = Extender(url_prefix="http://firm")
    frail = Extender(url_prefix="http://frail", ignorable=True)

    def transport(extender: Extender) -> httpx.AsyncBaseTransport:
        return httpx.MockTransport(lambda request: httpx.Response(200))

    extenders = make_extenders(Configuration(extenders=(frail, good)), transport)

    assert [extender.name for extender in extenders] == ["http://firm", "http://frail"]
    with pytest.raises(ConfigErrors):
        make_extenders(Configuration(extenders=(good, Extender())), transport)
