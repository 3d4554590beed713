"""The starter of a control plane, with programs that only pretend. What real ones do is in `tests/envtest`."""

import asyncio
import json
from pathlib import Path

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.values.targets.target import Target
from tests.kit.control_plane import ControlPlane
from tests.kit.processes import Process, ProcessError
from tests.kit.stand_ins import pretending


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """A folder with both programs; what they are to do, and what they did, is there too."""
    return pretending(tmp_path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def journal(assets: Path) -> list[str]:
    path = assets / "journal"
    return path.read_text().splitlines() if path.exists() else []


def ask(target: Target) -> dict[str, str]:
    async def get() -> bytes:
        client = Client(target)
        try:
            return await client.get("/version")
        finally:
            await client.aclose()

    answer: dict[str, str] = json.loads(asyncio.run(get()))
    return answer


def test_control_plane_is_ready_inside_its_context_and_gone_afterwards(assets: Path, work: Path):
    with ControlPlane.start(assets, work) as plane:
        answer = ask(plane.target())
        url = plane.url

    assert answer == {"kind": "Answer", "path": "/version", "user": "admin"}
    assert journal(assets) == ["etcd came", "kube-apiserver came", "kube-apiserver left", "etcd left"]
    with pytest.raises(errors.Unreachable):
        ask(Target(url))


def test_programs_are_given_addresses_and_folders_of_their_own(assets: Path, work: Path):
    with ControlPlane.start(assets, work):
        etcd, api_server = (json.loads((assets / f"{name}.flags").read_text()) for name in ("etcd", "kube-apiserver"))

    assert etcd["listen-client-urls"] == etcd["advertise-client-urls"] == api_server["etcd-servers"]
    assert etcd["listen-client-urls"] != etcd["listen-peer-urls"]
    assert Path(etcd["data-dir"]).parent == work == Path(api_server["cert-dir"])
    assert api_server["bind-address"] == "127.0.0.1"
    assert api_server["disable-admission-plugins"] == "ServiceAccount"
    assert api_server["authorization-mode"] == "RBAC"
    for name in (
        "tls-cert-file",
        "tls-private-key-file",
        "service-account-key-file",
        "service-account-signing-key-file",
        "token-auth-file",
    ):
        assert Path(api_server[name]).parent == work


def test_named_admission_plugins_are_disabled(assets: Path, work: Path):
    with ControlPlane.start(assets, work, without_admission=("TaintNodesByCondition", "Priority")):
        api_server = json.loads((assets / "kube-apiserver.flags").read_text())

    assert api_server["disable-admission-plugins"] == "ServiceAccount,TaintNodesByCondition,Priority"


def test_further_users_have_their_groups(assets: Path, work: Path):
    with ControlPlane.start(assets, work, users={"viewer": ("readers", "others"), "nobody": ()}) as plane:
        answer = ask(plane.target("viewer"))
        groups = [line.split(",", 1)[1] for line in (work / "tokens.csv").read_text().splitlines()]

    assert answer["user"] == "viewer"
    assert groups == ['admin,admin,"system:masters"', 'viewer,viewer,"readers,others"', 'nobody,nobody,""']


def test_the_api_server_comes_back_where_it_was(assets: Path, work: Path):
    with ControlPlane.start(assets, work) as plane:
        target = plane.target()
        plane.stop_api_server()
        with pytest.raises(errors.Unreachable):
            ask(target)
        plane.start_api_server()
        assert ask(target)["user"] == "admin"
        plane.kill_api_server()

    came_and_left = ["kube-apiserver came", "kube-apiserver left", "kube-apiserver came"]
    assert journal(assets) == ["etcd came", *came_and_left, "etcd left"]


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver"])
def test_program_that_ends_early_is_reported_with_its_last_words(name: str, assets: Path, work: Path):
    (assets / f"{name}.exit").write_text("3")

    words = f"{name} has ended with exit code 3 before it was ready:\nfirst words\nlast words"
    with pytest.raises(ProcessError, match=words), ControlPlane.start(assets, work):
        raise AssertionError("it is not there")

    came = [line.split()[0] for line in journal(assets) if line.endswith("came")]
    ended = [line.split()[0] for line in journal(assets) if line.endswith("left")]
    assert set(came) - set(ended) == {name}


def test_a_program_that_never_gets_ready_is_stopped(assets: Path, tmp_path: Path):
    process = Process([assets / "etcd", "--listen-client-urls=http://127.0.0.1:0"], tmp_path / "log")

    with pytest.raises(ProcessError, match=r"etcd was not ready after 0\.1 s"):
        process.wait_until(lambda: False, 0.1)

    assert not process.is_running


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver"])
def test_a_program_that_is_missing_is_named(name: str, assets: Path, work: Path):
    (assets / name).unlink()

    words = f"assets/{name} can not be run: No such file or directory"
    with pytest.raises(ProcessError, match=words), ControlPlane.start(assets, work):
        raise AssertionError("it is not there")

    assert len(journal(assets)) % 2 == 0


def test_failing_test_leaves_no_program_behind(assets: Path, work: Path):
    with pytest.raises(KeyError), ControlPlane.start(assets, work):
        raise KeyError("of the test")

    assert journal(assets)[-2:] == ["kube-apiserver left", "etcd left"]


def test_a_stubborn_program_is_ended(assets: Path, tmp_path: Path):
    (assets / "etcd.stubborn").touch()
    process = Process([assets / "etcd", "--listen-client-urls=http://127.0.0.1:0"], tmp_path / "log")
    process.wait_until(lambda: bool(journal(assets)), 30)

    assert not process.stop(0.1)
    assert not process.is_running
