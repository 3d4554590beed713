"""Kubeconfigs as kubectl and cloud providers write them."""

import asyncio
import base64
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from extender.client.credentials.target_lookup import load
from extender.testing import virtual_time
from extender.values.targets.target import CredentialsError, Target, TokenFile
from extender.values.targets.tls import Pem, Tls

CLUSTER = {"server": "https://k8s.example:6443"}


def kubeconfig(cluster: object = CLUSTER, user: object = None, **more: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    } | more


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(content: object, name: str = "config") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write_file


@pytest.fixture
def target_of(write: Callable[..., Path]) -> Callable[..., Target]:
    return lambda *parts, **more: load([write(kubeconfig(*parts, **more))])


def authorization(target: Target) -> str | None:
    return virtual_time.run(target.credentials.identity(0)).authorization


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_says_which_cluster_and_which_user(target_of: Callable[..., Target]):
    contexts = [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]

    target = target_of({"server": "https://k8s.example:6443/"}, {"token": "t"}, contexts=contexts)

    assert (target.server, target.namespace) == ("https://k8s.example:6443", "shop")
    assert authorization(target) == "Bearer t"


def test_another_context_can_be_named(write: Callable[..., Path]):
    config = kubeconfig()
    config["clusters"] = [{"name": "c", "cluster": CLUSTER}, {"name": "d", "cluster": {"server": "http://other"}}]
    config["contexts"] = [
        {"name": "here", "context": {"cluster": "c", "user": "u"}},
        {"name": "there", "context": {"cluster": "d", "user": "u"}},
    ]

    assert load([write(config)], "there").server == "http://other"


def test_first_of_several_files_that_sets_a_value_counts(write: Callable[..., Path]):
    first = write({"contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}]}, "first")
    second = write(kubeconfig({"server": "https://second"}, {"token": "second"}, contexts=[]), "second")
    third = write(
        kubeconfig({"server": "https://third"}, {"token": "third"}, **{"current-context": "elsewhere"}), "third"
    )

    target = load([first, second, third])

    assert target.server == "https://second"
    assert authorization(target) == "Bearer second"


def test_certificates_as_data_go_before_files(target_of: Callable[..., Target]):
    cluster = {
        **CLUSTER,
        "certificate-authority-data": b64("CA"),
        "certificate-authority": "/elsewhere",
        "tls-server-name": "k",
    }
    user = {"client-certificate-data": b64("CERT"), "client-key-data": b64("KEY"), "client-key": "/elsewhere"}

    assert target_of(cluster, user).tls == Tls(Pem(text=b"CA"), Pem(text=b"CERT"), Pem(text=b"KEY"), "k")


def test_paths_start_where_the_file_is(target_of: Callable[..., Target], tmp_path: Path):
    cluster = {**CLUSTER, "certificate-authority": "pki/ca.crt"}
    user = {"client-certificate": "me.crt", "client-key": "/abs/me.key", "tokenFile": "token"}
    (tmp_path / "token").write_text("from-file")

    target = target_of(cluster, user)

    assert target.tls == Tls(Pem(tmp_path / "pki/ca.crt"), Pem(tmp_path / "me.crt"), Pem(Path("/abs/me.key")))
    assert authorization(target) == "Bearer from-file"


def test_a_token_file_goes_before_a_token(target_of: Callable[..., Target]):
    assert isinstance(target_of(CLUSTER, {"token": "t", "tokenFile": "f"}).credentials, TokenFile)


def test_a_user_and_a_password_are_basic_auth(target_of: Callable[..., Target]):
    assert authorization(target_of(CLUSTER, {"username": "me", "password": "pw"})) == "Basic bWU6cHc="


def test_no_credentials_are_credentials_too(target_of: Callable[..., Target]):
    assert authorization(target_of()) is None


def test_insecure_means_insecure(target_of: Callable[..., Target]):
    assert target_of({**CLUSTER, "insecure-skip-tls-verify": True}).tls == Tls(insecure=True)


def test_a_proxy_is_named(target_of: Callable[..., Target]):
    target = target_of({**CLUSTER, "proxy-url": "http://me:canary@proxy:3128"})

    assert target.proxy == "http://me:canary@proxy:3128"
    assert "canary" not in repr(target)


def test_json_is_yaml_and_unknown_members_do_not_matter(write: Callable[..., Path]):
    text = """{"current-context": "a", "preferences": {}, "extensions": null,
      "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "extensions": []}}],
      "clusters": [{"name": "c", "cluster": {"server": "http://x", "disable-compression": true}}],
      "users": [{"name": "u", "user": null}]}"""

    assert load([write(text)]).server == "http://x"


def test_exec_plugin_gets_the_cluster_information_it_asks_for(target_of: Callable[..., Target], tmp_path: Path):
    plugin = tmp_path / "bin" / "get-token"
    plugin.parent.mkdir()
    plugin.write_text(
        """#!/bin/sh
printf %s "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info.json"
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s-%s"}}' "$1" "$CLUSTER"
"""
    )
    plugin.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./bin/get-token",
            "args": ["eks"],
            "env": [{"name": "CLUSTER", "value": "prod"}],
            "provideClusterInfo": True,
            "interactiveMode": "IfAvailable",
        }
    }
    target = target_of({**CLUSTER, "certificate-authority-data": b64("CA")}, user)
    header = asyncio.run(target.credentials.identity(0)).authorization

    assert header == "Bearer eks-prod"
    assert json.loads((plugin.parent / "info.json").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "spec": {
            "interactive": False,
            "cluster": {"server": "https://k8s.example:6443", "certificate-authority-data": "Q0E=", "config": None},
        },
    }


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({}, "no context chosen", id="nothing"),
        pytest.param("", "no context chosen", id="empty"),
        pytest.param(
            kubeconfig(**{"current-context": "x"}),
            "context was not found for specified context: x",
            id="unknown context",
        ),
        pytest.param(
            kubeconfig(contexts=[{"name": "here", "context": {"user": "u"}}]),
            "cluster was not specified for context",
            id="no cluster",
        ),
        pytest.param(
            kubeconfig(contexts=[{"name": "here", "context": {"cluster": "c"}}]),
            "user was not specified for context",
            id="no user",
        ),
        pytest.param(kubeconfig(clusters=[]), 'cluster "c" was not found for context "here"', id="unknown cluster"),
        pytest.param(kubeconfig(users=None), 'user "u" was not found for context "here"', id="unknown user"),
        pytest.param(kubeconfig({}), 'no server found for cluster "c"', id="no server"),
        pytest.param(kubeconfig({"server": "ftp://x"}), "no http or https URL", id="ftp"),
        pytest.param(kubeconfig({"server": "https://x:y"}), "no http or https URL", id="no port"),
        pytest.param(kubeconfig({"server": "https://"}), "no http or https URL", id="no host"),
        pytest.param(
            kubeconfig({"server": "https://me:canary@x"}), 'credentials belong into "users"', id="a user in the server"
        ),
        pytest.param(
            kubeconfig({**CLUSTER, "proxy-url": "socks5://me:canary@x"}), "socks5 proxy is not supported", id="socks"
        ),
        pytest.param(
            kubeconfig({**CLUSTER, "certificate-authority": "x", "insecure-skip-tls-verify": True}),
            "root certificates file with the insecure flag is not allowed",
            id="insecure, but with a CA",
        ),
        pytest.param(
            kubeconfig({**CLUSTER, "certificate-authority-data": "%"}),
            "certificate-authority-data of c is not base64",
            id="base64",
        ),
        pytest.param(
            kubeconfig(user={"client-certificate": "x"}),
            "client-key-data or client-key must be specified for u",
            id="no key",
        ),
        pytest.param(
            kubeconfig(user={"client-key-data": b64("canary")}),
            "client-certificate must be specified for u",
            id="no certificate",
        ),
        pytest.param(
            kubeconfig(user={"token": "canary", "username": "x"}),
            "more than one authentication method found for u",
            id="two ways",
        ),
        pytest.param(kubeconfig(user={"token": "canary\nx"}), "no HTTP header may hold", id="a token of two lines"),
        pytest.param(kubeconfig(user={"as": "admin"}), "impersonation is not supported", id="impersonation"),
        pytest.param(
            kubeconfig(user={"auth-provider": {"name": "gcp"}}), "use an exec plugin instead", id="auth-provider"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "command": ""}}), "command must be specified for u", id="no command"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "apiVersion": ""}}), "apiVersion must be specified for u", id="no version"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "invalid apiVersion",
            id="old version",
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "interactiveMode": "Always"}}), "wants a terminal", id="a terminal"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "interactiveMode": "Perhaps"}}),
            'invalid interactiveMode for u: "Perhaps"',
            id="mode",
        ),
        pytest.param(
            kubeconfig(user={"exec": {**EXEC, "env": [{"value": "canary"}]}}),
            "env variable name must be specified",
            id="no name",
        ),
        pytest.param("a: [", "is not YAML", id="half"),
        pytest.param("\tcanary: x", "is not YAML", id="a tab"),
        pytest.param("[1]", "is not a kubeconfig", id="a list"),
        pytest.param({"users": [{"user": {"token": "canary"}}]}, "is not a kubeconfig", id="no name"),
        pytest.param({"users": [{"name": "x", "user": {"token": ["canary"]}}]}, "is not a kubeconfig", id="wrong type"),
    ],
)
def test_malformed_kubeconfig_is_reported_in_one_line_with_its_file_and_without_secrets(
    config: object, words: str, write: Callable[..., Path]
):
    path = write(config)

    with pytest.raises(CredentialsError) as caught:
        load([path])

    message = str(caught.value)
    assert words in message
    assert message.startswith(f"kubeconfig {path}")
    assert "\n" not in message
    assert "canary" not in message


def test_missing_kubeconfig_is_reported_with_its_path(tmp_path: Path):
    with pytest.raises(CredentialsError, match="gone cannot be read: No such file or directory"):
        load([tmp_path / "gone"])


def test_a_kubeconfig_of_another_user_is_reported_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As kubeadm's for kube-scheduler, which is for root only."""

    def refuses(*_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuses)

    with pytest.raises(CredentialsError, match=r"Permission denied to user \d+; let that user read it, or .*runAsUser"):
        load([tmp_path / "scheduler.conf"])


def test_a_file_without_an_end_is_not_read_to_it():
    with pytest.raises(CredentialsError, match="longer than 4 MiB"):
        load([Path("/dev/zero")])
