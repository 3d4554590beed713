"""Addresses, namespaces and names as people type them; and servers that answer there without being a Reprieve."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app, sources
from tests.api.test_questions import cluster, deployment, pod
from tests.kit.objects import priority_class, state_file
from tests.kit.service import Service, kubeconfig_for, serving


@pytest.fixture(scope="module")
def running(dump: Path) -> Iterator[Service]:
    with serving(state=dump) as service:
        yield service


@pytest.fixture(scope="module")
def files_only() -> Iterator[int]:
    """Somebody who has files, and none that is asked for."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so called above
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def printed(*arguments: str, text: str | None = None) -> str:
    """What the command prints."""
    result = CliRunner().invoke(app, arguments, input=text, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def file_options(folder: Path, **objects: object) -> list[str]:
    """The options that name files with the objects."""
    for name, obj in objects.items():
        (folder / f"{name}.json").write_text(json.dumps(obj))
    return [word for name in objects for word in ("-f", str(folder / f"{name}.json"))]


def refused(*arguments: str, text: str | None = None) -> str:
    """Why it ends without an answer, in one line."""
    result = CliRunner().invoke(app, arguments, input=text)
    assert result.exit_code == 1
    assert len(str(result.exception).splitlines()) == 1
    return str(result.exception)


@pytest.mark.parametrize("command", ["why", "who-preempted"])
def test_server_that_answers_404_like_a_file_server_is_not_taken_for_a_reprieve(files_only: int, command: str) -> None:
    assert "not an answer of Reprieve" in refused(command, "shop/web-0", "--server", f"http://127.0.0.1:{files_only}")


@pytest.mark.parametrize("command", [("why", "shop/x"), ("who-preempted", "shop/x"), ("fits", "-f", "-")])
def test_a_path_too_many_is_found(running: Service, command: tuple[str, ...]) -> None:
    error = refused(*command, "--server", f"127.0.0.1:{running.port}/v1", text=yaml.safe_dump(pod("small", "500m")))

    assert "not an answer of Reprieve; give its address without a path" in error


def test_a_reprieve_is_believed_that_there_is_no_such_pod(running: Service) -> None:
    error = refused("why", "shop/nobody", "--server", f"127.0.0.1:{running.port}")

    assert error == "there is no pod shop/nobody, and no recent decision about one"


@pytest.mark.parametrize("address", ["ftp://host", "http://", "host:99999", "http://[::1", "two words"])
def test_malformed_address_is_refused(address: str) -> None:
    assert refused("why", "shop/x", "--server", address) == f"{address}: not an address; write http://HOST:PORT"


def test_unreachable_explicit_address_gives_no_advice_to_start_a_service() -> None:
    text = refused("why", "shop/x", "--server", "127.0.0.1:1")

    assert text.startswith("Reprieve at http://127.0.0.1:1 cannot be reached; is it running, and is the address right?")


@pytest.mark.parametrize(
    "words", [["-n", "shop", "too-large"], ["-n", "shop", "pod/too-large"], ["--namespace=shop", "shop/too-large"]]
)
def test_a_pod_is_named_as_with_kubectl(dump: Path, words: list[str]) -> None:
    assert printed("why", *words, "--dump", str(dump)).startswith("shop/too-large  Pending")


def test_the_namespace_of_the_kubeconfigs_context_is_the_usual_one(running: Service, tmp_path: Path) -> None:
    file = kubeconfig_for(running.port, tmp_path)
    config = yaml.safe_load(file.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = "shop"
    file.write_text(yaml.safe_dump(config))

    assert printed("why", "pods/too-large", "--kubeconfig", str(file)).startswith("shop/too-large")
    assert "default/too-large" in refused("why", "too-large", "--kubeconfig", str(file), "-n", "default")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["node/web"], "give a pod as NAMESPACE/NAME; if node is its namespace, write -n node web"),
        (["-n", "bank", "shop/too-large"], "shop/too-large is not in the namespace bank"),
        (["pod/"], "write namespace/name"),
        (["/too-large"], "write namespace/name"),
    ],
)
def test_names_that_are_none(dump: Path, words: list[str], why: str) -> None:
    assert why in refused("why", *words, "--dump", str(dump))


@pytest.mark.parametrize("command", ["whatif", "victims"])
def test_objects_that_name_no_namespace_are_created_in_the_one_that_is_named(dump: Path, command: str) -> None:
    small = pod("small", "500m")
    del small["metadata"]["namespace"]

    answer = json.loads(
        printed(command, "-f", "-", "-n", "bank", "--dump", str(dump), "-o", "json", text=yaml.safe_dump(small))
    )

    assert answer["placements"][0]["pod"]["namespace"] == "bank"
    assert "Pod shop/small is not in the namespace bank" in refused(
        command, "-f", "-", "-n", "bank", "--dump", str(dump), text=yaml.safe_dump(pod("small", "500m"))
    )


def test_fits_counts_pods_of_a_template_with_the_priority_of_the_class_beside_it(dump: Path, tmp_path: Path) -> None:
    web = deployment("web", pod("any", "500m", priorityClassName="late")["spec"])
    files = file_options(tmp_path, workload=web, late=priority_class("late", 7))

    words = printed("fits", "-n", "shop", *files, "--dump", str(dump)).splitlines()

    assert words[0] == "6 pods fit on 3 nodes"
    assert "note: pods of the template of Deployment web are counted; its number of replicas does not matter" in words


def test_fits_drops_no_file(dump: Path, tmp_path: Path) -> None:
    text = refused("fits", *file_options(tmp_path, one=pod("one", "500m"), two=pod("two", "500m")), "--dump", str(dump))

    assert text.endswith(f"one.json, {tmp_path / 'two.json'}: 2 pods or workloads in it; give one")


def test_victims_reads_every_file(dump: Path, tmp_path: Path) -> None:
    files = file_options(tmp_path, one=pod("one", "500m"), two=pod("two", "500m"))

    answer = json.loads(printed("victims", *files, "--dump", str(dump), "-o", "json"))

    assert [placement["pod"]["name"] for placement in answer["placements"]] == ["one", "two"]


def test_a_dump_may_come_from_standard_input(dump: Path) -> None:
    assert printed("why", "shop/too-large", "--dump", "-", text=dump.read_text()).startswith("shop/too-large  Pending")
    assert refused("why", "shop/too-large", "--dump", "-", text="{").startswith("standard input: ")


def test_an_object_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    wrong = pod("wrong", "1")
    wrong["spec"]["priority"] = "high"
    file = tmp_path / "wrong.json"
    state_file(file, pod("right", "1"), wrong)

    assert refused("why", "shop/right", "--dump", str(file)).startswith(f"{file}: Pod shop/wrong: ")


@pytest.mark.parametrize("form", ["table", pytest.param("yaml", marks=pytest.mark.slow)])
def test_full_disk_is_reported_in_one_line(dump: Path, form: str) -> None:
    command = [sys.executable, "-m", "api.cli", "why", "shop/too-large", "--dump", str(dump), "-o", form]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "reprieve: the answer cannot be written: no space left on device\n")


@pytest.mark.parametrize("command", [("whatif", "-f", "-"), ("victims", "-f", "-"), ("fits", "-f", "-")])
def test_note_names_the_scheduler_that_decides_about_a_foreign_pod(dump: Path, command: tuple[str, ...]) -> None:
    theirs = pod("theirs", "500m", schedulerName="volcano")

    words = printed(*command, "--dump", str(dump), text=yaml.safe_dump(theirs))

    assert (
        "note: another scheduler (volcano) decides about some of these pods; the answer was computed with the profile "
        "default-scheduler" in words
    )


def test_why_says_that_another_scheduler_decides(tmp_path: Path) -> None:
    theirs = pod("theirs", "500m", schedulerName="volcano")
    file = tmp_path / "dump.json"
    state_file(file, *cluster(), theirs)

    assert "note: another scheduler (volcano) decides" in printed("why", "shop/theirs", "--dump", str(file))
    assert "note:" not in printed("why", "shop/too-large", "--dump", str(file))


@pytest.mark.parametrize("command", ["why", "who-preempted"])
@pytest.mark.parametrize("url", ["http://192.0.2.1:8888", "192.0.2.1:8888", "http://reprieve.kube-system.svc"])
def test_a_token_does_not_cross_the_network_in_clear_text(command: str, url: str) -> None:
    """As kubectl does not send it to an API server of plain http. It is refused before anything is sent."""
    assert "the token is sent over https only" in refused(command, "shop/web-0", "--server", url, "--token", "canary")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_token_may_go_to_this_machine(running: Service, host: str) -> None:
    assert "shop/too-large" in printed(
        "why", "shop/too-large", "--server", f"http://{host}:{running.port}", "--token", "canary"
    )


# Which source.


@pytest.fixture
def nobody_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A shell in which nothing names a cluster or a service; its home."""
    for name in ("KUBECONFIG", "REPRIEVE_SERVER", "REPRIEVE_TOKEN", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def local_url(running: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a service on this machine, at the usual port."""
    address = f"http://127.0.0.1:{running.port}"
    monkeypatch.setattr(sources, "DEFAULT_SERVER", address)
    return address


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Service]:
    """Another cluster, without any of the pods."""
    with serving(schedule=False) as service:
        yield service


def why(*arguments: str) -> tuple[str, str]:
    """What `why` prints, and what it says on standard error."""
    result = CliRunner().invoke(app, ["why", "shop/too-large", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_service_of_the_machine_is_asked_with_a_note_when_there_is_no_kubeconfig(
    nobody_home: Path, local_url: str
) -> None:
    output, notes = why()

    assert output.startswith("shop/too-large  Pending")
    assert notes == f"reprieve: asking the service at {local_url}, as no kubeconfig names a cluster\n"


@pytest.mark.parametrize("where", ["KUBECONFIG", "~/.kube/config", "--kubeconfig", "--context"])
def test_the_cluster_is_the_one_that_kubectl_would_ask(
    nobody_home: Path, running: Service, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    file, options = kubeconfig_for(running.port, nobody_home), []
    if where == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", str(file))
    elif where == "--kubeconfig":
        options = ["--kubeconfig", str(file)]
    else:
        (nobody_home / ".kube").mkdir()
        file.rename(nobody_home / ".kube" / "config")
        options = ["--context", "test"] if where == "--context" else []

    output, notes = why(*options)

    assert output.startswith("shop/too-large  Pending")
    assert notes == ""


def test_the_service_of_this_machine_is_asked_if_it_follows_the_cluster(
    nobody_home: Path, local_url: str, running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_for(running.port, nobody_home)))

    output, notes = why()

    assert "is recorded" not in output and "refused 2 times" in output  # which only a service remembers
    assert notes == f"reprieve: asking the service at {local_url}, which follows the same cluster, {local_url}\n"


def test_the_service_of_this_machine_is_not_asked_about_another_cluster(
    nobody_home: Path, local_url: str, elsewhere: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_for(elsewhere.port, nobody_home)))

    result = CliRunner().invoke(app, ["why", "shop/too-large"])

    assert "there is no pod shop/too-large" in str(result.exception)
    assert result.stderr == (
        f"reprieve: asking http://127.0.0.1:{elsewhere.port}; the service at {local_url} is for another cluster: --server "
        f"{local_url} asks that\n"
    )
    assert "only a Reprieve service records that, and that at" in refused("who-preempted", "bank/batch-0")


def test_address_in_the_environment_precedes_the_kubeconfig_with_a_note(
    nobody_home: Path, local_url: str, elsewhere: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_for(elsewhere.port, nobody_home)))
    monkeypatch.setenv("REPRIEVE_SERVER", local_url)

    assert (
        why()[1]
        == f"reprieve: asking the service at {local_url}, which REPRIEVE_SERVER names, not the cluster of the kubeconfig\n"
    )
    assert "there is no pod" in refused("why", "shop/too-large", "--context", "test")


def test_a_service_that_is_named_goes_before_everything(nobody_home: Path, local_url: str, elsewhere: Service) -> None:
    output, notes = why("--server", local_url, "--kubeconfig", str(kubeconfig_for(elsewhere.port, nobody_home)))

    assert output.startswith("shop/too-large  Pending")
    assert notes == f"reprieve: asking the service at {local_url}; --server overrides --kubeconfig and --context\n"
    assert why("--server", local_url)[1] == ""


@pytest.mark.parametrize("command", [("why", "shop/x"), ("who-preempted", "shop/x"), ("whatif", "--drain", "n")])
def test_a_context_that_does_not_exist_is_an_error(
    nobody_home: Path, local_url: str, running: Service, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_for(running.port, nobody_home)))

    assert "context was not found for specified context: nope" in refused(*command, "--context", "nope")


def test_refusal_by_a_cluster_is_one_line(running: Service, tmp_path: Path) -> None:
    assert "node-9" in refused(
        "whatif", "--drain", "node-9", "--kubeconfig", str(kubeconfig_for(running.port, tmp_path))
    )
