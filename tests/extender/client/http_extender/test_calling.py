"""Calls over real sockets, to servers that do what servers should not."""

import asyncio
import errno
import gzip
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvloop

from extender.client.http_extender import HTTPExtender
from extender.client.http_extender.calling import words
from extender.engine.framework import ExtenderError
from extender.testing import make_node, make_pod
from extender.values import limits
from extender.values.config.configuration import Extender, ExtenderTLSConfig
from extender.values.golang.times import Duration
from tests.extender.client.http_extender.serving import (
    Served,
    Writes,
    answer,
    closes,
    hangs,
    raw,
    resets,
    says,
    says_json,
    serving,
)
from tests.kit.certificates import Authority


@pytest.fixture(autouse=True)
def stage(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Sockets need real time."""
    with asyncio.Runner(loop_factory=getattr(request, "param", None)) as runner:
        yield runner


on_each_loop = pytest.mark.parametrize(
    "stage", [asyncio.SelectorEventLoop, uvloop.new_event_loop], ids=["asyncio", "uvloop"], indirect=True
)


POD, NODES = make_pod("p").obj(), [make_node("a").obj(), make_node("b").obj()]

AWAITING_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
NO_IPV6 = "cannot assign requested address"
READING_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


def ssl_failure(reason: str, verify_code: int | None = None) -> ssl.SSLError:
    error = ssl.SSLError(1, reason) if verify_code is None else ssl.SSLCertVerificationError(1, reason)
    error.reason = reason
    if isinstance(error, ssl.SSLCertVerificationError) and verify_code is not None:
        error.verify_code = verify_code
    return error


def config(address: str, **options: Any) -> Extender:
    verbs: dict[str, Any] = {"filter_verb": "filter", "bind_verb": "bind", "node_cache_capable": True}
    return Extender(url_prefix=address, **(verbs | options))


async def filtered(address: str, **options: Any) -> list[str]:
    extender = HTTPExtender(config(address, **options))
    try:
        return [node.name for node in (await extender.filter(POD, NODES)).nodes]
    finally:
        await extender.aclose()


async def outcome(write: Writes, **options: Any) -> tuple[list[str] | str, Served]:
    """The nodes that pass, or the error without the address; and what the server saw."""
    async with serving(write) as served:
        try:
            return await filtered(served.address, **options), served
        except ExtenderError as exc:
            return str(exc).replace(served.address, "URL"), served


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(answer("x" * 10**6)[: -(10**6)])
    while not reader.at_eof():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    megabyte = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    while not reader.at_eof():
        writer.write(megabyte)
        await writer.drain()


SHORT, LONGER, LONG = ({"http_timeout": Duration.parse(time)} for time in ("200ms", "2s", "20s"))
"""Where the machine is busy, less may have happened within a short time than is to happen."""


@pytest.mark.parametrize(
    ("write", "options", "error"),
    [
        pytest.param(says("{}", 500), {}, "failed filter with extender at URL URL/filter, code 500", id="500"),
        pytest.param(says("{}", 201), {}, "failed filter with extender at URL URL/filter, code 201", id="201"),
        pytest.param(raw(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), {}, "failed filter with extender at URL "
            "URL/filter, code 101", id="101"),
        pytest.param(raw(b"HTTP/1.1 204 No Content\r\n\r\n"), {}, "failed filter with extender at URL URL/filter, code "
            "204", id="204"),
        pytest.param(says("{}", 302), {}, "failed filter with extender at URL URL/filter, code "
            "302", id="302 to nowhere"),
        pytest.param(says("{}", 307, Location="ftp://x"), {}, 'Post "ftp://x": unsupported protocol scheme '
                                                              '"ftp"', id="307 to no place"),
        pytest.param(closes, {}, 'Post "URL/filter": EOF', id="closes"),
        pytest.param(resets, {}, 'Post "URL/filter": EOF', id="resets"),
        pytest.param(hangs(), SHORT, f'Post "URL/filter": {AWAITING_HEADERS}', id="hangs"),
        pytest.param(hangs(answer("x" * 99)[:-50]), SHORT, READING_BODY, id="hangs in the middle of the answer"),
        pytest.param(drips, SHORT, READING_BODY, id="drips"),
        pytest.param(raw(answer("x" * 99)[:-50], then_close=True), {}, "unexpected EOF", id="ends in the middle of the answer"),
        pytest.param(floods, {}, f"the answer is longer than {limits.EXTENDER_ANSWER_BYTES} bytes", id="floods"),
        pytest.param(says("", Content_Encoding="br"), {}, "the answer is compressed ('br'), which was not "
            "requested", id="brotli"),
        pytest.param(says("not so", Content_Encoding="gzip"), {}, "", id="no gzip"),
        pytest.param(says(""), {}, "EOF", id="empty"),
        pytest.param(says("[" * 10**6), {}, "exceeded max depth", id="deep"),
        pytest.param(says_json({"NodeNames": ["b", "x"]}), {}, 'extender "URL" claims a filtered node "x" which is not found in the input node list', id="unknown node"),
    ],
)  # fmt: skip
async def test_misbehaving_server_gives_one_error_in_upstreams_words_without_a_second_request(
    write: Writes, options: dict[str, Any], error: str
) -> None:
    for call_options in (SHORT, LONGER, LONG) if options is SHORT else (options,):
        message, served = await outcome(write, **call_options)
        if str(message).startswith(error):
            break

    assert isinstance(message, str)
    assert message.startswith(error)
    assert "\n" not in message
    assert len(served.requests) == 1  # nothing is asked twice


@contextmanager
def nobody_listens() -> Iterator[int]:
    """A port that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def failure(address: str, **options: Any) -> str:
    """What the scheduler is told, without the address."""
    with pytest.raises(ExtenderError) as caught:
        await filtered(address, **options)
    return str(caught.value).replace(address, "URL")


@on_each_loop
@pytest.mark.parametrize(
    ("host", "dialled"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("[::1]", "[::1]")]
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_refused_connection_names_the_address_that_was_dialled(
    monkeypatch: pytest.MonkeyPatch, scheme: str, host: str, dialled: str
) -> None:
    if host == "localhost":
        monkeypatch.setattr(socket, "getaddrinfo", lambda _, port, *args, **options: [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (dialled, port))
        ])  # fmt: skip
    with nobody_listens() as port:
        message = await failure(f"{scheme}://{host}:{port}")

    refused = f"dial tcp {dialled}:{port}: connect: connection refused"
    assert message in (
        f'Post "URL/filter": {refused}',
        f'Post "URL/filter": {refused.replace("connection refused", NO_IPV6)}',
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (socket.EAI_NONAME, "no such host"),
        (socket.EAI_NODATA, "no such host"),
        (socket.EAI_AGAIN, "Temporary failure in name resolution"),
    ],
)
async def test_host_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def fails(*args: object, **options: object) -> None:
        raise socket.gaierror(number, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fails)

    assert await failure("http://gpu.example") == f'Post "URL/filter": dial tcp: lookup gpu.example: {words}'


async def test_port_zero_is_dialled_as_it_is() -> None:
    assert await failure("http://127.0.0.1:0") == 'Post "URL/filter": dial tcp 127.0.0.1:0: connect: connection refused'


async def test_name_that_no_host_can_have_is_no_such_host() -> None:
    assert await failure("http://gpu..example") == 'Post "URL/filter": dial tcp: lookup gpu..example: no such host'


@pytest.mark.parametrize("status", [302, 307])
async def test_redirect_to_a_dead_place_names_that_place(status: int) -> None:
    """With the method of the first call, as Go's client has it."""
    with nobody_listens() as port:
        message, _ = await outcome(says("", status, Location=f"http://127.0.0.1:{port}/moved"))

    assert message == f'Post "http://127.0.0.1:{port}/moved": dial tcp 127.0.0.1:{port}: connect: connection refused'


async def test_redirect_to_a_silent_place_names_that_place() -> None:
    async with serving(hangs()) as silent, serving(says("", 307, Location=silent.address)) as redirecting:
        with pytest.raises(ExtenderError) as caught:
            await filtered(redirecting.address, **LONGER)

    assert str(caught.value) == f'Post "{silent.address}": {AWAITING_HEADERS}'


@pytest.mark.parametrize("address", ["http://extender.example", "https://extender.example"])
async def test_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    with nobody_listens() as port:
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        message = await failure(address)

    assert message == f'Post "URL/filter": proxyconnect tcp: dial tcp 127.0.0.1:{port}: connect: connection refused'


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        ("403 Forbidden", "Forbidden"),
        ("407 Proxy Authentication Required", "Proxy Authentication Required"),
        ("599 Nobody knows", "599"),
    ],
)
async def test_proxy_that_does_not_connect_is_quoted(
    monkeypatch: pytest.MonkeyPatch, answered: str, words: str
) -> None:
    async with serving(raw(f"HTTP/1.1 {answered}\r\nContent-Length: 0\r\n\r\n".encode())) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        message = await failure("https://extender.example")

    assert message == f'Post "URL/filter": {words}'


@on_each_loop
@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"SMTP ready\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nnot a length\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * limits.HEAD_BYTES,
    ],
    ids=["SMTP", "no header", "two lengths", "no chunk", "no end of the head"],
)
async def test_answer_that_is_no_http_is_called_so(bytes_sent: bytes) -> None:
    message, _ = await outcome(raw(bytes_sent, then_close=True))

    assert message == 'Post "URL/filter": net/http: HTTP/1.x transport connection broken: malformed HTTP response'


async def test_a_call_is_a_post_of_json_that_wants_no_compression() -> None:
    names, served = await outcome(says_json({"NodeNames": ["b"]}))

    assert names == ["b"]
    (request,) = served.requests
    assert (request.method, request.path) == ("POST", "/filter")
    assert [request.headers[name] for name in ("content-type", "accept-encoding")] == ["application/json", "identity"]
    assert request.headers["user-agent"] == "reprieve"


async def test_trailing_slashes_of_the_prefix_are_removed_and_the_verb_is_unchanged() -> None:
    async with serving(says_json({"NodeNames": []})) as served:
        await filtered(served.address + "/base//", filter_verb="v1/filter")
        await filtered(served.address, filter_verb="/filter")

    assert [request.path for request in served.requests] == ["/base/v1/filter", "//filter"]


async def test_connections_are_kept_alive_between_calls() -> None:
    async with serving(says_json({"NodeNames": ["a"]})) as served:
        extender = HTTPExtender(config(served.address))
        for _ in range(5):
            await extender.filter(POD, NODES)
        await extender.aclose()

    assert (len(served.requests), served.connections) == (5, 1)


async def test_an_extender_recovers_with_its_server() -> None:
    answers: list[Writes] = [resets, hangs(), says("", 500), says_json({"NodeNames": ["a"]})]

    async def in_turn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(reader, writer)

    async with serving(in_turn) as served:
        extender = HTTPExtender(config(served.address, **LONGER))
        for _ in range(3):
            with pytest.raises(ExtenderError):
                await extender.filter(POD, NODES)
        result = await extender.filter(POD, NODES)
        await extender.aclose()

    assert [node.name for node in result.nodes] == ["a"]


async def test_an_answer_that_comes_compressed_is_unpacked() -> None:
    body = gzip.compress(json.dumps({"NodeNames": ["a"]}).encode())

    assert (await outcome(says(body, Content_Encoding="gzip")))[0] == ["a"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_as_go_follows_them_and_warned_of_once(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """307 and 308 are sent once more with their body, the others are fetched."""
    async with (
        serving(says_json({"NodeNames": ["a"]})) as target,
        serving(says("", status, Location=f"{target.address}/moved")) as redirecting,
    ):
        extender = HTTPExtender(config(redirecting.address))
        for _ in range(2):
            assert [node.name for node in (await extender.filter(POD, NODES)).nodes] == ["a"]
        await extender.aclose()

    is_sent_again = status in (307, 308)
    assert [(request.method, request.path) for request in target.requests] == [
        ("POST" if is_sent_again else "GET", "/moved")
    ] * 2
    assert all((request.body is not None) == is_sent_again for request in target.requests)
    assert [record.levelname for record in caplog.records if "redirects calls" in record.getMessage()] == ["WARNING"]


async def test_redirect_to_a_port_that_cannot_be_is_an_error_of_the_call() -> None:
    message, _ = await outcome(says("", 307, Location="http://e:99999/"))

    assert message == 'Post "http://e:99999/": Port out of range 0-65535'


async def test_redirects_through_ever_other_servers_are_followed() -> None:
    """More of them than connections are kept to."""
    number = limits.REDIRECTS + 3
    async with AsyncExitStack() as stack:
        last = await stack.enter_async_context(serving(says_json({"NodeNames": ["a"]})))
        servers = [
            await stack.enter_async_context(serving(says("", 307, Location=f"{last.address}/"))) for _ in range(number)
        ]
        targets = iter(servers)

        async def redirects(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await says("", 307, Location=f"{next(targets).address}/")(reader, writer)

        first = await stack.enter_async_context(serving(redirects))
        extender = HTTPExtender(config(first.address))
        passing = [[node.name for node in (await extender.filter(POD, NODES)).nodes] for _ in range(number)]
        await extender.aclose()

    assert passing == [["a"]] * number


async def test_redirects_in_a_circle_end() -> None:
    message, served = await outcome(says("", 307, Location="/filter"))

    assert message == 'Post "URL/filter": stopped after 10 redirects'
    assert len(served.requests) == 10


async def test_password_in_the_address_is_sent_to_the_extender_and_masked_elsewhere() -> None:
    async with serving(says_json({"NodeNames": ["a"]})) as served:
        address = served.address.replace("//", "//me:secret@")
        names = await filtered(address)
        with pytest.raises(ExtenderError) as caught:
            await filtered(address, http_timeout=Duration.parse("1ns"))

    assert names == ["a"]
    assert served.requests[0].headers["authorization"] == "Basic bWU6c2VjcmV0"
    assert "//me:***@" in str(caught.value)
    assert HTTPExtender(config("http://me:secret@e")).name == "http://me:***@e"


async def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for this machine, as in Go."""
    async with serving(says_json({"NodeNames": ["a"]})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        assert await filtered("http://extender.example/base") == ["a"]

    assert [request.path for request in proxy.requests] == ["http://extender.example/base/filter"]
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert (await outcome(says_json({"NodeNames": ["a"]})))[0] == ["a"]


async def test_a_large_answer_is_read_all_the_same() -> None:
    failed = {f"n{number}": "x" * 500 for number in range(5000)}

    assert (await outcome(says_json({"NodeNames": ["a"], "FailedNodes": failed})))[0] == ["a"]


# TLS.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "ca")


def server_side(authority: Authority, *names: str, client_ca: Path | None = None) -> ssl.SSLContext:
    files = authority.sign(f"server-{'-'.join(names)}".replace(":", "-").replace(".", "-"), *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def asked_over_tls(
    server: ssl.SSLContext, tls: ExtenderTLSConfig | None, *, enable_https: bool = True
) -> list[str] | str:
    # Handshakes that are refused are not worth a line of the log.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with serving(says_json({"NodeNames": ["a"]}), server) as served:
        try:
            return await filtered(served.address, enable_https=enable_https, tls_config=tls)
        except ExtenderError as exc:
            return str(exc).replace(served.address, "URL")


@pytest.mark.parametrize("host", ["gpu.example", "gpu.example."])
async def test_dot_that_ends_a_name_is_no_part_of_it_in_a_certificate(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, port, *args, **options: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    ])  # fmt: skip
    async with serving(says_json({"NodeNames": ["a"]}), server_side(authority, "DNS:gpu.example")) as served:
        address = served.address.replace("127.0.0.1", host)

        assert await filtered(address, tls_config=ExtenderTLSConfig(ca_file=str(authority.certificate))) == ["a"]


Trusting = Callable[[Authority], ExtenderTLSConfig | None]


@pytest.mark.parametrize(
    ("names", "trusting"),
    [
        pytest.param(["IP:127.0.0.1"], lambda ca: ExtenderTLSConfig(ca_file=str(ca.certificate)), id="file"),
        pytest.param(["IP:127.0.0.1"], lambda ca: ExtenderTLSConfig(ca_data=ca.certificate.read_bytes()), id="data"),
        pytest.param(
            ["IP:127.0.0.1"],
            lambda ca: ExtenderTLSConfig(ca_file="/nowhere", ca_data=ca.certificate.read_bytes()),
            id="data before file",
        ),
        pytest.param(
            ["DNS:other"],
            lambda ca: ExtenderTLSConfig(ca_file=str(ca.certificate), server_name="other"),
            id="another name",
        ),
        pytest.param(["DNS:other"], lambda ca: ExtenderTLSConfig(insecure=True), id="anybody"),
        pytest.param(["DNS:other"], lambda ca: ExtenderTLSConfig(), id="anybody, because no authority is named"),
        pytest.param(["DNS:other"], lambda ca: None, id="anybody, because nothing is said about TLS"),
    ],
)
async def test_servers_that_are_trusted(authority: Authority, names: list[str], trusting: Trusting) -> None:
    assert await asked_over_tls(server_side(authority, *names), trusting(authority)) == ["a"]


NOT_TRUSTED = 'Post "URL/filter": tls: failed to verify certificate: x509: '
STRANGER = NOT_TRUSTED + "certificate signed by unknown authority"


async def test_without_enable_https_an_https_address_is_verified(authority: Authority) -> None:
    """Against the authority that is named, or else those of the system."""
    server = server_side(authority, "IP:127.0.0.1")

    assert await asked_over_tls(server, ExtenderTLSConfig(ca_file=str(authority.certificate)), enable_https=False) == [
        "a"
    ]
    assert await asked_over_tls(server, None, enable_https=False) == STRANGER


@pytest.mark.parametrize(
    ("names", "server_name", "words"),
    [
        (["DNS:a", "DNS:b"], "", "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
        (["IP:10.0.0.1", "DNS:a", "IP:10.0.0.2"], "", "certificate is valid for 10.0.0.1, 10.0.0.2, not 127.0.0.1"),
        (["IP:127.0.0.1", "DNS:a", "DNS:*.b"], "c", "certificate is valid for a, *.b, not c"),
        (["IP:127.0.0.1"], "c", "certificate is not valid for any names, but wanted to match c"),
    ],
)
async def test_a_server_with_another_name_is_not_trusted(
    authority: Authority, names: list[str], server_name: str, words: str
) -> None:
    trusting = ExtenderTLSConfig(ca_file=str(authority.certificate), server_name=server_name)

    assert await asked_over_tls(server_side(authority, *names), trusting) == NOT_TRUSTED + words


async def test_a_server_of_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    trusting = ExtenderTLSConfig(ca_file=str(authority.certificate))
    stranger = Authority(tmp_path, "stranger")

    assert await asked_over_tls(server_side(stranger, "IP:127.0.0.1"), trusting) == STRANGER


@pytest.mark.parametrize("write", [says("{}"), raw(b"SSH-2.0-x\r\n", then_close=True)], ids=["HTTP", "SSH"])
async def test_a_port_without_tls_is_called_so(write: Writes) -> None:
    """OpenSSL cannot tell whether what it got is HTTP, as on a port for extenders it is."""

    async def at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await write(reader, writer)
        writer.close()

    server = await asyncio.start_server(at_once, "127.0.0.1", 0)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ExtenderError) as caught:
            await filtered(address, tls_config=ExtenderTLSConfig(insecure=True))

    assert str(caught.value) == f'Post "{address}/filter": http: server gave HTTP response to HTTPS client'


@pytest.mark.parametrize(
    ("newest", "shown_by", "alert"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_3, None, "certificate required", id="TLS 1.3"),
        pytest.param(ssl.TLSVersion.TLSv1_2, None, "handshake failure", id="TLS 1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, "stranger", "unknown certificate authority", id="of a stranger"),
    ],
)
async def test_server_that_wants_another_client_certificate_is_quoted(
    authority: Authority, tmp_path: Path, newest: ssl.TLSVersion, shown_by: str | None, alert: str
) -> None:
    server = server_side(authority, "IP:127.0.0.1", client_ca=authority.certificate)
    server.maximum_version = newest
    trusting = ExtenderTLSConfig(ca_file=str(authority.certificate))
    if shown_by is not None:
        client_files = Authority(tmp_path, shown_by).sign("client")
        trusting = replace(trusting, cert_file=str(client_files.certificate), key_file=str(client_files.key))
    # asyncio's servers hang up without the alert; others send it.
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuses() -> None:
            connection, _ = listening.accept()
            secured = server.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            with suppress(ssl.SSLError):
                secured.do_handshake()
            # What the client has sent is read, since closing would reset the connection and lose the alert.
            with socket.socket(fileno=secured.detach()) as plain:
                while plain.recv(4096):
                    pass

        refusing = Thread(target=refuses, daemon=True)
        refusing.start()
        message = await failure(f"https://127.0.0.1:{listening.getsockname()[1]}", tls_config=trusting)
        refusing.join()

    assert message == f'Post "URL/filter": remote error: tls: {alert}'


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (ssl_failure("TLSV1_ALERT_PROTOCOL_VERSION"), "remote error: tls: protocol version not supported"),
        (ssl_failure("TLSV1_UNRECOGNIZED_NAME"), "remote error: tls: unrecognized name"),
        (ssl_failure("NO_SHARED_CIPHER"), "tls: no shared cipher"),
        (ssl_failure("CERTIFICATE_VERIFY_FAILED", 10), "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "dial tcp [::1]:80: connect: network is unreachable"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 80)"), "dial tcp 10.0.0.1:80: connect: no route to host"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "read tcp [::1]:80: read: connection reset by peer"),
        (ConnectionAbortedError("cut in a handshake"), "EOF"),
    ],
)  # fmt: skip
def test_other_failures_have_gos_words_too(failure: Exception, message: str) -> None:
    around = RuntimeError("in the client's own words,\n on two lines")

    assert words(around, "::1", 80) == "in the client's own words, on two lines"
    around.__cause__ = failure
    assert words(around, "::1", 80) == words(failure, "::1", 80) == message


@pytest.mark.parametrize("inline", [True, False], ids=["data", "files"])
async def test_client_certificate_is_presented(authority: Authority, inline: bool) -> None:
    files, server = authority.sign("client"), server_side(authority, "IP:127.0.0.1", client_ca=authority.certificate)
    tls_config = (
        ExtenderTLSConfig(
            ca_file=str(authority.certificate),
            cert_data=files.certificate.read_bytes(),
            key_data=files.key.read_bytes(),
        )
        if inline
        else ExtenderTLSConfig(
            ca_file=str(authority.certificate), cert_file=str(files.certificate), key_file=str(files.key)
        )
    )

    assert await asked_over_tls(server, tls_config) == ["a"]
    assert isinstance(await asked_over_tls(server, ExtenderTLSConfig(ca_file=str(authority.certificate))), str)
