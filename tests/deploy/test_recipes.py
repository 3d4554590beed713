"""Each recipe's files are accepted by what reads them, agree with each other, and static pods start."""

import re
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from extender.client.http_extender import warnings_of
from extender.values.config.loading import load
from extender.values.golang.times import Duration
from tests.api.in_process import ROOT
from tests.api.test_questions import node_of
from tests.deploy.manifests import Object, container, objects_of, one, pod_spec
from tests.deploy.pods import is_ready
from tests.kit.objects import pod
from tests.kit.ports import free_port
from tests.kit.rbac import Rbac
from tests.kit.service import kubeconfig_for, process, serving
from tests.kit.waiting import until
from tools.generate_roles import ROLES
from tools.render_manifests import rendered
from tools.render_static_pods import FOLDER, PLACE, PODS, USER, files

RECIPES: Final = ROOT / "deploy" / "recipes"
VALUES: Final = sorted([*RECIPES.glob("*/values.yaml"), *(RECIPES / "managed").glob("*.yaml")])


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def pod_of(name: str) -> Object:
    return dict(read(FOLDER / name / "reprieve.yaml"))


@pytest.mark.usefixtures("helm")
@pytest.mark.parametrize("path", VALUES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_values_render(path: Path) -> None:
    objects = objects_of(rendered("-f", str(path)))

    for obj in objects:
        kubernetes_validate.validate(obj, "1.36", strict=True)
    assert load(one("ConfigMap", objects)["data"]["config.yaml"])


@pytest.mark.usefixtures("helm")
def test_the_values_of_a_new_plugin_render() -> None:
    """Those that `reprieve init` writes, in the mode that schedules and beside a kube-scheduler."""
    values = ROOT / "api" / "examples" / "plugin" / "values.yaml"
    options = re.findall(r"--set \S+", values.read_text())
    words = [word for option in options for word in option.split()]
    alone = objects_of(rendered("-f", str(values)))
    called = objects_of(rendered("-f", str(values), *words))

    for objects in (alone, called):
        (profile,) = load(one("ConfigMap", objects)["data"]["config.yaml"]).profiles
        assert container(objects)["image"] == "registry.example/my-policy:0.1.0"
        assert "MyPolicy" in str(profile)
    assert one("Service", called)["spec"]["clusterIP"] == "10.96.0.42"


@pytest.mark.usefixtures("helm")
@pytest.mark.parametrize("name", PODS)
def test_the_static_pods_are_what_the_chart_renders(name: str) -> None:
    """`make manifests` writes them."""
    expected = files(name)

    assert {path.name: path.read_text() for path in (FOLDER / name).iterdir()} == expected


@pytest.mark.parametrize("name", PODS)
def test_a_static_pod_needs_nothing_of_the_api(name: str) -> None:
    """A kubelet refuses static pods that refer to other objects."""
    static = pod_of(name)

    kubernetes_validate.validate(static, "1.36", strict=True)
    assert "serviceAccountName" not in static["spec"]
    assert [volume.keys() - {"name"} for volume in static["spec"]["volumes"]] == [{"hostPath"}]
    assert static["spec"]["hostNetwork"]


@pytest.mark.parametrize("name", PODS)
def test_its_user_may_do_exactly_what_the_generated_role_says(name: str) -> None:
    grants = Rbac(objects_of((FOLDER / name / "rbac.yaml").read_text()), USER).grants
    reviews = {grant for grant in grants if grant.right.plural in ("tokenreviews", "subjectaccessreviews")}
    leases = ROLES["create-lease"] | ROLES["keep-lease"]

    assert len(reviews) == 2
    assert {grant.right for grant in grants - reviews} == (
        ROLES["scheduler"] | leases if name == "scheduler" else ROLES["follow"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PODS)
def test_a_static_pod_starts_from_the_folder_of_its_machine(name: str, tmp_path: Path) -> None:
    (spec,) = pod_of(name)["spec"]["containers"]
    port = free_port()
    (tmp_path / "config.yaml").write_bytes((FOLDER / name / "config.yaml").read_bytes())
    with serving(schedule=False) as cluster:
        kubeconfig_for(cluster.port, tmp_path)
        arguments = [
            part.replace("/etc/reprieve/config", str(tmp_path)).replace("8888", str(port)) for part in spec["args"]
        ]
        with process(*arguments, log=tmp_path / "log") as started:
            until(lambda: is_ready(port, started))
            if name == "scheduler":
                cluster.post("/api/v1/namespaces/default/pods", pod("web", "10m")).raise_for_status()
                until(lambda: node_of(cluster, "web") != "")


def test_configuration_of_kube_scheduler_names_the_extender_of_the_recipes() -> None:
    configuration = load((RECIPES / "kubeadm" / "kube-scheduler-config.yaml").read_text())
    (extender,) = configuration.extenders
    (port,) = {item["ports"][0]["containerPort"] for name in PODS for item in pod_of(name)["spec"]["containers"]}
    patch = read(RECIPES / "kind" / "kind.yaml")["nodes"][0]
    ours = read(RECIPES / "kubeadm" / "kubeadm-config.yaml")["scheduler"]

    assert extender.url_prefix == f"http://127.0.0.1:{port}/extender"
    assert ours == yaml.safe_load(patch["kubeadmConfigPatches"][0])["scheduler"]
    assert {arg["value"] for arg in ours["extraArgs"]} == {volume["mountPath"] for volume in ours["extraVolumes"]}
    assert patch["extraMounts"][0]["containerPath"] == ours["extraVolumes"][0]["hostPath"]
    assert (ROOT / patch["extraMounts"][0]["hostPath"]).exists()
    assert ours["extraVolumes"][0]["hostPath"].startswith(PLACE)


@pytest.mark.parametrize(
    "path", [RECIPES.parent / "kube-scheduler-config.yaml", RECIPES / "kubeadm" / "kube-scheduler-config.yaml"]
)
def test_an_extender_that_is_away_holds_no_pod_up(path: Path) -> None:
    """Pods are scheduled without it; kube-scheduler waits for it once for each pod, while nobody else is scheduled."""
    (extender,) = load(path.read_text()).extenders

    assert extender.ignorable
    assert extender.http_timeout <= Duration.parse("5s")
    assert extender.node_cache_capable
    assert list(warnings_of(extender)) == []


@pytest.mark.usefixtures("helm")
def test_on_kind_kube_scheduler_and_reprieve_meet_on_loopback() -> None:
    objects = objects_of(rendered("-f", str(RECIPES / "kind" / "values.yaml")))

    assert pod_spec(objects)["hostNetwork"]
    assert {"--host=127.0.0.1", "--port=8888"} <= set(container(objects)["args"])
    assert load(one("ConfigMap", objects)["data"]["config.yaml"]).profiles[0].scheduler_name == "default-scheduler"


def test_the_page_names_files_that_are_there() -> None:
    paths = set(re.findall(r"(?<![\w/])deploy/[\w./-]+\w", (RECIPES / "README.md").read_text()))

    assert len(paths) > 8
    assert [name for name in paths if not (ROOT / name).exists()] == []
