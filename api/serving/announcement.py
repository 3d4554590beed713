"""What a service says once it answers: for which cluster, and where."""

from collections.abc import Iterable

from api.cluster_source import EmbeddedCluster, FollowedCluster
from api.settings.settings import Settings


def announcement(
    cluster: FollowedCluster | EmbeddedCluster, settings: Settings, address: str, kubernetes: Iterable[str] = ()
) -> list[str]:
    """Returns lines for standard error. `kubernetes` are the addresses at which kubectl reaches the cluster."""
    lines = [
        f"reprieve answers for {cluster.words} on {address}{settings.prefix}",
        *(f"kubectl --server {kubernetes_address} reaches it" for kubernetes_address in kubernetes),
        f"{address}/ shows it",
    ]
    if isinstance(cluster, EmbeddedCluster):
        lines.append("this cluster has no RBAC: every token is accepted as an administrator's")
        if settings.save is not None:
            when = (
                "with each change"
                if settings.save_each_change
                else "each minute and at SIGTERM: kill -9 loses up to a minute"
            )
            lines.append(f"it is saved to {settings.save} {when}")
    return lines
