"""Every command against a service, or a cluster, that does not answer as it should: it ends, with one line that says
what to do.
"""

import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from api.cli import app
from reprieve.errors import SourceAwayError
from reprieve.sources import live_clusters, reaching, service_answers
from tests.api.test_questions import pod
from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.service import kubeconfig_for

SHORT = 0.4
NEVER = ("silent", "slow", "half-open")
"""Those whose answer never comes, or never ends."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def slow(connection: socket.socket) -> None:
    """A byte now and then, so that no single read is late."""
    connection.recv(4096)
    connection.sendall(HEAD + b"{")
    while not over.wait(SHORT / 10):
        connection.sendall(b" ")


def half_open(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(HEAD[:40])
    over.wait()


def hangs_up(connection: socket.socket) -> None:
    connection.recv(4096)


def status(code: int) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        body = (
            b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"so it is","reason":"No","code":%d}'
            % code
        )
        head = (
            b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            % (code, len(body))
        )
        connection.recv(65536)
        connection.sendall(head + body)

    return answer


over = threading.Event()


@contextmanager
def answering(answer: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that treats each connection so."""
    over.clear()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def treat(connection: socket.socket) -> None:
            try:
                with connection if context is None else context.wrap_socket(connection, server_side=True) as wrapped:
                    answer(wrapped)
            except OSError:
                pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=treat, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


def hurry(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the limits that are about to be reached."""
    for module, name in (
        (service_answers, "REACH_SECONDS"),
        (reaching, "REACH_SECONDS"),
        (live_clusters, "FAILING_SECONDS"),
    ):
        if (how in NEVER) == name.startswith("REACH"):
            monkeypatch.setattr(module, name, SHORT)


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("one", "1")))
    return str(file)


COMMANDS = {
    "why": ["why", "shop/web-0"],
    "pending": ["pending"],
    "why deploy": ["why", "deploy/web"],
    "whatif": ["whatif", "--drain", "node-0"],
    "victims": ["victims", "-f", "POD"],
    "fits": ["fits", "-f", "POD"],
    "plan": ["plan", "-f", "POD"],
    "who-preempted": ["who-preempted", "shop/web-0"],
    "shadow": ["shadow", "report"],
}
"""Commands that ask a service."""
TO_CLUSTERS = {name: words for name, words in COMMANDS.items() if name not in ("who-preempted", "shadow")} | {
    "shadow run": ["shadow", "run", "--for", "1s"],
    "dev": ["dev", "--folder", "PROJECT"],
    "mcp": ["mcp", "--list"],
}
"""Commands that ask a cluster. A service is asked by `mcp` only when a tool is called."""
ANSWERS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "silent": (silent, "has not answered within"),
    "slow": (slow, "has not answered within"),
    "half-open": (half_open, "has not answered within"),
    "hangs up": (hangs_up, "closed the connection"),
    "401": (status(401), "--token"),
    "403": (status(403), "--token"),
    "500": (status(500), "try again"),
}


def away_in_each_way(commands: Iterable[str]) -> list[tuple[str, str]]:
    """All ways to be away for one command, and all commands for one way: they go through one door."""
    return [(how, "why") for how in ANSWERS] + [("403", command) for command in commands if command != "why"]


def test_people_wait_for_less_than_ten_seconds() -> None:
    assert max(service_answers.REACH_SECONDS, reaching.REACH_SECONDS) + service_answers.LOCAL_SECONDS < 10


@pytest.mark.parametrize(("how", "command"), away_in_each_way(COMMANDS))
def test_a_service_that_is_away(how: str, command: str, manifest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(how, monkeypatch)
    answer, words = ANSWERS[how]
    with answering(answer) as port:
        assert words in away(*arguments_of(command, manifest), "--server", f"127.0.0.1:{port}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_service_at_a_closed_port(command: str, manifest: str) -> None:
    error = away(*arguments_of(command, manifest), "--server", f"127.0.0.1:{free_port()}")

    assert "cannot be reached; is it running, and is the address right? --kubeconfig or --dump need no service" in error


CLUSTERS = dict.fromkeys(ANSWERS, "kubectl cluster-info") | {"401": "sign in again", "403": "kubectl auth can-i"}


@pytest.mark.parametrize(("how", "command"), away_in_each_way(TO_CLUSTERS))
def test_a_cluster_that_is_away(
    how: str, command: str, manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry("silent" if how == "hangs up" else how, monkeypatch)  # what breaks off is asked again
    if command == "dev":
        for name in ("path", "meta_path"):  # where the project's plugins are found
            monkeypatch.setattr(sys, name, [*getattr(sys, name)])
        monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
        monkeypatch.chdir(tmp_path)
        assert CliRunner().invoke(app, ["init", "project"]).exit_code == 0
    with answering(ANSWERS[how][0]) as port:
        error = away(*arguments_of(command, manifest), "--kubeconfig", str(kubeconfig_for(port, tmp_path)))

    assert error.startswith(f"the cluster at http://127.0.0.1:{port} cannot be asked: ")
    assert CLUSTERS[how] in error


def test_a_cluster_at_a_closed_port(tmp_path: Path) -> None:
    assert "kubectl cluster-info" in away(
        "why", "shop/web-0", "--kubeconfig", str(kubeconfig_for(free_port(), tmp_path))
    )


@pytest.mark.parametrize("source", ["--server", "--kubeconfig"])
def test_a_certificate_that_is_not_trusted(source: str, tmp_path: Path) -> None:
    files = Authority(tmp_path, "nobody").sign("elsewhere")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with answering(silent, context) as port:
        config = kubeconfig_for(port, tmp_path)
        config.write_text(config.read_text().replace("http://", "https://"))

        error = away("why", "shop/web-0", source, f"https://127.0.0.1:{port}" if source == "--server" else str(config))

    assert "certificate" in error
    assert ("SSL_CERT_FILE" if source == "--server" else "certificate-authority-data") in error


EXTENDERS = dict.fromkeys(NEVER, "nothing more was asked") | {
    "hangs up": "EOF",
    "401": "tlsConfig.certFile",
    "403": "tlsConfig.certFile",
    "500": "answer 200 and say what is wrong in Error",
}


@pytest.mark.parametrize("how", EXTENDERS)
@pytest.mark.parametrize("command", ["doctor", "print-scheduler-config"])
def test_an_extender_that_does_not_answer_as_it_should(command: str, how: str) -> None:
    with answering(ANSWERS[how][0]) as port:
        result = examined(command, f"http://127.0.0.1:{port}", timeout=1 if how in NEVER else 30)

    assert EXTENDERS[how] in result


@pytest.mark.parametrize("command", ["doctor", "print-scheduler-config"])
def test_an_extender_at_a_closed_port(command: str) -> None:
    assert "is it running, and is the port right?" in examined(command, f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("command", ["doctor", "print-scheduler-config"])
def test_an_extender_whose_certificate_is_not_trusted(command: str, tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "us"), Authority(tmp_path, "nobody")
    files = theirs.sign("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with answering(silent, context) as port:
        result = examined(command, f"https://127.0.0.1:{port}", "--ca-file", str(ours.certificate), timeout=30)

    assert "give the CA that signed its certificate" in result


def test_an_extender_that_never_finishes_the_handshake(tmp_path: Path) -> None:
    with answering(silent) as port:
        text = examined("doctor", f"https://127.0.0.1:{port}", "--ca-file", str(Authority(tmp_path, "us").certificate))

    assert "does it speak TLS" in text


def test_silent_extender_is_asked_each_question_once() -> None:
    with answering(silent) as port:
        result = CliRunner().invoke(app, ["doctor", f"http://127.0.0.1:{port}", "--timeout", "1", "-o", "json"])

    in_full, by_name = (report["findings"] for report in json.loads(result.stdout))
    assert [finding["grade"] for finding in in_full if finding["detail"] == "no answer within 2 s"] == ["bad"]
    assert [finding["grade"] for finding in by_name] == ["skipped"]


def examined(command: str, url: str, *more: str, timeout: int = 1) -> str:
    """What the command says, in one line."""
    address = ["--url", url] if command == "print-scheduler-config" else [url]
    result = CliRunner().invoke(app, [command, *address, "--timeout", str(timeout), *more])
    assert result.exit_code == 1, (result.output, result.exception)
    return " ".join(result.output.split())


def arguments_of(command: str, manifest: str) -> list[str]:
    places = {"POD": manifest, "PROJECT": str(Path(manifest).parent / "project")}
    return [places.get(word, word) for word in {**COMMANDS, **TO_CLUSTERS}[command]]


def away(*arguments: str) -> str:
    """The one line with which the command ends."""
    result: Result = CliRunner().invoke(app, [*arguments])
    assert isinstance(result.exception, SourceAwayError), (result.output, result.exception)
    assert result.output == ""
    return str(result.exception)
