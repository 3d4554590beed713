"""Finding the API server: in kubeconfig files, in the environment, or in the cluster that the process runs in."""

import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from extender.client.credentials.exec_plugin import API_VERSIONS, Exec, ExecPlugin
from extender.client.credentials.kubeconfig_files import (
    Context,
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigUser,
    read_files,
)
from extender.values.targets.target import (
    Credentials,
    CredentialsError,
    Fixed,
    Target,
    TokenFile,
    basic_auth,
    check_proxy,
    environment_proxy,
    token,
)
from extender.values.targets.tls import Pem, Tls

_log = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder into which the kubelet puts a pod's token, its CA and its namespace."""


def find_target(
    environ: Mapping[str, str],
    *,
    file: Path | None = None,
    context: str = "",
    server: str = "",
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Target:
    """Returns the API server of `file`; else of KUBECONFIG's files; else of the cluster that the process runs in; else
    of ~/.kube/config.

    Proxies of the environment are used where the kubeconfig names none. An empty context is the current one, an empty
    server the one that was found. Raises CredentialsError, one line that says what to do.
    """
    target = _find(environ, file, context, home, service_account)
    if server:
        target = replace(target, server=server)
    target = _safe(target)
    return target if target.proxy is not None else replace(target, proxy=environment_proxy(target.server, environ))


def _safe(target: Target) -> Target:
    """Returns the target without its credentials if they would cross the network in clear text, and warns of that.

    Upstream: client-go/tools/clientcmd/client_config.go, ClientConfig; client-go/rest/config.go, IsConfigTransportTLS.
    """
    if urlsplit(target.server).scheme == "https":
        if target.tls.insecure:
            _log.warning(
                "The certificate of %s is not verified (insecure-skip-tls-verify): anyone in between may read the "
                "credentials",
                target.server,
            )
        return target
    if target.credentials != Fixed() or target.tls.certificate is not None:
        _log.warning("The credentials of the kubeconfig are not sent to %s: they are for https only", target.server)
    return replace(target, credentials=Fixed(), tls=Tls())


def _find(
    environ: Mapping[str, str], file: Path | None, context: str, home: Path | None, service_account: Path
) -> Target:
    if file is not None:
        return load([file], context)
    paths = [Path(name) for name in environ.get("KUBECONFIG", "").split(":") if name]
    if paths:
        # Missing files are ignored, as upstream, because old names are often left in the list.
        existing = [path for path in paths if path.exists()]
        if not existing:
            raise CredentialsError(f"none of the files of KUBECONFIG exists: {', '.join(map(str, paths))}")
        return load(existing, context)
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and not context:
        return _in_cluster(host, port, service_account)
    if home is not None and (usual := home / ".kube" / "config").exists():
        return load([usual], context)
    raise CredentialsError("no API server is known: give a kubeconfig, set KUBECONFIG, or run in a cluster")


def _in_cluster(host: str, port: str, service_account: Path) -> Target:
    """Returns the API server of the pod's cluster, with the credentials of its service account.

    Upstream: client-go/rest/config.go, InClusterConfig.
    """
    mounted, ca, namespace = service_account / "token", service_account / "ca.crt", service_account / "namespace"
    if not mounted.exists():
        raise CredentialsError(
            f"{mounted} is missing: mount a token (automountServiceAccountToken, or a projected volume)"
        )
    return Target(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        tls=Tls(ca=Pem(file=ca) if ca.exists() else None),
        credentials=TokenFile(mounted),
    )


# Kubeconfig files.


def load(files: Sequence[Path], context: str = "") -> Target:
    """Returns the cluster and user of a context, by default the current one, of `kubeconfig_files.read_files`.

    Upstream: client-go/tools/clientcmd/client_config.go, DirectClientConfig.ClientConfig, and validation.go.
    """
    config = read_files(files)
    where = ", ".join(map(str, files))
    try:
        return _target(config, context or config.current_context)
    except CredentialsError as error:
        raise CredentialsError(f"kubeconfig {where}: {error}") from error.__cause__


def _target(config: Kubeconfig, name: str) -> Target:
    if not name:
        raise CredentialsError("no context chosen: name one, or set current-context")
    context = config.contexts.get(name)
    if context is None:
        raise CredentialsError(f"context was not found for specified context: {name}")
    if not context.cluster:
        raise CredentialsError(f'cluster was not specified for context "{name}"')
    if not context.user:
        raise CredentialsError(f'user was not specified for context "{name}"')
    cluster = config.clusters.get(context.cluster)
    if cluster is None:
        raise CredentialsError(f'cluster "{context.cluster}" was not found for context "{name}"')
    user = config.users.get(context.user)
    if user is None:
        raise CredentialsError(f'user "{context.user}" was not found for context "{name}"')
    return Target(
        server=_server(context.cluster, cluster),
        namespace=context.namespace or "default",
        tls=_tls(context, cluster, user),
        credentials=_credentials(context.user, user, cluster),
        proxy=check_proxy(cluster.proxy_url) if cluster.proxy_url else None,
    )


def _server(name: str, cluster: KubeconfigCluster) -> str:
    if not cluster.server:
        raise CredentialsError(f'no server found for cluster "{name}"')
    server = cluster.server if "://" in cluster.server else f"http://{cluster.server}"
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise CredentialsError(f'the server of cluster "{name}" is no http or https URL')
    if parts.username is not None or parts.query or parts.fragment:
        raise CredentialsError(
            f'the server of cluster "{name}" may only have scheme, host, port and path; credentials belong into "users"'
        )
    return server.rstrip("/")


def _tls(context: Context, cluster: KubeconfigCluster, user: KubeconfigUser) -> Tls:
    ca = _pem(
        cluster.certificate_authority,
        cluster.certificate_authority_data,
        f"certificate-authority-data of {context.cluster}",
    )
    if ca is not None and cluster.insecure_skip_tls_verify:
        raise CredentialsError("specifying a root certificates file with the insecure flag is not allowed")
    certificate = _pem(
        user.client_certificate, user.client_certificate_data, f"client-certificate-data of {context.user}"
    )
    key = _pem(user.client_key, user.client_key_data, f"client-key-data of {context.user}")
    if certificate is not None and key is None:
        raise CredentialsError(
            f"client-key-data or client-key must be specified for {context.user} to use the clientCert authentication "
            "method."
        )
    if key is not None and certificate is None:
        raise CredentialsError(
            f"client-certificate-data or client-certificate must be specified for {context.user} beside its key"
        )
    return Tls(ca, certificate, key, cluster.tls_server_name or None, cluster.insecure_skip_tls_verify)


def _pem(file: str, data: str, what: str) -> Pem | None:
    if data:
        try:
            return Pem(text=base64.b64decode("".join(data.split()), validate=True))
        except binascii.Error as error:
            raise CredentialsError(f"{what} is not base64") from error
    return Pem(file=Path(file)) if file else None


def _credentials(name: str, user: KubeconfigUser, cluster: KubeconfigCluster) -> Credentials:
    if user.impersonate:
        raise CredentialsError(f"user {name} acts as another: impersonation is not supported")
    if user.auth_provider is not None:
        raise CredentialsError(f"user {name} has an auth-provider, which is not supported: use an exec plugin instead")
    has_token = bool(user.token or user.token_file)
    has_password = bool(user.username or user.password)
    if has_token and has_password:
        raise CredentialsError(
            f"more than one authentication method found for {name}; found [token basicAuth], only one is allowed"
        )
    if user.token_file:
        return TokenFile(Path(user.token_file))
    if user.token:
        return token(user.token)
    if has_password:
        return basic_auth(user.username, user.password)
    if user.exec is not None:
        _check_exec(name, user.exec)
        return ExecPlugin(user.exec, _cluster_info(cluster) if user.exec.provide_cluster_info else None)
    return Fixed()


def _check_exec(name: str, plugin: Exec) -> None:
    if not plugin.command:
        raise CredentialsError(f"command must be specified for {name} to use exec authentication plugin")
    if not plugin.api_version:
        raise CredentialsError(f"apiVersion must be specified for {name} to use exec authentication plugin")
    if plugin.api_version not in API_VERSIONS:
        raise CredentialsError(f'exec plugin: invalid apiVersion "{plugin.api_version}"')
    if plugin.interactive_mode == "Always":
        raise CredentialsError(
            f"the exec plugin of {name} wants a terminal (interactiveMode: Always), and a scheduler has none"
        )
    if plugin.interactive_mode not in ("", "Never", "IfAvailable"):
        raise CredentialsError(f'invalid interactiveMode for {name}: "{plugin.interactive_mode}"')
    if any(not variable.name for variable in plugin.env or ()):
        raise CredentialsError(f"env variable name must be specified for {name} to use exec authentication plugin")


def _cluster_info(cluster: KubeconfigCluster) -> dict[str, Any]:
    """Returns the description of the cluster for a plugin (clientauthentication/v1/types.go, KubeconfigCluster)."""
    info: dict[str, Any] = {"server": cluster.server}
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        info["insecure-skip-tls-verify"] = True
    ca = _pem(cluster.certificate_authority, cluster.certificate_authority_data, "certificate-authority-data")
    if ca is not None:
        info["certificate-authority-data"] = base64.b64encode(ca.read()).decode()
    if cluster.proxy_url:
        info["proxy-url"] = cluster.proxy_url
    info["config"] = None
    return info
