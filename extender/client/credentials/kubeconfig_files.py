"""The contents of kubeconfig files, and how several files are merged."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from extender.client.credentials.exec_plugin import Exec
from extender.values import limits
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml
from extender.values.reasons import in_one_line
from extender.values.targets.target import CredentialsError


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """The address of a server, and how to trust it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    """The credentials of a user."""

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
    """A cluster and a user by name."""

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
    """The contents of one or more files, with absolute paths."""

    current_context: str = ""
    clusters: dict[str, KubeconfigCluster] = {}
    users: dict[str, KubeconfigUser] = {}
    contexts: dict[str, Context] = {}


def read_files(files: Sequence[Path]) -> Kubeconfig:
    """Returns the contents of all files merged. What an earlier file defines under a name, a later one does not change.

    Raises CredentialsError. Upstream: client-go/tools/clientcmd/loader.go, ClientConfigLoadingRules.Load.
    """
    merged = Kubeconfig()
    for file in files:
        one = _read_file(file)
        merged.current_context = merged.current_context or one.current_context
        for cluster in one.clusters or ():
            its = cluster.cluster or KubeconfigCluster()
            its.certificate_authority = _absolute(file, its.certificate_authority)
            merged.clusters.setdefault(cluster.name, its)
        for user in one.users or ():
            merged.users.setdefault(user.name, _with_absolute_paths(file, user.user or KubeconfigUser()))
        for context in one.contexts or ():
            merged.contexts.setdefault(context.name, context.context or Context())
    return merged


def _read_file(file: Path) -> _File:
    try:
        with file.open("rb") as opened:
            text = opened.read(limits.KUBECONFIG_BYTES + 1)
    except OSError as error:
        reason = f"kubeconfig {file} cannot be read: {error.strerror}"
        if isinstance(error, PermissionError):
            # kubeadm writes that of kube-scheduler for root only, and this image runs as another user.
            reason += (
                f" to user {os.geteuid()}; let that user read it, or give its owner's number as runAsUser of the pod"
            )
        raise CredentialsError(reason) from error
    if len(text) > limits.KUBECONFIG_BYTES:
        raise CredentialsError(f"kubeconfig {file} is longer than {limits.KUBECONFIG_BYTES >> 20} MiB")
    try:
        value = plain(read_yaml(text.decode()).value)
    except (YamlError, UnicodeDecodeError) as error:
        raise CredentialsError(f"kubeconfig {file} is not YAML: {in_one_line(error)}") from None
    try:
        return msgspec.convert(value if value is not None else {}, _File)
    except msgspec.ValidationError as error:
        raise CredentialsError(f"kubeconfig {file} is not a kubeconfig: {error}") from None


def _with_absolute_paths(file: Path, user: KubeconfigUser) -> KubeconfigUser:
    user.client_certificate = _absolute(file, user.client_certificate)
    user.client_key = _absolute(file, user.client_key)
    user.token_file = _absolute(file, user.token_file)
    # A bare name is looked up in PATH.
    if user.exec is not None and "/" in user.exec.command:
        user.exec.command = _absolute(file, user.exec.command)
    return user


def _absolute(file: Path, path: str) -> str:
    return str(file.parent.absolute() / path) if path else ""
