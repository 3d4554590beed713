"""Finding the API server: in a kubeconfig, in the environment, or in the cluster that the process runs in."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from extender.client.credentials import kubeconfig
from extender.values.targets.target import CredentialsError, Target, TokenFile, anonymous, environment_proxy
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

    Proxies of the environment are used where the kubeconfig names none. For a server of plain http, no credentials are
    returned. An empty context is the current one, an empty server the one that was found.

    Raises CredentialsError, one line that says what to do, if there is no API server, or something is wrong with what
    names it.
    """
    target = _find(environ, file, context, home, service_account)
    if server:
        target = replace(target, server=server)
    target = _safe(target)
    return target if target.proxy is not None else replace(target, proxy=environment_proxy(target.server, environ))


def _safe(target: Target) -> Target:
    """Returns the target without its credentials if they would cross the network in clear text, and warns of that.

    Upstream: client-go/tools/clientcmd/client_config.go, ClientConfig; client-go/rest/config.go, IsConfigTransportTLS
    (v1.36.2).
    """
    if urlsplit(target.server).scheme == "https":
        if target.tls.insecure:
            _log.warning(
                "The certificate of %s is not verified (insecure-skip-tls-verify): anyone in between may read the "
                "credentials",
                target.server,
            )
        return target
    if target.credentials != anonymous() or target.tls.certificate is not None:
        _log.warning("The credentials of the kubeconfig are not sent to %s: they are for https only", target.server)
    return replace(target, credentials=anonymous(), tls=Tls())


def _find(
    environ: Mapping[str, str], file: Path | None, context: str, home: Path | None, service_account: Path
) -> Target:
    if file is not None:
        return kubeconfig.load([file], context)
    named = [Path(name) for name in environ.get("KUBECONFIG", "").split(":") if name]
    if named:
        # Missing files are ignored, as upstream, because old names are often left in the list.
        existing = [path for path in named if path.exists()]
        if not existing:
            raise CredentialsError(f"none of the files of KUBECONFIG exists: {', '.join(map(str, named))}")
        return kubeconfig.load(existing, context)
    if environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT") and not context:
        return in_cluster(environ, service_account)
    usual = home / ".kube" / "config" if home is not None else None
    if usual is not None and usual.exists():
        return kubeconfig.load([usual], context)
    raise CredentialsError("no API server is known: give a kubeconfig, set KUBECONFIG, or run in a cluster")


def in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Target:
    """Returns the API server of the pod's cluster, with the credentials of its service account.

    Raises CredentialsError without a pod, or a token. Upstream: client-go/rest/config.go, InClusterConfig (v1.36.2).
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise CredentialsError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
            "defined"
        )
    token, ca, namespace = service_account / "token", service_account / "ca.crt", service_account / "namespace"
    if not token.exists():
        raise CredentialsError(
            f"{token} is missing: mount a token (automountServiceAccountToken, or a projected volume)"
        )
    return Target(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        tls=Tls(ca=Pem(file=ca) if ca.exists() else None),
        credentials=TokenFile(token),
    )
