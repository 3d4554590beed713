"""Which cluster it is: what was asked for, else the one whose kubeconfig the configuration names, else the example."""

from pathlib import Path

import pytest

from api.cluster_source import EmbeddedCluster, FollowedCluster, choose_cluster
from api.settings.settings import EXAMPLE_CLUSTER, read_settings
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.errors import StartUpError
from tests.api.in_process import HEADER

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
users: [{name: me, user: {}}]
clusters:
- {name: near, cluster: {server: "https://near:6443"}}
- {name: far, cluster: {server: "https://far:6443"}}
contexts:
- {name: here, context: {cluster: near, user: me}}
- {name: there, context: {cluster: far, user: me}}
"""


def chosen(configuration: Configuration | None = None, **flags: object) -> FollowedCluster | EmbeddedCluster:
    return choose_cluster(read_settings({}, **flags), configuration or Configuration(), {})


def followed(configuration: Configuration | None = None, **flags: object) -> FollowedCluster:
    cluster = chosen(configuration, **flags)
    assert isinstance(cluster, FollowedCluster)
    return cluster


def kubeconfig(folder: Path) -> Path:
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


def configuration_naming(path: Path) -> Configuration:
    return load(f"{HEADER}clientConnection:\n  kubeconfig: {path}\n")


def test_without_anything_it_is_the_example_cluster() -> None:
    assert chosen() == EmbeddedCluster(EXAMPLE_CLUSTER, None, kubelet=True)


def test_kubeconfig_of_the_user_is_not_used_unasked(tmp_path: Path) -> None:
    """Who only wants to try this out does not want it on the cluster that kubectl happens to point to."""
    settings = read_settings({})

    assert isinstance(
        choose_cluster(settings, Configuration(), {"KUBECONFIG": str(kubeconfig(tmp_path))}), EmbeddedCluster
    )


def test_the_kubeconfig_that_is_asked_for(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)

    by_default, by_context = followed(kubeconfig=path), followed(kubeconfig=path, context="there")

    assert (by_default.target.server, by_context.target.server) == ("https://near:6443", "https://far:6443")


def test_the_kubeconfig_of_the_configuration(tmp_path: Path) -> None:
    """As kube-scheduler finds its API server."""
    cluster = followed(configuration_naming(kubeconfig(tmp_path)))

    assert cluster.target.server == "https://near:6443"


def test_the_master_is_over_the_kubeconfigs_server_and_needs_none(tmp_path: Path) -> None:
    """As kube-scheduler's --master."""
    with_users = followed(kubeconfig=kubeconfig(tmp_path), master="https://proxy:8443/")
    alone = followed(master="http://localhost:8001")

    assert (with_users.target.server, with_users.words) == ("https://proxy:8443", "the cluster at https://proxy:8443")
    assert alone.target.server == "http://localhost:8001"


@pytest.mark.parametrize("url", ["10.0.0.1", "ftp://x", "https://me@x", "https://x?y"])
def test_a_master_is_a_url(url: str) -> None:
    with pytest.raises(StartUpError, match=r"^--master: a URL is needed"):
        chosen(master=url)


def test_a_master_is_of_another_cluster_than_our_own() -> None:
    with pytest.raises(StartUpError, match="--master is about another"):
        chosen(master="http://x", state=EXAMPLE_CLUSTER)


IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_it_is_the_cluster_of_the_pod(tmp_path: Path) -> None:
    """Also where a kubeconfig lies about; but not where a cluster of its own was asked for."""
    (tmp_path / "token").write_text("secret")
    environment = IN_A_POD | {"KUBECONFIG": str(kubeconfig(tmp_path))}

    pod_cluster = choose_cluster(read_settings({}), Configuration(), environment, tmp_path)
    embedded = choose_cluster(read_settings({}, state=tmp_path / "dump.yaml"), Configuration(), environment, tmp_path)

    assert isinstance(pod_cluster, FollowedCluster)
    assert pod_cluster.target.server == "https://10.0.0.1:443"
    assert isinstance(embedded, EmbeddedCluster)


def test_a_pod_without_a_token_has_a_cluster_of_its_own(tmp_path: Path) -> None:
    assert isinstance(choose_cluster(read_settings({}), Configuration(), IN_A_POD, tmp_path), EmbeddedCluster)


def test_a_cluster_of_our_own_that_is_asked_for_wins_over_the_configuration(tmp_path: Path) -> None:
    cluster = chosen(configuration_naming(kubeconfig(tmp_path)), state=tmp_path / "dump.yaml")

    assert cluster == EmbeddedCluster(tmp_path / "dump.yaml", None, kubelet=True)


def test_saved_cluster_is_continued(tmp_path: Path) -> None:
    saved = tmp_path / "saved.yaml"

    before = chosen(save=saved, kubelet=False)
    saved.write_text("")
    after = chosen(save=saved, kubelet=False)

    assert before == EmbeddedCluster(EXAMPLE_CLUSTER, saved, kubelet=False)
    assert after == EmbeddedCluster(saved, saved, kubelet=False)


def test_two_clusters_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartUpError, match="give one of them"):
        chosen(kubeconfig=kubeconfig(tmp_path), state=tmp_path / "dump.yaml")


def test_missing_kubeconfig_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StartUpError) as refused:
        chosen(kubeconfig=tmp_path / "nothing")

    assert str(tmp_path / "nothing") in str(refused.value)
    assert "\n" not in str(refused.value)
