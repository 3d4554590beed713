"""Finds the API server from flags, environment, service account and home directory."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from extender.apiserver.credentials import kubeconfig
from extender.apiserver.credentials.proxies import environment_proxy
from extender.apiserver.credentials.target import CredentialsError, Target, TokenFile
from extender.apiserver.credentials.tls import Pem, Tls

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder where the kubelet mounts a pod's token, CA and namespace."""


def find_target(
    environ: Mapping[str, str],
    *,
    file: Path | None = None,
    context: str = "",
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Target:
    """Returns the API server of: `file`; else the files of KUBECONFIG; else the cluster in which we run; else ~/.kube/config.

    Proxies of the environment are used where the kubeconfig names none.

    Arguments:
        context: of the kubeconfig; by default the current one.
        home: the home directory; None when there is none.

    Raises:
        CredentialsError: there is none, or something is wrong with it; one line that helps to correct it.
    """
    target = _find(environ, file, context, home, service_account)
    return target if target.proxy is not None else replace(target, proxy=environment_proxy(target.server, environ))


def _find(environ: Mapping[str, str], file: Path | None, context: str, home: Path | None, service_account: Path) -> Target:
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
    """Returns the API server of the cluster in which we run, with the pod's service account.

    Raises:
        CredentialsError: this is no pod, or it has no token.

    Upstream: client-go/rest/config.go, InClusterConfig (v1.36.2).
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise CredentialsError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token, ca, namespace = service_account / "token", service_account / "ca.crt", service_account / "namespace"
    if not token.exists():
        raise CredentialsError(f"{token} is missing: mount a token (automountServiceAccountToken, or a projected volume)")
    return Target(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        tls=Tls(ca=Pem(file=ca) if ca.exists() else None),
        credentials=TokenFile(token),
    )
