from pathlib import Path

import pytest
import yaml

from extender.client.credentials.target_lookup import find_target
from extender.testing import virtual_time
from extender.values.targets.target import CredentialsError, Fixed, Identity
from extender.values.targets.tls import Pem

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def write(path: Path, server: str, user: dict[str, object] | None = None, **cluster: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "contexts": [
                    {"name": "x", "context": {"cluster": "c", "user": "u"}},
                    {"name": "other", "context": {"cluster": "c", "user": "u"}},
                ],
                "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
                "users": [{"name": "u", "user": user or {}}],
            }
        )
    )
    return path


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, text in (("token", "sa-token"), ("ca.crt", "CA"), ("namespace", "kube-system\n")):
        (folder / name).write_text(text)
    return folder


def test_a_file_goes_before_the_environment_that_before_the_cluster_and_that_before_the_home(
    tmp_path: Path, account: Path
):
    file, env, home = write(tmp_path / "f", "http://file"), write(tmp_path / "n", "http://named"), tmp_path / "home"
    write(home / ".kube" / "config", "http://home")
    environ = {"KUBECONFIG": f"{tmp_path}/gone::{env}"}

    servers = [
        find_target(environ | IN_CLUSTER, file=file, home=home, service_account=account).server,
        find_target(environ | IN_CLUSTER, home=home, service_account=account).server,
        find_target(IN_CLUSTER, home=home, service_account=account).server,
        find_target({}, home=home, service_account=account).server,
    ]

    assert servers == ["http://file", "http://named", "https://10.96.0.1:443", "http://home"]


def test_a_pod_is_its_service_account(account: Path):
    target = find_target(IN_CLUSTER, service_account=account)

    assert (target.server, target.namespace) == ("https://10.96.0.1:443", "kube-system")
    assert target.tls.ca == Pem(account / "ca.crt")
    assert virtual_time.run(target.credentials.identity(0)).authorization == "Bearer sa-token"


def test_a_service_address_of_ipv6_is_bracketed(account: Path):
    environ = IN_CLUSTER | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert find_target(environ, service_account=account).server == "https://[fd00::1]:443"


def test_a_pod_may_have_no_namespace_file_and_no_ca(account: Path):
    (account / "namespace").unlink()
    (account / "ca.crt").unlink()

    target = find_target(IN_CLUSTER, service_account=account)

    assert (target.namespace, target.tls.ca) == ("default", None)


def test_a_context_is_one_of_a_kubeconfig_even_in_a_cluster(tmp_path: Path, account: Path):
    write(tmp_path / ".kube" / "config", "http://home")

    assert find_target(IN_CLUSTER, context="other", home=tmp_path, service_account=account).server == "http://home"


def test_the_proxy_of_the_environment_is_used(tmp_path: Path):
    target = find_target({"HTTPS_PROXY": "http://proxy:3128"}, file=write(tmp_path / "f", "https://k8s.example"))

    assert target.proxy == "http://proxy:3128"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "no API server is known: give a kubeconfig, set KUBECONFIG, or run in a cluster"),
        ({"KUBECONFIG": "/gone/a:/gone/b"}, "none of the files of KUBECONFIG exists: /gone/a, /gone/b"),
        (IN_CLUSTER, "token is missing: mount a token"),
    ],
)
def test_missing_configuration_is_refused_with_advice(environ: dict[str, str], words: str, tmp_path: Path):
    with pytest.raises(CredentialsError, match=words):
        find_target(environ, home=tmp_path, service_account=tmp_path)


# What is not safe


EXEC = {"command": "./says-who-we-are", "apiVersion": "client.authentication.k8s.io/v1"}
WAYS_TO_SAY_WHO_ONE_IS = [
    pytest.param({"token": "canary"}, id="token"),
    pytest.param({"tokenFile": "token"}, id="token file"),
    pytest.param({"username": "u", "password": "canary"}, id="password"),
    pytest.param({"exec": EXEC}, id="exec plugin"),
]


@pytest.mark.parametrize("user", WAYS_TO_SAY_WHO_ONE_IS)
@pytest.mark.parametrize(
    ("in_the_file", "in_its_place"),
    [
        pytest.param("http://127.0.0.1:8080", "", id="server"),
        pytest.param("k8s.example:8080", "", id="server without a scheme"),
        pytest.param("https://k8s.example:6443", "http://k8s.example:8080", id="server on the command line"),
    ],
)
def test_credentials_of_a_kubeconfig_are_not_sent_over_http(
    user: dict[str, object], in_the_file: str, in_its_place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """As client-go does it: credentials are read for TLS only, and an exec plugin does not even run."""
    target = find_target({}, file=write(tmp_path / "f", in_the_file, user), server=in_its_place)

    assert virtual_time.run(target.credentials.identity(0)) == Identity()
    assert [record.getMessage() for record in caplog.records] == [
        f"The credentials of the kubeconfig are not sent to {target.server}: they are for https only"
    ]


@pytest.mark.parametrize("user", WAYS_TO_SAY_WHO_ONE_IS)
def test_credentials_of_a_kubeconfig_are_sent_over_tls(
    user: dict[str, object], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    target = find_target({}, file=write(tmp_path / "f", "http://k8s.example", user), server="https://k8s.example")

    assert target.credentials != Fixed()
    assert not caplog.records


def test_no_warning_is_logged_without_credentials(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    find_target({}, file=write(tmp_path / "f", "http://127.0.0.1:8001"))

    assert not caplog.records


def test_a_server_that_is_not_verified_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = write(tmp_path / "f", "https://k8s.example", {"token": "canary"}, **{"insecure-skip-tls-verify": True})

    assert find_target({}, file=file).tls.insecure
    assert [record.getMessage() for record in caplog.records] == [
        "The certificate of https://k8s.example is not verified (insecure-skip-tls-verify): anyone in between may read "
        "the credentials"
    ]
