"""Kubeconfig files as they are written, and several of them made into one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.apiserver.credentials.target import CredentialsError
from extender.golang.json import plain
from extender.golang.yaml import YamlError, read_yaml

MAX_FILE_BYTES: Final = 4 << 20


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """Where a server is."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class ExecEnv(msgspec.Struct):
    """A variable for an exec plugin."""

    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    """A program that says who we are."""

    api_version: str = ""
    command: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    auth_provider: dict[str, Any] | None = None
    exec: Exec | None = None


class Context(msgspec.Struct):
    """Which user talks to which cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: Context | None = None


class _File(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class Kubeconfig(msgspec.Struct):
    """One or more files together; paths in it are absolute."""

    current_context: str = ""
    clusters: dict[str, KubeconfigCluster] = {}
    users: dict[str, KubeconfigUser] = {}
    contexts: dict[str, Context] = {}


def read_files(files: Sequence[Path]) -> Kubeconfig:
    """All of them as one: what an earlier file says of a name, a later one does not change.

    Raises:
        CredentialsError: when one can not be read, or is no kubeconfig.

    Upstream: client-go/tools/clientcmd/loader.go, ClientConfigLoadingRules.Load (v1.36.2).
    """
    merged = Kubeconfig()
    for file in files:
        one = _read_file(file)
        merged.current_context = merged.current_context or one.current_context
        for cluster in one.clusters or ():
            merged.clusters.setdefault(cluster.name, _cluster_beside(file, cluster.cluster or KubeconfigCluster()))
        for user in one.users or ():
            merged.users.setdefault(user.name, _user_beside(file, user.user or KubeconfigUser()))
        for context in one.contexts or ():
            merged.contexts.setdefault(context.name, context.context or Context())
    return merged


def _read_file(file: Path) -> _File:
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CredentialsError(f"kubeconfig {file} can not be read: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise CredentialsError(f"kubeconfig {file} is longer than {MAX_FILE_BYTES >> 20} MiB")
    try:
        value = plain(read_yaml(text.decode()).value)
    except (YamlError, UnicodeDecodeError) as error:
        raise CredentialsError(f"kubeconfig {file} is no YAML: {' '.join(str(error).split())}") from None
    try:
        return msgspec.convert(value if value is not None else {}, _File)
    except msgspec.ValidationError as error:
        raise CredentialsError(f"kubeconfig {file} is no kubeconfig: {error}") from None


def _cluster_beside(file: Path, cluster: KubeconfigCluster) -> KubeconfigCluster:
    cluster.certificate_authority = _beside(file, cluster.certificate_authority)
    return cluster


def _user_beside(file: Path, user: KubeconfigUser) -> KubeconfigUser:
    user.client_certificate = _beside(file, user.client_certificate)
    user.client_key = _beside(file, user.client_key)
    user.token_file = _beside(file, user.token_file)
    # A bare name is looked up by PATH.
    if user.exec is not None and "/" in user.exec.command:
        user.exec.command = _beside(file, user.exec.command)
    return user


def _beside(file: Path, path: str) -> str:
    """Relative paths start where the file is."""
    return str(file.parent.absolute() / path) if path else ""
