"""kube-scheduler's flags: those that mean the same do the same; the others are passed over with a word, or refused with
a reason.
"""

import json
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from api.app import create_app
from api.cli.flags import FLAG_OPTIONS, FLAGS, FOREIGN, as_options, without_effect
from api.serving.server import Server, make_server
from api.settings.configuration_file import overridden
from api.settings.declarations import Group
from api.settings.settings import DECLARATIONS, Settings, read_settings
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.errors import StartUpError
from tests.api.in_process import ROOT, reprieve
from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.service import process, serving
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until
from tools import generate_feature_gates_page
from tools.generate_flags_page import page


@cases(
    "arguments, options",
    ("a switch is off", ["--leader-elect=false"], ["--no-leader-elect"]),
    ("a switch is on", ["--leader-elect=T", "--schedule"], ["--leader-elect", "--schedule"]),
    ("short, with a value", ["-v=2"], ["--v=2"]),
    ("as we take them", ["-v", "2", "--v=3"], ["-v", "2", "--v=3"]),
    ("underscores in names", ["--kube_api_qps=5", "--state", "a_b"], ["--kube-api-qps=5", "--state", "a_b"]),
    (
        "means nothing here",
        ["--tls-sni-cert-key", "/x", "--port", "1"],
        ["--foreign-flag=tls-sni-cert-key", "--port", "1"],
    ),
    ("needs no value", ["--contention-profiling", "--port=1"], ["--foreign-flag=contention-profiling", "--port=1"]),
    ("its value in it", ["--kube-api-content-type=application/json"], ["--foreign-flag=kube-api-content-type"]),
    ("without its value", ["--tls-sni-cert-key"], ["--foreign-flag=tls-sni-cert-key"]),
)
def test_flags_may_be_written_as_gos_programs_take_them(arguments: list[str], options: list[str]) -> None:
    assert list(as_options(arguments)) == options


def test_a_switch_is_true_or_false() -> None:
    with pytest.raises(
        StartUpError, match=re.escape('--leader-elect: invalid argument "maybe": strconv.ParseBool: parsing "maybe"')
    ):
        list(as_options(["--leader-elect=maybe"]))


@pytest.mark.parametrize("name", [name for name, setting in FLAGS.items() if setting.type is bool])
def test_every_boolean_flag_takes_an_explicit_value(name: str) -> None:
    flag = DECLARATIONS[name].flag

    assert list(as_options([f"{flag}=true", f"{flag}=false"])) == [flag, f"--no-{flag[2:]}"]


def test_a_flag_of_kube_scheduler_has_an_effect_or_none() -> None:
    assert not FOREIGN.keys() & {setting.flag[2:] for setting in DECLARATIONS.values()}


def test_every_setting_but_the_limits_on_callers_has_a_flag() -> None:
    """Under its own name, which the environment and `read_settings` know it by."""
    limits = {name for name, setting in DECLARATIONS.items() if setting.option.group is Group.ENVIRONMENT}

    assert {parameter.name for parameter in FLAG_OPTIONS.parameters} == {*Settings.__struct_fields__} - limits


def test_every_setting_is_read_from_the_environment() -> None:
    """As docs/flags.md says, a value that is not understood is refused under the variable's name."""
    for setting in DECLARATIONS.values():
        if setting.type not in (str, Path):
            with pytest.raises(StartUpError, match=f"^{setting.variable}: "):
                read_settings({setting.variable: "what?"})
        assert setting.variable == f"REPRIEVE_{setting.name.upper()}"
        assert setting.help, setting.name


def test_flags_without_a_meaning_are_passed_over_with_a_word() -> None:
    assert without_effect(["disable-http2-serving"]) == {"disable-http2-serving": "the service speaks HTTP/1.1"}


@pytest.mark.parametrize("name", [name for name, flag in FOREIGN.items() if flag.is_refused])
def test_unsupported_flags_with_consequences_are_refused(name: str) -> None:
    with pytest.raises(StartUpError, match=f"^--{name}: "):
        without_effect([name])


def test_the_page_on_flags_is_current_and_has_every_flag() -> None:
    text = (ROOT / "docs" / "flags.md").read_text()

    assert text == page(), "run `make docs`"
    assert [name for name in FOREIGN if f"`--{name}`" not in text] == []
    variables_by_flag = {f"`{setting.flag}`": f"`{setting.variable}`" for setting in DECLARATIONS.values()}
    assert [flag for flag, variable in variables_by_flag.items() if flag not in text and variable not in text] == []


def test_a_gate_that_cannot_be_had_is_refused_under_the_flags_name() -> None:
    with pytest.raises(StartUpError) as refused:
        read_settings({}, feature_gates="PodLevelResources=x")

    assert str(refused.value) == (
        '--feature-gates: invalid value of PodLevelResources=x, err: strconv.ParseBool: parsing "x": invalid syntax'
    )


def test_the_emulated_version_decides_which_gates_there_are() -> None:
    with pytest.raises(StartUpError) as refused:
        read_settings({"REPRIEVE_EMULATED_VERSION": "1.34"}, feature_gates="NodeDeclaredFeatures=true")

    assert str(refused.value) == (
        "--feature-gates: cannot set feature gate NodeDeclaredFeatures to true, feature is PreAlpha at emulated "
        "version 1.34"
    )
    assert not read_settings({}, emulated_version="kube=1.34").features.enabled("NodeDeclaredFeatures")
    assert read_settings({}).features.enabled("NodeDeclaredFeatures")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("1.32", "emulation version 1.32 is not between [1.33, 1.38]"),
        ("new", "illegal version string 'new'; give one of 1.33, 1.34, 1.35, 1.36, 1.37, 1.38"),
        ("wardle=1.36", "component not registered: wardle"),
    ],
)
def test_a_version_that_cannot_be_emulated_is_refused(version: str, why: str) -> None:
    with pytest.raises(StartUpError) as refused:
        read_settings({}, emulated_version=version)

    assert str(refused.value) == f"--emulated-version: {why}"


def test_emulated_version_has_two_spellings_and_a_gate_without_effect_is_explained(tmp_path: Path) -> None:
    done = reprieve(
        "serve",
        "--emulate-version=1.37",
        "--feature-gates=OpportunisticBatching=true",
        "--write-config-to",
        str(tmp_path / "c.yaml"),
    )

    assert done.returncode == 0, done.stderr
    assert 'flag="--feature-gates=OpportunisticBatching" reason="every pod is ranked by itself' in done.stderr.decode()


@pytest.mark.parametrize(("version", "lines"), [("1.37", 0), ("1.38", 1)])
def test_one_line_says_what_of_a_version_is_not_emulated(
    version: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(schedule=False, emulated_version=version):
        messages = [record.getMessage() for record in caplog.records if "emulated version" in record.getMessage()]

    assert len(messages) == lines
    assert all(
        line.startswith("emulated version 1.38: feature gates are those of v1.38.0-alpha.2; pod") for line in messages
    )


def test_feature_gates_are_shown_in_configz_flagz_statusz_and_metrics() -> None:
    with serving(schedule=False, feature_gates="OpportunisticBatching=false", emulated_version="1.37") as service:
        pages = {
            path: httpx.get(f"http://127.0.0.1:{service.port}{path}", trust_env=False).text
            for path in ("/configz", "/flagz", "/statusz", "/metrics")
        }

    gates = json.loads(pages["/configz"])["featureGates"]
    assert (gates["OpportunisticBatching"], gates["PodSchedulingReadiness"], gates["AllAlpha"]) == (False, True, False)
    assert "feature-gates=OpportunisticBatching=false" in pages["/flagz"]
    assert "emulated-version=1.37" in pages["/flagz"]
    assert "Emulation version: 1.37" in pages["/statusz"]
    assert 'kubernetes_feature_enabled{name="OpportunisticBatching",stage="BETA"} 0.0' in pages["/metrics"]
    assert 'kubernetes_feature_enabled{name="PodSchedulingReadiness",stage=""} 1.0' in pages["/metrics"]
    assert 'kubernetes_feature_enabled{name="AllBeta",stage="BETA"} 0.0' in pages["/metrics"]


def test_the_pages_behind_gates_that_are_off_are_not_there() -> None:
    with serving(schedule=False, feature_gates="ComponentFlagz=false,ComponentStatusz=false") as service:
        answers = {
            path: httpx.get(f"http://127.0.0.1:{service.port}{path}", trust_env=False).status_code
            for path in ("/flagz", "/statusz")
        }

    assert answers == {"/flagz": 404, "/statusz": 404}


def test_the_page_on_feature_gates_is_current() -> None:
    assert (ROOT / "docs" / "feature-gates.md").read_text() == generate_feature_gates_page.page(), "run `make docs`"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"v": -1}, "--v: "),
        ({"vmodule": "a"}, "--vmodule: syntax error: expect comma-separated list of filename=N"),
        ({"logging_format": "xml"}, "--logging-format: "),
        ({"leader_elect_retry_period": "2"}, '--leader-elect-retry-period: time: missing unit in duration "2"'),
        ({"tls_cert_file": "a"}, "--tls-cert-file and --tls-private-key-file go together"),
        (
            {"secure_port": 1, "port": 2, "tls_cert_file": "a", "tls_private_key_file": "b"},
            "--secure-port and --port contradict each other",
        ),
    ],
)
def test_impossible_values_of_flags_are_refused_by_name(flags: dict[str, object], why: str) -> None:
    with pytest.raises(StartUpError) as refused:
        read_settings({}, **flags)

    assert str(refused.value).startswith(why)


def test_the_elections_flags_are_over_the_configuration() -> None:
    settings = read_settings(
        {},
        config=Path("x"),
        leader_elect=False,
        leader_elect_lease_duration="1m",
        leader_elect_resource_name="gpu",
        kube_api_qps=7,
    )

    changed = overridden(Configuration(), settings)

    election = changed.leader_election
    assert (election.leader_elect, str(election.lease_duration), election.resource_name) == (False, "1m0s", "gpu")
    assert changed.client_connection.qps == 50, "a configuration file takes precedence"


def test_flags_that_a_configuration_file_overrides_are_passed_over_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(written(Configuration())))

    done = reprieve(
        "serve", "--config", str(path), "--kube-api-qps=5", "--write-config-to", str(tmp_path / "written.yaml")
    )

    assert done.returncode == 0
    assert (
        '"A flag has no effect" flag="--kube-api-qps" reason="the configuration file takes precedence"'
        in done.stderr.decode()
    )


def test_without_a_configuration_file_the_older_flags_count() -> None:
    changed = overridden(Configuration(), read_settings({}, kube_api_qps=7, kube_api_burst=9, profiling=False))

    assert (changed.client_connection.qps, changed.client_connection.burst, changed.enable_profiling) == (7, 9, False)


def test_configuration_is_checked_after_flags_override_it() -> None:
    with pytest.raises(StartUpError, match="resourceLock"):
        overridden(Configuration(), read_settings({}, leader_elect_resource_lock="endpoints"))


def test_default_settings_leave_the_configuration_unchanged() -> None:
    assert overridden(Configuration(), Settings()) == Configuration()


def test_the_configuration_can_be_written_down(tmp_path: Path) -> None:
    path = tmp_path / "written.yaml"

    done = reprieve("serve", "--write-config-to", str(path), "--leader-elect-lease-duration=20s", "--kube-api-qps=5")

    assert done.returncode == 0, done.stderr
    assert '"Wrote configuration" file=' in done.stderr.decode()
    assert yaml.safe_load(path.read_bytes())["leaderElection"]["leaseDuration"] == "20s"
    assert load(path.read_bytes()).client_connection.qps == 5


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--policy-config-file=/x"], "--policy-config-file: kube-scheduler removed it years ago"),
        (["--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"], "--tls-cert-file /nowhere"),
    ],
)
def test_invalid_flag_ends_serve_in_one_line(arguments: list[str], why: str) -> None:
    done = reprieve("serve", *arguments)

    assert (done.returncode, done.stderr.decode().count("\n")) == (2, 1)
    assert done.stderr.decode().startswith(f"reprieve: {why}")


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with process("serve", "--kubernetes-port", "0", *arguments, log=log) as started:
        until(lambda: "startup complete" in log.read_text() or started.poll() is not None)
        yield started


@pytest.mark.slow
def test_a_manifest_of_kube_scheduler_starts_it_and_sigusr2_has_it_write_down_what_it_believes(tmp_path: Path) -> None:
    """The flags that kubeadm gives, a log in JSON, and a signal."""
    log, port = tmp_path / "log", free_port()
    manifest = [
        "--authentication-kubeconfig=/x",
        "--authorization-kubeconfig=/x",
        "--bind-address=127.0.0.1",
        "--leader-elect=true",
    ]

    with running(log, *manifest, "--port", str(port), "--logging-format=json", "-v=2") as process:
        assert httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False).text == "ok"
        until(lambda: "Successfully bound pod" in log.read_text())
        process.send_signal(signal.SIGUSR2)
        until(lambda: "Dump of scheduling queue" in log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0

    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert [line["flag"] for line in lines if line["msg"] == "A flag has no effect"] == [
        "--authentication-kubeconfig", "--authorization-kubeconfig",
    ]  # fmt: skip
    [dump] = [line for line in lines if line["msg"] == "Dump of cached NodeInfo"]
    assert dump["nodes"].startswith("Node name: ")
    assert any(line["msg"] == "Successfully bound pod to node" and line["v"] == 2 for line in lines)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def test_https_is_spoken_with_a_certificate_which_may_be_replaced(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.sign("first", "DNS:localhost", "IP:127.0.0.1")
    other = authority.sign("second", "DNS:localhost", "IP:127.0.0.1")
    with serving(schedule=False, secure_port=free_port(), tls_cert_file=cert, tls_private_key_file=key) as service:
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        assert httpx.get(f"https://localhost:{service.port}/livez", verify=trusting, trust_env=False).text == "ok"
        first = ssl.get_server_certificate(("127.0.0.1", service.port))

        cert.write_bytes(other.certificate.read_bytes())
        assert isinstance(service.server, Server) and service.server.certificate is not None
        service.server.certificate.renew()
        halfway = ssl.get_server_certificate(("127.0.0.1", service.port))
        key.write_bytes(other.key.read_bytes())
        service.server.certificate.renew()

        assert halfway == first, "a certificate without its key replaces nothing"
        assert ssl.get_server_certificate(("127.0.0.1", service.port)) == other.certificate.read_text()


@pytest.mark.parametrize(
    ("suites", "cipher"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,"
         "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("TLS_AES_128_GCM_SHA256", ""),
    ],
    ids=["Galois", "ChaCha", "those of TLS 1.3 only"],
)  # fmt: skip
def test_callers_of_tls_1_2_get_the_chosen_cipher_suites(authority: Authority, suites: str, cipher: str) -> None:
    cert, key = authority.sign("server", "DNS:localhost")
    old = ssl.create_default_context(cafile=str(authority.certificate))
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    with serving(schedule=False, tls_cert_file=cert, tls_private_key_file=key, tls_cipher_suites=suites) as service:
        chosen_cipher = ""
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", service.port)) as plain,
            old.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            chosen_cipher = secured.cipher()[0]  # type: ignore[index]

    assert chosen_cipher.endswith(cipher) and bool(chosen_cipher) == bool(cipher)


@pytest.mark.parametrize("suite", ["TLS_RSA_WITH_RC4_128_SHA", "TLS_RSA_WITH_HIGH", "HIGH", "TLS_AES_128"])
def test_a_cipher_suite_that_there_is_not_is_refused_in_upstreams_words(authority: Authority, suite: str) -> None:
    certificate, key = authority.sign("server", "DNS:localhost")
    settings = Settings(tls_cert_file=certificate, tls_private_key_file=key, tls_cipher_suites=suite)

    with pytest.raises(StartUpError, match=f"--tls-cipher-suites: Cipher suite {suite} not supported or doesn't exist"):
        make_server(create_app(settings), settings)


def test_old_tls_is_refused_if_new_tls_is_asked_for(authority: Authority) -> None:
    certificate, key = authority.sign("server", "DNS:localhost")
    settings: dict[str, Any] = {
        "tls_cert_file": certificate,
        "tls_private_key_file": key,
        "tls_min_version": "VersionTLS13",
    }
    old = ssl.create_default_context(cafile=str(authority.certificate))
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    with serving(schedule=False, **settings) as service, pytest.raises(httpx.ConnectError):
        httpx.get(f"https://localhost:{service.port}/livez", verify=old, trust_env=False)
