"""The chart renders in every mode, what it renders is valid, and its roles are the generated ones."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from extender import __version__
from extender.client.paths import Right
from extender.values.config.loading import load
from tests.deploy.manifests import (
    ACCOUNT,
    FOLDER,
    KUBE_SCHEDULERS_OWN,
    Object,
    container,
    objects_of,
    one,
    pod_spec,
    reprieves_own,
    role_of,
)
from tests.kit.rbac import Rbac
from tests.kit.service import Service, serving
from tools.generate_roles import BY_GATE, ROLES
from tools.kubernetes_programs import program
from tools.render_manifests import CHART, K3S, VARIANTS, kustomization, manifest, rendered

MODES: Final = ("sidecar", "service", "second-scheduler", "scheduler")
CERT_MANAGER: Final = "tls.certManager.enabled=true"
EVERYTHING: Final = (
    CERT_MANAGER, "metrics.serviceMonitor.enabled=true", "metrics.prometheusRule.enabled=true",
    "metrics.dashboards.enabled=true",
    "metrics.readers[0].name=prometheus-k8s", "metrics.readers[0].namespace=monitoring", "plugins[0].name=LicenseAware",
    "plugins[0].weight=2", "plugins[0].args.server=license.example.com",
    "featureGates=NodeDeclaredFeatures=true", "image.digest=sha256:" + "0" * 64,
    "service.clusterIP=10.96.0.42", "extraArgs[0]=--kube-api-qps=100", "logging.format=json", "nodeSelector.disk=ssd",
    "networkPolicy.egress[0].ports[0].port=8443", "networkPolicy.apiServer[0].ipBlock.cidr=10.0.0.10/32",
    "networkPolicy.dns[0].podSelector.matchLabels.k8s-app=kube-dns", "podLabels.team=red", "imagePullSecrets[0].name=registry",
)  # fmt: skip
CASES: Final = {
    **{mode: (mode, ()) for mode in ("sidecar", "second-scheduler", "scheduler")},
    **{f"{mode} with a certificate": (mode, ("tls.secretName=reprieve-tls",)) for mode in MODES},
    **{f"{mode} with everything": (mode, EVERYTHING) for mode in MODES},
    "service that binds": ("service", (CERT_MANAGER, "extender.bind=true")),
    "scheduler of a cluster without one": (
        "scheduler",
        ("nodeName=server-1", "replicas=1", "podDisruptionBudget.enabled=false"),
    ),
    "second scheduler in the node's network": ("second-scheduler", ("hostNetwork=true", "port=8889")),
    "second opinion": ("service", (CERT_MANAGER, "stockPlugins=true")),
}
CUSTOM: Final = ("cert-manager.io/v1", "monitoring.coreos.com/v1")

each_case: Final = pytest.mark.parametrize("case", CASES)
pytestmark = pytest.mark.usefixtures("helm")


@cache
def objects(case: str) -> tuple[Object, ...]:
    mode, values = CASES[case]
    return objects_of(rendered(f"--set=mode={mode}", *(f"--set={value}" for value in values)))


def refusal(*values: str, namespace: str = "kube-system") -> str:
    """What helm prints of values that the chart refuses."""
    with pytest.raises(subprocess.CalledProcessError) as failed:
        rendered(*(f"--set={value}" for value in values), namespace=namespace)
    return str(failed.value.stderr)


@pytest.mark.parametrize("name", [*VARIANTS, "k3s"])
def test_the_manifests_are_what_the_chart_renders(name: str) -> None:
    """`make manifests` writes them."""
    assert (FOLDER / name / "reprieve.yaml").read_text() == manifest({**VARIANTS, "k3s": K3S}[name])
    assert (FOLDER / name / "kustomization.yaml").read_text() == kustomization()


def test_one_file_is_all_that_k3s_needs() -> None:
    """Its pod names its node, since nothing schedules it, and the words above say how to name it."""
    text = (FOLDER / "k3s" / "reprieve.yaml").read_text()
    objects = objects_of(text)

    assert pod_spec(objects)["nodeName"] == "server" and "s/nodeName: server/nodeName: $(hostname)/" in text
    assert pod_spec(objects)["tolerations"] == [{"operator": "Exists"}]
    assert "--schedule" in container(objects)["args"]
    assert {obj["metadata"].get("namespace", "kube-system") for obj in objects} == {"kube-system"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kustomizations_build_with_an_image_of_ones_own(variant: str, tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    image = {"name": "ghcr.io/reprieve/reprieve", "newName": "registry.example/my-policy", "digest": digest}
    overlay = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (tmp_path / variant).mkdir()
    for name in ("reprieve.yaml", "kustomization.yaml"):
        (tmp_path / variant / name).write_bytes((FOLDER / variant / name).read_bytes())
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({**overlay, "resources": [variant], "images": [image]}))

    built = subprocess.run(
        [program("kubectl"), "kustomize", tmp_path], capture_output=True, text=True, check=True
    ).stdout

    assert container(objects_of(built))["image"] == f"registry.example/my-policy@{digest}"


@pytest.mark.parametrize("mode", MODES)
def test_a_gate_that_watches_more_kinds_adds_the_rights_to_do_so(mode: str) -> None:
    gates = r"--set=featureGates=GenericWorkload=true\,DRADeviceTaintRules=false"

    def granted(*more: str) -> set[Right]:
        rendered_objects = objects_of(rendered(f"--set=mode={mode}", f"--set={CERT_MANAGER}", *more))
        return {grant.right for grant in Rbac(reprieves_own(rendered_objects), ACCOUNT).grants}

    added = BY_GATE["GenericWorkload"]["scheduler" if "scheduler" in mode else "follow"]
    assert granted(gates) == granted() | added
    assert not granted() & added


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    linted = subprocess.run([program("helm"), "lint", "--strict", CHART], capture_output=True, text=True, check=False)

    assert linted.returncode == 0, linted.stdout
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@each_case
def test_rendered_objects_are_valid(case: str) -> None:
    """By the published OpenAPI documents, in which unknown fields are errors."""
    for obj in objects(case):
        if obj["apiVersion"] not in CUSTOM:
            kubernetes_validate.validate(obj, "1.36", strict=True)


@pytest.fixture(scope="module")
def api() -> Iterator[Service]:
    with serving(schedule=False) as cluster:
        yield cluster


@each_case
def test_the_api_server_accepts_what_is_rendered(case: str, api: Service) -> None:
    """With field validation, of the kinds that the embedded cluster serves; the pod of the Deployment is tried, too."""
    template = one("Deployment", objects(case))["spec"]["template"]
    metadata = {"name": "reprieve", **template["metadata"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    served = dict.fromkeys(("Pod", "Service"), "api/v1") | {"Deployment": "apis/apps/v1"}
    served["PodDisruptionBudget"] = "apis/policy/v1"
    accepted = []
    for obj in [*objects(case), pod]:
        if obj["kind"] in served:
            path = f"/{served[obj['kind']]}/namespaces/kube-system/{obj['kind'].lower()}s?dryRun=All&fieldValidation=Strict"
            answer = api.post(path, obj)
            assert answer.status_code == 201, answer.text
            accepted.append(obj["kind"])

    assert {"Deployment", "Pod"} <= set(accepted)


@each_case
def test_the_rights_are_exactly_the_generated_role(case: str) -> None:
    """The lease is one by name; a kube-scheduler in the pod has the roles that every cluster has for it, and nothing of
    ours.
    """
    mode, values = CASES[case]
    role = "scheduler" if "scheduler" in mode else "extender" if "extender.bind=true" in values else "follow"
    leases = ROLES["create-lease"] | ROLES["keep-lease"] if mode != "service" else frozenset()
    grants = Rbac(_without_metrics(reprieves_own(objects(case))), ACCOUNT).grants
    reviews = {grant for grant in grants if grant.right.plural in ("tokenreviews", "subjectaccessreviews")}

    assert {grant.right for grant in grants - reviews} == ROLES[role] | leases
    assert {grant.name for grant in grants if grant.right in ROLES["keep-lease"]} == (
        set() if mode == "service" else {"kube-scheduler"} if mode == "scheduler" else {"reprieve"}
    )
    assert {role_of(obj) for obj in objects(case)} & set(KUBE_SCHEDULERS_OWN) == (
        set(KUBE_SCHEDULERS_OWN) if mode == "sidecar" else set()
    )


@each_case
def test_the_configurations_are_read_as_strictly_as_upstream_reads_them(case: str) -> None:
    data = one("ConfigMap", [obj for obj in objects(case) if obj["metadata"]["name"] == "reprieve"])["data"]

    ours = load(data["config.yaml"])
    assert len(ours.profiles) == 1
    if "everything" in case:
        assert "LicenseAware" in data["config.yaml"]
    if case.startswith("sidecar"):
        theirs = load(data["kube-scheduler.yaml"])
        (extender,) = theirs.extenders
        assert [profile.scheduler_name for profile in theirs.profiles] == [
            profile.scheduler_name for profile in ours.profiles
        ]
        assert extender.url_prefix == f"{'https' if 'with' in case else 'http'}://127.0.0.1:8888/extender"
        assert theirs.leader_election.resource_name == "reprieve"


@pytest.mark.parametrize("mode", MODES)
def test_a_pod_is_guarded_from_eviction_neighbours_and_callers(mode: str) -> None:
    every = objects(f"{mode} with everything")
    spec = pod_spec(every)

    assert spec["priorityClassName"] == "system-cluster-critical"
    assert "podAntiAffinity" in spec["affinity"]
    assert one("PodDisruptionBudget", every)["spec"]["maxUnavailable"] == 1
    assert any(obj["kind"] == "NetworkPolicy" for obj in every) == (mode != "scheduler")
    for item in spec["containers"]:
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= item.keys()
    assert container(every)["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert container(every)["image"].endswith("@sha256:" + "0" * 64)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "scheduler"])
def test_pod_calls_only_the_addresses_that_are_given(mode: str) -> None:
    anywhere = one("NetworkPolicy", objects(f"{mode} with a certificate"))["spec"]["egress"]
    restricted = one("NetworkPolicy", objects(f"{mode} with everything"))["spec"]["egress"]

    assert [rule.get("to") for rule in anywhere] == [None, None]
    assert [rule.get("to") for rule in restricted] == [
        [{"ipBlock": {"cidr": "10.0.0.10/32"}}],
        [{"podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
        None,
    ]


@pytest.mark.parametrize("mode", MODES)
def test_only_the_pod_that_needs_the_token_has_it(mode: str) -> None:
    every = objects(f"{mode} with a certificate")
    account = next(obj for obj in every if obj["kind"] == "ServiceAccount")

    assert (account["automountServiceAccountToken"], pod_spec(every)["automountServiceAccountToken"]) == (False, True)


def test_dashboards_and_alerts_come_with_the_chart_as_they_are_in_its_files() -> None:
    every = objects("service with everything")
    (dashboards,) = (obj["data"] for obj in every if obj["metadata"]["name"] == "reprieve-dashboards")
    files = {
        f"reprieve-{path.name}": json.loads(path.read_text())
        for path in (CHART / "files" / "dashboards").glob("*.json")
    }

    assert {name: json.loads(text) for name, text in dashboards.items()} == files
    assert one("PrometheusRule", every)["spec"] == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    assert [item["path"] for item in one("ServiceMonitor", every)["spec"]["endpoints"]] == ["/metrics", "/metrics/slis"]


def test_two_releases_do_not_meet() -> None:
    first, second = (objects_of(rendered(release=name)) for name in ("one", "two"))

    identities = [{(obj["kind"], obj["metadata"]["name"]) for obj in release} for release in (first, second)]
    assert not identities[0] & identities[1]
    assert [
        one("Deployment", release)["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"]
        for release in (first, second)
    ] == ["one", "two"]


@pytest.mark.parametrize(
    ("values", "namespace", "words"),
    [
        (
            ["mode=extender"],
            "kube-system",
            "value must be one of 'sidecar', 'service', 'second-scheduler', 'scheduler'",
        ),
        (["replica=2"], "kube-system", "additional properties 'replica' not allowed"),
        (["mode=service"], "kube-system", "mode service needs a certificate"),
        (["mode=service", CERT_MANAGER], "default", "mode service outside kube-system"),
        (["metrics.serviceMonitor.enabled=true"], "kube-system", "metrics.serviceMonitor needs a certificate"),
        (["tls.secretName=x", CERT_MANAGER], "kube-system", "not both"),
        (["extender.bind=true"], "kube-system", "extender.bind is for mode service"),
        (["nodeName=a"], "kube-system", "set replicas to 1"),
    ],
)
def test_values_that_cannot_work_are_refused_in_words(values: list[str], namespace: str, words: str) -> None:
    assert words in refusal(*values, namespace=namespace)


def test_every_value_is_described() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert _keys(values) <= set(_described(schema))


def test_helm_shows_a_page_that_names_values_and_modes_that_there_are() -> None:
    page = subprocess.run([program("helm"), "show", "readme", CHART], capture_output=True, text=True, check=True).stdout
    values = _keys(yaml.safe_load((CHART / "values.yaml").read_text()))
    modes = json.loads((CHART / "values.schema.json").read_text())["properties"]["mode"]["enum"]

    tables = [[re.findall(r"`([\w.-]+)`", row.split("|")[1]) for row in part.splitlines() if row.startswith("| `")]
              for part in page.split("\n## ")[1:]]  # fmt: skip
    assert {name for (name,) in tables[0]} == set(modes)
    assert {name for row in tables[1] for name in row} <= values


def _without_metrics(every: list[Object]) -> list[Object]:
    return [obj for obj in every if not obj["metadata"]["name"].endswith("-metrics")]


def _keys(values: dict[str, Any], prefix: str = "") -> set[str]:
    keys = {f"{prefix}{key}" for key in values}
    for key, value in values.items():
        if isinstance(value, dict) and key not in ("resources", "labels"):
            keys |= _keys(value, f"{prefix}{key}.")
    return keys


def _described(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        if value.get("description"):
            yield f"{prefix}{key}"
        yield from _described(value, f"{prefix}{key}.")
