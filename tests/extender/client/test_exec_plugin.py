"""Programs that say who we are. They are real ones, as small as they get."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from extender.client.credentials.exec_plugin import Exec, ExecEnv, ExecPlugin
from extender.values.targets.target import CredentialsError, Identity
from extender.values.targets.tls import KeyPair
from tests.kit.waiting import until


@pytest.fixture(autouse=True)
def stage() -> Iterator[asyncio.Runner]:
    """Processes need real time."""
    with asyncio.Runner() as runner:
        yield runner


V1 = "client.authentication.k8s.io/v1"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., ExecPlugin]:
    """A plugin that runs a line of shell, in which $RUN is the number of the run."""

    def make(
        script: str, *, now: Callable[[], datetime] = lambda: NOON, hint: str = "", version: str = V1
    ) -> ExecPlugin:
        path = tmp_path / "plugin"
        path.write_text(
            f'#!/bin/sh\nRUN=$(wc -l < "{tmp_path}/runs" 2>/dev/null || echo 0)\necho >> "{tmp_path}/runs"\n{script}\n'
        )
        path.chmod(0o755)
        return ExecPlugin(Exec(version, str(path), env=[ExecEnv("CANARY", "canary")], install_hint=hint), now=now)

    return make


def says(version: str = V1, **status: object) -> str:
    """A line of shell that writes these credentials."""
    text = json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})
    return f"printf '%s' '{text}' | sed \"s/RUN/$RUN/\""


def identity(plugin: ExecPlugin) -> Identity:
    return asyncio.run(plugin.identity(0))


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_its_token_is_borne(version: str, plugin: Callable[..., ExecPlugin]):
    assert identity(plugin(says(version, token="t"), version=version)) == Identity("Bearer t")


def test_plugin_sees_the_environment_and_variables_of_the_kubeconfig(
    plugin: Callable[..., ExecPlugin], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OURS", "ours")

    credentials = identity(plugin('RUN="$OURS-$CANARY"\n' + says(token="RUN")))

    assert credentials == Identity("Bearer ours-canary")


def test_its_certificate_is_shown(plugin: Callable[..., ExecPlugin]):
    credentials = identity(plugin(says(clientCertificateData="CERT", clientKeyData="KEY")))

    assert credentials == Identity(None, KeyPair(b"CERT", b"KEY"))


async def test_plugin_runs_again_only_after_its_credentials_expire(plugin: Callable[..., ExecPlugin]):
    clock = [NOON]
    runner = plugin(says(token="RUN", expirationTimestamp="2026-11-20T13:00:00Z"), now=lambda: clock[0])
    identities = []
    for minutes in (0, 59, 61):
        clock[0] = NOON + timedelta(minutes=minutes)
        identities.append(await runner.identity(0))

    assert [identity.authorization for identity in identities] == ["Bearer 0", "Bearer 0", "Bearer 1"]


async def test_plugin_runs_once_for_all_waiting_requests(plugin: Callable[..., ExecPlugin]):
    runner = plugin(says(token="RUN"))

    identities = await asyncio.gather(*(runner.identity(0) for _ in range(10)))

    assert {identity.authorization for identity in identities} == {"Bearer 0"}


async def test_plugin_runs_again_once_for_all_refused_requests(plugin: Callable[..., ExecPlugin]):
    runner = plugin(says(token="RUN"))

    first = await runner.identity(0)
    runner.invalidate(first)
    second = await runner.identity(0)
    runner.invalidate(first)
    third = await runner.identity(0)

    assert [identity.authorization for identity in (first, second, third)] == ["Bearer 0", "Bearer 1", "Bearer 1"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param("exit 3", "failed with exit code 3; install it", id="failure"),
        pytest.param("kill -9 $$", "failed with exit code -9", id="killed"),
        pytest.param("echo canary", "wrote something else than an ExecCredential", id="no JSON"),
        pytest.param("", "wrote something else", id="nothing"),
        pytest.param('echo \'{"token":"canary"}\'', "plugin returned version none", id="another object"),
        pytest.param(
            says("client.authentication.k8s.io/v1beta1", token="canary"),
            "plugin returned version client",
            id="another version",
        ),
        pytest.param(says(token=["canary"]), "wrote something else", id="wrong type"),
        pytest.param(says(), "didn't return a token or cert/key pair", id="no credentials"),
        pytest.param(says(clientKeyData="canary"), "only certificate or key, not both", id="key alone"),
        pytest.param(
            f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'', "didn't return a status field", id="no status"
        ),
        pytest.param(says(token="canary canary"), "no HTTP header may hold", id="a token of two words"),
    ],
)
def test_failing_plugin_is_reported_in_one_line_without_secrets(
    script: str, words: str, plugin: Callable[..., ExecPlugin]
):
    with pytest.raises(CredentialsError) as caught:
        identity(plugin(script, hint="install it\nsomehow"))

    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert "canary" not in message


def test_a_program_that_is_not_there_tells_how_to_get_it():
    with pytest.raises(CredentialsError, match="cannot be run: No such file or directory; brew install it"):
        identity(ExecPlugin(Exec(V1, "no-such-plugin-here", install_hint="brew install it")))


async def test_plugin_is_killed_when_its_request_is_cancelled(tmp_path: Path):
    script = (
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); print(flush=True); "
        "time.sleep(60)"
    )
    runner = ExecPlugin(Exec(V1, sys.executable, args=["-c", script]))
    asking = asyncio.create_task(runner.identity(0))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    pid = int((tmp_path / "pid").read_text())

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("waits", ["; wait", ""], ids=["with it", "though they outlive it and keep its output"])
async def test_programs_that_the_plugin_has_started_are_killed(
    plugin: Callable[..., ExecPlugin], tmp_path: Path, waits: str
):
    file = tmp_path / "pid"
    asking = asyncio.create_task(plugin(f'sleep 60 & echo $! > "{file}"{waits}').identity(0))
    while not file.exists() or not file.read_text():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    until(lambda: has_ended(int(file.read_text())))


def has_ended(pid: int) -> bool:
    """Whether the process runs no longer; whoever has adopted it may not have looked yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_secrets_are_not_shown(plugin: Callable[..., ExecPlugin]):
    runner = plugin(says(token="canary"))
    credentials = identity(runner)

    config = Exec(V1, "x", ["canary"], [ExecEnv("a", "canary")])
    assert "canary" not in repr(runner) + repr(credentials) + repr(config)
