"""Whom the client believes, and how it shows who it is. On real sockets, with certificates of an hour."""

import asyncio
import logging
import shutil
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.values.targets.target import Credentials, Identity, Target
from extender.values.targets.tls import KeyPair, Pem, Tls
from tests.extender.client.sockets import Asked, Server, asking, ok, pass_time, serve
from tests.kit.certificates import Authority, CertificateFiles, encrypted
from tests.kit.ports import free_port

pytestmark = pytest.mark.usefixtures("stage")

PODS = "/api/v1/pods"


def server_side(files: CertificateFiles, *, clients: Authority | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    if clients is not None:
        context.load_verify_locations(clients.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


async def ask(files: CertificateFiles, clients: Authority | None = None, **target: Any) -> Server:
    """What a server saw of one request."""
    async with asking(ok, server_side(files, clients=clients), **target) as (client, server):
        await client.get(PODS)
    return server


async def test_a_server_of_the_authority_is_believed(authority: Authority, server_files: CertificateFiles):
    assert len((await ask(server_files, tls=Tls(ca=Pem(file=authority.certificate)))).asked) == 1
    assert len((await ask(server_files, tls=Tls(ca=Pem(text=authority.certificate.read_bytes())))).asked) == 1


async def test_any_certificate_of_the_bundle_is_trusted_as_an_anchor(server_files: CertificateFiles):
    """As Go does it: an intermediate authority, or a server's own certificate, is enough."""
    assert len((await ask(server_files, tls=Tls(ca=Pem(file=server_files.certificate)))).asked) == 1


@pytest.mark.parametrize("trusted", ["stranger", "system"])
async def test_a_server_of_another_authority_is_not(trusted: str, stranger: Authority, server_files: CertificateFiles):
    tls = Tls(ca=Pem(file=stranger.certificate)) if trusted == "stranger" else Tls()

    with pytest.raises(errors.Unreachable, match="check certificate-authority and tls-server-name"):
        await ask(server_files, tls=tls)


async def test_a_server_must_bear_its_name(authority: Authority):
    elsewhere = authority.sign("elsewhere", "DNS:kubernetes.default")

    with pytest.raises(errors.Unreachable, match="check certificate-authority and tls-server-name"):
        await ask(elsewhere, tls=Tls(ca=Pem(file=authority.certificate)))


async def test_a_server_may_bear_the_name_that_the_kubeconfig_gives(authority: Authority):
    elsewhere = authority.sign("elsewhere", "DNS:kubernetes.default")

    server = await ask(elsewhere, tls=Tls(ca=Pem(file=authority.certificate), server_name="kubernetes.default"))

    assert len(server.asked) == 1


async def test_insecure_target_accepts_any_certificate(stranger: Authority):
    assert len((await ask(stranger.sign("x", "DNS:x"), tls=Tls(insecure=True))).asked) == 1


async def test_a_client_certificate_is_shown(authority: Authority, server_files: CertificateFiles):
    certificate, key = authority.sign("scheduler")

    for tls in (
        Tls(Pem(file=authority.certificate), Pem(file=certificate), Pem(file=key)),
        Tls(Pem(file=authority.certificate), Pem(text=certificate.read_bytes()), Pem(text=key.read_bytes())),
    ):
        assert (await ask(server_files, authority, tls=tls)).asked[0].peer == "scheduler"


class FromPlugin(Credentials):
    """As an exec plugin: a certificate that changes."""

    def __init__(self, *pairs: CertificateFiles) -> None:
        self.identities = [
            Identity(None, KeyPair(certificate.read_bytes(), key.read_bytes())) for certificate, key in pairs
        ]

    async def identity(self, now: float) -> Identity:
        return self.identities.pop(0) if len(self.identities) > 1 else self.identities[0]

    def invalidate(self, refused: Identity) -> None:
        pass


async def test_a_certificate_from_a_plugin_goes_before_that_of_the_kubeconfig(
    authority: Authority, server_files: CertificateFiles
):
    certificate, key = authority.sign("scheduler")
    tls = Tls(Pem(file=authority.certificate), Pem(file=certificate), Pem(file=key))

    server = await ask(server_files, authority, tls=tls, credentials=FromPlugin(authority.sign("plugin")))

    assert server.asked[0].peer == "plugin"


async def test_a_new_certificate_from_a_plugin_is_used_at_once(authority: Authority, server_files: CertificateFiles):
    async def get_twice(client: Client) -> None:
        await client.get(PODS)
        await client.get(PODS)

    tls = Tls(ca=Pem(file=authority.certificate))
    names = await peers(
        server_files,
        authority,
        get_twice,
        tls=tls,
        credentials=FromPlugin(authority.sign("first"), authority.sign("second")),
    )

    assert names == ["first", "second"]


async def peers(
    files: CertificateFiles, clients: Authority, act: Callable[[Client], Awaitable[None]], **target: Any
) -> list[str]:
    """Who asked, by common name. `old` is refused; a watch gets its second event when somebody else has asked."""
    renewed = asyncio.Event()

    async def refuse_the_old(call: Asked) -> bool:
        if call.peer == "old" and "watch" not in call.line:
            return await call.answer(
                "401 Unauthorized", b'{"kind":"Status","reason":"Unauthorized","code":401,"message":"Unauthorized"}'
            )
        if "watch" in call.line:
            await call.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n"
            )
            await renewed.wait()
            await call.send(b"2\r\n2\n\r\n0\r\n\r\n")
            return True
        renewed.set()
        return await call.answer()

    async with asking(refuse_the_old, server_side(files, clients=clients), **target) as (client, server):
        await act(client)
    return [call.peer for call in server.asked]


@pytest.fixture
def rotating(authority: Authority, tmp_path: Path) -> tuple[Tls, Callable[[str], None]]:
    """A client certificate on disk, and what replaces it."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def install(name: str) -> None:
        for source, goal in zip(authority.sign(name), (certificate, key), strict=True):
            shutil.copy(source, goal)

    install("old")
    return Tls(Pem(file=authority.certificate), Pem(file=certificate), Pem(file=key)), install


async def test_after_a_401_a_rotated_certificate_is_read_again(
    authority: Authority, server_files: CertificateFiles, rotating: tuple[Tls, Callable[[str], None]]
):
    tls, install = rotating

    async def rotate(client: Client) -> None:
        with pytest.raises(errors.Unauthorized):
            await client.get(PODS)
        install("new")
        await client.get(PODS)

    assert await peers(server_files, authority, rotate, tls=tls) == ["old", "old", "new"]


async def test_within_a_minute_a_rotated_certificate_is_used_without_being_refused_first(
    authority: Authority, server_files: CertificateFiles, rotating: tuple[Tls, Callable[[str], None]]
):
    tls, install = rotating
    install("first")

    async def rotate(client: Client) -> None:
        await client.get(PODS)
        install("second")
        await client.get(PODS)
        pass_time(45)
        await client.get(PODS)

    assert await peers(server_files, authority, rotate, tls=tls) == ["first", "first", "second"]


async def test_certificates_that_stay_the_same_cost_no_connections(
    authority: Authority, server_files: CertificateFiles, rotating: tuple[Tls, Callable[[str], None]]
):
    async with asking(ok, server_side(server_files, clients=authority), tls=rotating[0]) as (client, server):
        await client.get(PODS)
        pass_time(45)
        await client.get(PODS)

    assert server.connections == 1


async def test_idle_connections_with_the_old_certificate_are_closed(
    authority: Authority, server_files: CertificateFiles, rotating: tuple[Tls, Callable[[str], None]]
):
    tls, install = rotating

    async with asking(ok, server_side(server_files, clients=authority), tls=tls) as (client, server):
        await asyncio.gather(*(client.get(PODS) for _ in range(3)))
        install("new")
        pass_time(45)
        await client.get(PODS)
        while server.still_open > 1:  # noqa: ASYNC110 - the end of a connection takes its way
            await asyncio.sleep(0.01)
        await client.get(PODS)

    assert (server.connections, len(server.asked)) == (4, 5)


async def test_a_watch_goes_on_when_certificates_rotate(
    authority: Authority, server_files: CertificateFiles, rotating: tuple[Tls, Callable[[str], None]]
):
    tls, install = rotating
    lines: list[bytes] = []

    async def rotate_while_watching(client: Client) -> None:
        async with client.watch(PODS, params={"watch": "1"}, silence=10) as events:
            lines.append(await anext(events))
            with pytest.raises(errors.Unauthorized):
                await client.get(PODS)
            install("new")
            await client.get(PODS)
            lines.append(await anext(events))

    names = await peers(server_files, authority, rotate_while_watching, tls=tls)

    assert lines == [b"1", b"2"]
    assert names[-1] == "new"


async def test_a_certificate_that_does_not_belong_to_its_key_is_left_alone(
    authority: Authority,
    server_files: CertificateFiles,
    rotating: tuple[Tls, Callable[[str], None]],
    caplog: pytest.LogCaptureFixture,
):
    """CertificateFiles are not replaced in one instant: what was in force stays until they belong together."""
    tls, _ = rotating
    assert tls.key is not None
    assert tls.key.file is not None
    half = tls.key.file

    async def rotate_half(client: Client) -> None:
        with pytest.raises(errors.Unauthorized):
            await client.get(PODS)
        shutil.copy(authority.sign("half")[1], half)
        with pytest.raises(errors.Unauthorized):
            await client.get(PODS)

    caplog.set_level(logging.WARNING)
    names = await peers(server_files, authority, rotate_half, tls=tls)

    assert set(names) == {"old"}
    assert "the old ones stay" in caplog.text


@pytest.mark.parametrize(
    ("ruin", "words"),
    [
        pytest.param(
            lambda tls, folder, pair: Tls(Pem(text=b"no PEM")), "certificate authority is no PEM certificate", id="CA"
        ),
        pytest.param(
            lambda tls, folder, pair: Tls(Pem(file=folder / "gone")),
            "gone cannot be read: No such file or directory",
            id="no CA",
        ),
        pytest.param(
            lambda tls, folder, pair: Tls(tls.ca, Pem(text=b"x"), Pem(text=b"y")),
            "client certificate and its key",
            id="no certificate",
        ),
        pytest.param(
            lambda tls, folder, pair: Tls(tls.ca, Pem(file=pair[0]), tls.key),
            "client certificate and its key",
            id="of another key",
        ),
        pytest.param(
            lambda tls, folder, pair: Tls(tls.ca, Pem(file=pair[0]), Pem(file=encrypted(pair[1], "canary"))),
            "key is encrypted",
            id="password",
        ),
    ],
)
async def test_unusable_certificates_are_reported_in_one_line(
    ruin: Callable[[Tls, Path, CertificateFiles], Tls],
    words: str,
    authority: Authority,
    server_files: CertificateFiles,
    rotating: tuple[Tls, Callable[[str], None]],
    tmp_path: Path,
):
    tls = ruin(rotating[0], tmp_path, authority.sign("another"))

    with pytest.raises(errors.Unreachable, match=words) as caught:
        await ask(server_files, tls=tls)

    assert "\n" not in str(caught.value)


def test_private_key_is_not_shown(authority: Authority):
    certificate, key = authority.sign("scheduler")
    secret = key.read_bytes()
    pair = KeyPair(certificate.read_bytes(), secret)
    body = secret.splitlines()[1].decode()

    texts = [
        repr(Tls(None, Pem(text=certificate.read_bytes()), Pem(text=secret))),
        repr(pair),
        repr(Identity("Bearer canary", pair)),
    ]

    assert not [text for text in texts if body in text or "canary" in text]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_is_reached_through_a_proxy(scheme: str, authority: Authority, server_files: CertificateFiles):
    """The proxy sees where to, and not what."""
    proxy_tls = server_side(server_files) if scheme == "https" else None
    connects: list[str] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connects.append((await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")[0])
        host, _, port = connects[-1].split()[1].partition(":")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    async def pump(source: asyncio.StreamReader, goal: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                goal.write(data)
        except ConnectionError:
            pass
        finally:
            goal.close()

    async with (
        serve(ok, server_side(server_files)) as server,
        await asyncio.start_server(tunnel, "127.0.0.1", 0, ssl=proxy_tls) as proxy,
    ):
        url = f"{scheme}://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        client = Client(Target(server.secure_url, tls=Tls(ca=Pem(file=authority.certificate)), proxy=url))
        await client.get(PODS)
        await client.get(PODS)
        await client.aclose()

    assert connects == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        pytest.param("https://127.0.0.1:{plain}", "should the address begin with http://", id="a server without TLS"),
        pytest.param("http://127.0.0.1:{free}", "127.0.0.1:{free}: connection refused", id="nobody listens"),
        pytest.param("http://nobody.invalid:80", "host of this name|cannot be looked up", id="no such name"),
        pytest.param("http://nobody..invalid:80", "nobody..invalid:80: ", id="no name at all"),
    ],
)
async def test_failure_to_connect_is_told_in_words_not_in_those_of_python(address: str, words: str):
    async def says_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    plain = await asyncio.start_server(says_hello, "127.0.0.1", 0)
    ports = {"plain": plain.sockets[0].getsockname()[1], "free": free_port()}
    async with plain, aclosing(Client(Target(address.format(**ports)))) as client:
        with pytest.raises(errors.Unreachable, match=words.format(**ports)) as failure:
            await client.get(PODS)

    assert not any(fragment in str(failure.value) for fragment in ("Errno", "_ssl", "[SSL"))
