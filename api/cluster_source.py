"""Which cluster the service answers for: a real one, followed through its API server, or the embedded one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final
from urllib.parse import urlsplit

from api.settings.settings import EXAMPLE_CLUSTER, Settings
from extender.client.credentials.target_lookup import SERVICE_ACCOUNT, find_target
from extender.values.config.configuration import Configuration
from extender.values.targets.target import CredentialsError, Target
from reprieve.errors import StartUpError


@final
@dataclass(frozen=True, slots=True)
class FollowedCluster:
    """A real cluster, followed through its API server."""

    target: Target
    words: str
    """What messages call it."""


@final
@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """The embedded cluster."""

    begins_with: Path
    save: Path | None
    kubelet: bool

    @property
    def words(self) -> str:
        """What messages call it."""
        return "the example cluster" if self.begins_with == EXAMPLE_CLUSTER else str(self.begins_with)


def choose_cluster(
    settings: Settings,
    configuration: Configuration,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> FollowedCluster | EmbeddedCluster:
    """Returns the cluster of settings, configuration, this process's pod, or the embedded one. Raises StartUpError."""
    is_own_asked = settings.state is not None or settings.save is not None
    for flag, other in (("--kubeconfig", settings.kubeconfig), ("--master", settings.master)):
        if other is not None and is_own_asked:
            about = f"--state and --save are about the embedded cluster, {flag} is about another"
            raise StartUpError(f"{about}: give one of them")
    kubeconfig = settings.kubeconfig
    if kubeconfig is None and not is_own_asked and configuration.client_connection.kubeconfig:
        kubeconfig = Path(configuration.client_connection.kubeconfig)
    master = "" if settings.master is None else _base_url(settings.master)
    try:
        if kubeconfig is not None:
            target = find_target(environment, file=kubeconfig, context=settings.context or "", server=master)
            return FollowedCluster(target, f"the cluster at {target.server}")
        if master:
            return FollowedCluster(Target(master), f"the cluster at {master}")
        # KUBECONFIG is not used: a person who tries this out would be surprised to find a real cluster followed.
        if not is_own_asked and environment.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
            variables = {name: value for name, value in environment.items() if name != "KUBECONFIG"}
            return FollowedCluster(
                find_target(variables, service_account=service_account), "the cluster that it runs in"
            )
    except CredentialsError as exc:
        raise StartUpError(exc) from exc
    if settings.save is not None and settings.save.exists():
        return EmbeddedCluster(settings.save, settings.save, settings.kubelet)
    return EmbeddedCluster(settings.state or EXAMPLE_CLUSTER, settings.save, settings.kubelet)


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise StartUpError("--master: a URL is needed such as https://10.0.0.1:6443, without user and query")
    return text.rstrip("/")
