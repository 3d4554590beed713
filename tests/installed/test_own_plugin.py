"""A platform engineer keeps a team's pods off nodes whose licence server is down: from the installed command to a
decision.

Every step is typed in an empty environment, outside the repository. kube-scheduler's requests are those that a real one
sent.
"""

import gzip
import json
import shutil
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from extender.values.config.loading import load
from tests.deploy.manifests import container, objects_of
from tests.deploy.pods import running
from tests.installed.environment import Environment, installed_into, link_distribution
from tests.installed.journey import Journey, Running
from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.service import TWELVE_NODES, kubeconfig_for, serving
from tests.kit.waiting import DEADLINE, until
from tools.kubernetes_programs import NoProgramError, program
from tools.render_manifests import CHART

pytestmark = pytest.mark.slow

REASON = "licence server down in zone zone-b"

PLUGIN = '''
from extender.engine import framework as fwk

DOWN = {"zone-b"}


class LicenceAware(fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin):
    """Pods of the web tier keep away from zones whose licence server is down."""

    def filter(self, state, pod, node):
        zone = node.labels.get("topology.kubernetes.io/zone", "")
        if pod.labels.get("tier") == "web" and zone in DOWN:
            return fwk.unresolvable(f"licence server down in zone {zone}")

    def score(self, state, pod, node):
        return 100 if node.labels.get("disk") == "ssd" else 0
'''

RULES = """
name: web keeps out of the zone without licences
given:
  configuration: ../scheduler-config.yaml
  nodes: {count: 2, zones: [zone-a, zone-b], cpu: 4}
when:
  create:
    - {apiVersion: v1, kind: Pod, metadata: {name: web, labels: {tier: web}}, spec: {containers: [{name: c, image: i}]}}
then:
  - {placed: 1, onNodes: topology.kubernetes.io/zone=zone-a}
"""

TEST = """
from extender.testing import make_node, make_pod, make_snapshot, refusals
from licence_aware import LicenceAware


def test_web_is_refused_where_licences_are_down():
    nodes = [make_node(zone).label({"topology.kubernetes.io/zone": zone}).obj() for zone in ("zone-a", "zone-b")]

    assert refusals(LicenceAware(), make_snapshot(*nodes), make_pod("web").label({"tier": "web"}).obj()) == {
        "zone-b": "licence server down in zone zone-b"
    }
"""


def recorded(verb: str, tier: str, *, by_name: bool) -> dict[str, Any]:
    """The first request that a real kube-scheduler sent about a pod of the tier and more than six nodes."""
    for line in gzip.decompress((TWELVE_NODES.parent / "kube-scheduler-1.36.jsonl.gz").read_bytes()).splitlines():
        call = json.loads(line)
        body: dict[str, Any] = call["body"]
        if call["run"] == "twelve-nodes" and call["verb"] == verb and call["nodeCacheCapable"] == by_name:
            names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]
            if body["Pod"]["metadata"]["labels"]["tier"] == tier and len(names) > 6:
                return body
    raise LookupError(verb)


def reply(port: int, verb: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/extender/{verb}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.load(answer)


def in_zone_b() -> set[str]:
    items = json.loads(gzip.decompress(TWELVE_NODES.read_bytes()))["items"]
    labels = {item["metadata"]["name"]: item["metadata"].get("labels", {}) for item in items if item["kind"] == "Node"}
    return {name for name, node_labels in labels.items() if node_labels["topology.kubernetes.io/zone"] == "zone-b"}


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """In an environment of its own, since a plugin is installed there. What builds the plugin and runs its tests is
    there, too.
    """
    environment = installed_into(tmp_path_factory.mktemp("own"))
    for name in ("hatchling", "pytest", "iniconfig", "pluggy", "pathspec", "trove-classifiers", "packaging"):
        link_distribution(name, environment.libraries)
    return Journey(environment, environment.elsewhere)


def test_the_journey(journey: Journey, record_property: Any, tmp_path: Path) -> None:
    # 1 a project that works as it is
    journey.type("reprieve init licence-aware")
    journey.cd("licence-aware")
    assert "5 checks passed" in journey.type("reprieve test")

    # 2 the plugin of one's own, with its rule and test
    (journey.folder / "licence_aware.py").write_text(PLUGIN)
    (journey.folder / "rules" / "licence-aware.yaml").write_text(RULES)
    (journey.folder / "tests" / "test_licence_aware.py").write_text(TEST)
    passed = journey.type("reprieve test")
    assert "LicenceAware loads: filter, score" in passed
    assert "4 checks passed" in passed

    # 3 what it would change in a real cluster, which is only read, again after each edit
    web, kube = free_port(), free_port()
    with journey.beside(
        f"reprieve serve --no-schedule --no-kubelet --state {TWELVE_NODES} --port {web} --kubernetes-port {kube}"
    ) as service:
        service.until_ready(f"http://127.0.0.1:{web}/readyz")
        kubeconfig = kubeconfig_for(kube, journey.folder)
        version = resource_versions(kube)
        with journey.beside(f"reprieve dev --kubeconfig {kubeconfig} --reload") as dev:
            _edits(journey, dev)
        assert resource_versions(kube) == version

    # 4 beside kube-scheduler, which asks about its pods
    journey.type("pip install --no-build-isolation --no-deps --no-index .", says="pip install .")
    table = journey.type("reprieve plugins --config extender-config.yaml")
    assert " ".join(table.splitlines()[1].split()) == "LicenceAware licence-aware 0.1.0 filter, score default-scheduler"
    port, kube = free_port(), free_port()
    serve = (
        f"reprieve serve --config extender-config.yaml --no-schedule --state {TWELVE_NODES} --port {port} "
        f"--kubernetes-port {kube}"
    )
    with journey.beside(serve) as service:
        service.until_ready(f"http://127.0.0.1:{port}/readyz")
        _answers_recorded_requests(port)

        # 5 what kube-scheduler's configuration needs
        stanza = journey.type(
            f"reprieve print-scheduler-config --url http://127.0.0.1:{port} 2>/dev/null > stanza.yaml; cat stanza.yaml"
        )
        [extender] = load(stanza).extenders
        assert (extender.url_prefix, extender.node_cache_capable) == (f"http://127.0.0.1:{port}/extender", True)
        checked = journey.type(
            "kubectl-reprieve doctor --config stanza.yaml", says="kubectl reprieve doctor --config stanza.yaml"
        )
        assert checked.splitlines()[-1].startswith("0 bad")

    # 6 into a cluster, as far as that goes without one
    with suppress(NoProgramError):  # there is none for this machine
        _installed_by_helm(journey, program("helm"), tmp_path)
    record_property("seconds", journey.report())
    print(journey.report())


def _edits(journey: Journey, dev: Running) -> None:
    """The plugin is edited: to other words, to something that cannot be read, to something that fails, and back."""
    source = journey.folder / "licence_aware.py"
    assert REASON in dev.until("Nothing was written")
    dev.until("waiting for edits")
    source.write_text(PLUGIN.replace("licence server down", "no licences"))
    assert "no licences in zone zone-b" in dev.until("Nothing was written", 2)
    source.write_text(PLUGIN.replace("def filter", "def fil ter"))
    assert "SyntaxError" in dev.until("the edited plugins cannot be used, and the last working ones stay in use")
    source.write_text(PLUGIN.replace("pod.labels", "pod.lables"))
    assert "no attribute 'lables'" in dev.until(
        "the edited plugins cannot be used, and the last working ones stay in use", 2
    )
    source.write_text(PLUGIN)
    dev.until("Nothing was written", 3)


def _installed_by_helm(journey: Journey, helm: Path, folder: Path) -> None:
    """The chart takes the project's values, says what kube-scheduler needs, and starts a pod whose plugin answers
    kube-scheduler.
    """
    (journey.environment.bin / "helm").symlink_to(helm)
    (journey.folder / "chart").symlink_to(CHART)
    install = "helm install reprieve chart --dry-run=client --namespace kube-system -f values.yaml"
    service = "--set mode=service --set service.clusterIP=10.96.0.42 --set tls.secretName=reprieve-tls"
    output, _, notes = journey.type(f"{install} {service}").partition("\nNOTES:\n")
    objects = objects_of(output.partition("\nMANIFEST:\n")[2])
    for obj in objects:
        kubernetes_validate.validate(obj, "1.36", strict=True)
    assert container(objects)["image"] == "registry.example/licence-aware:0.1.0"
    stanza = notes[notes.index("extenders:") :].partition("\n\n")[0]
    [extender] = load(
        f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{stanza}"
    ).extenders
    assert extender.url_prefix == "https://10.96.0.42/extender"

    sidecar = "--set mode=sidecar --set schedulerName=default-scheduler"
    objects = objects_of(journey.type(f"{install} {sidecar}").partition("\nMANIFEST:\n")[2].partition("\nNOTES:\n")[0])
    reprieve = journey.environment.bin / "reprieve"
    with (
        serving(state=TWELVE_NODES, schedule=False) as cluster,
        running(objects, cluster.port, folder, program=[reprieve]) as pod,
    ):
        until(lambda: pod.passes("readiness"))
        _answers_recorded_requests(pod.port)


def _answers_recorded_requests(port: int) -> None:
    for by_name in (True, False):
        body = recorded("filter", "web", by_name=by_name)
        answer = reply(port, "filter", body)
        names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]
        passing = answer["NodeNames"] if by_name else [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
        refused = sorted(in_zone_b() & {*names})
        assert refused and passing == [name for name in names if name not in refused]
        assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(refused, REASON)
    batch = recorded("filter", "batch", by_name=True)
    assert reply(port, "filter", batch)["NodeNames"] == batch["NodeNames"]
    scores = {
        score["Host"]: score["Score"]
        for score in reply(port, "prioritize", recorded("prioritize", "web", by_name=True))
    }
    assert {*scores.values()} <= {0, 10}
    assert scores.get("worker-01", 10) == 10


def resource_versions(port: int) -> dict[str, str]:
    """Of all pods and nodes: nothing was written if they stay."""
    versions = {}
    for kind in ("pods", "nodes"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{kind}", timeout=DEADLINE) as answer:
            versions.update(
                {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in json.load(answer)["items"]}
            )
    return versions


def test_the_stanza_has_the_authority_and_is_checked_over_tls(environment: Environment, tmp_path: Path) -> None:
    """
    kube-scheduler is given what `doctor` has just used: the address, the name in the certificate, and who signed it.
    """
    authority = Authority(tmp_path, "ca")
    certificate = authority.sign("reprieve", "DNS:reprieve.kube-system.svc")
    port = free_port()
    journey = Journey(environment, tmp_path)
    serve = (
        f"reprieve serve --port {port} --kubernetes-port 0 --tls-cert-file {certificate.certificate} --tls-private-key-file "
        f"{certificate.key}"
    )
    with journey.beside(serve) as service:
        service.until("shows it")
        url = f"https://127.0.0.1:{port}"
        right = journey.type(
            f"reprieve print-scheduler-config --url {url} --server-name reprieve.kube-system.svc --ca-file "
            f"{tmp_path}/ca.crt"
        )
        wrong = journey.type(
            f"reprieve print-scheduler-config --url {url} --server-name other.svc --ca-file {tmp_path}/ca.crt",
            fails=True,
        )
        none = journey.type(f"reprieve print-scheduler-config --url {url}", fails=True)

    stanza, _, checked = right.partition("checked: ")
    [extender] = load(stanza.partition("warning:")[0]).extenders
    assert extender.tls_config is not None
    assert extender.tls_config.ca_data == (tmp_path / "ca.crt").read_bytes()
    assert (extender.enable_https, extender.tls_config.server_name) == (True, "reprieve.kube-system.svc")
    assert checked.endswith(", 0 are not\n"), right
    assert "bad: connection: has a certificate that is trusted" in wrong
    assert none.startswith("reprieve: --ca-file: give the certificates (PEM) of who signed Reprieve's")


def test_kubectl_finds_the_doctor(environment: Environment) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    assert "Check a scheduler extender" in environment.run("kubectl reprieve doctor --help").stdout


# What goes wrong is said with what to do.


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("reprieve init 7", "7: not a name; take letters", id="no name"),
        pytest.param(
            "mkdir there && reprieve init there", "there: exists already; choose another name", id="it exists"
        ),
        pytest.param("reprieve test", "make one with `reprieve init NAME`", id="no project"),
        pytest.param(
            "touch pyproject.toml && reprieve dev",
            'add [project.entry-points."extender.plugins"]',
            id="no plugin in it",
        ),
        pytest.param(
            "reprieve init gpu && cd gpu && sed -i 's/name: Gpu/name: Gpus/' scheduler-config.yaml && reprieve dev",
            '"Gpus" does not exist; did you mean Gpu?',
            id="an unknown name",
        ),
        pytest.param(
            "reprieve init gpu && cd gpu && echo 'import cuda' >> gpu.py && reprieve test",
            "plugin \"Gpu\": cannot be loaded from gpu: ModuleNotFoundError: No module named 'cuda' (gpu/gpu.py, line ",
            id="a module that is not there",
        ),
        pytest.param(
            "reprieve init gpu && cd gpu && sed -i 's/return None/return len(node.pods)/' gpu.py && reprieve test",
            "cluster 0 of seed 1: filter returned int, not a Status",
            id="an answer that means nothing",
        ),
        pytest.param(
            "reprieve print-scheduler-config --url nowhere",
            "--url nowhere: not an address; write https://HOST:PORT",
            id="url",
        ),
        pytest.param(
            "reprieve print-scheduler-config --url http://127.0.0.1:1",
            "bad: connection: takes connections",
            id="connection refused",
        ),
    ],
)
def test_errors_name_the_fix(environment: Environment, tmp_path: Path, command: str, words: str) -> None:
    done = environment.run(command, cwd=tmp_path)

    assert done.returncode in (1, 2), "what is asked for does not hold, or cannot be asked for"
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
