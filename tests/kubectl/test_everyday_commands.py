"""What people do all day with kubectl, in the order in which they do it, on the cluster that `make run` starts.

The tests of this file are one story: each goes on where the one before has stopped.
"""

import json
import re

import pytest

from tests.kit.objects import node
from tests.kubectl.conftest import Kubectl

WEB = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: nginx:1.27
    resources: {requests: {cpu: 100m, memory: 64Mi}}
"""

SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: server, image: "nginx:1.27", resources: {requests: {cpu: 10m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: shop}}}
"""


def columns(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


def node_of(kubectl: Kubectl, pod: str) -> str:
    return kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


def bind(kubectl: Kubectl, pod: str, to: str, *, fails: bool = False) -> str:
    """What a scheduler does; ours leaves the pods of others alone."""
    target = {"apiVersion": "v1", "kind": "Node", "name": to}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    return kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding), fails=fails)


# Looking around.


def test_version(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in kubectl("version")


def test_the_server_says_what_it_has(kubectl: Kubectl) -> None:
    kinds = kubectl("api-resources", "--no-headers")

    kind_names = {line.split()[-1] for line in kinds.splitlines()}
    assert {"Pod", "Node", "PodDisruptionBudget", "PriorityClass", "Deployment", "StorageClass", "Lease"} <= kind_names
    assert "ResourceClaim" in kind_names
    assert "policy/v1" in kubectl("api-versions").splitlines()


def test_nodes(kubectl: Kubectl) -> None:
    header, *rows = columns(kubectl("get", "nodes"))

    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert len(rows) == 12
    assert {row[1] for row in rows} <= {"Ready", "Ready,SchedulingDisabled"}


def test_nodes_with_more_columns(kubectl: Kubectl) -> None:
    header = columns(kubectl("get", "nodes", "-o", "wide"))[0]

    assert header[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]


def test_everything_in_every_namespace(kubectl: Kubectl) -> None:
    header = columns(kubectl("get", "pods", "--all-namespaces"))[0]

    assert header == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]


def test_explain(kubectl: Kubectl) -> None:
    assert "tolerations" in kubectl("explain", "pod.spec")


# A pod's life.


def test_apply_creates(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=WEB) == "pod/web created"


def test_apply_again_changes_nothing(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=WEB) == "pod/web unchanged"


def test_create_what_is_there(kubectl: Kubectl) -> None:
    assert 'pods "web" already exists' in kubectl("create", "-f", "-", stdin=WEB, fails=True)


def test_a_typing_error_is_found(kubectl: Kubectl) -> None:
    error = kubectl("apply", "-f", "-", stdin=WEB.replace("image:", "imagee:"), fails=True)

    assert 'unknown field "spec.containers[0].imagee"' in error


def test_invalid_object_is_refused_by_field(kubectl: Kubectl) -> None:
    error = kubectl("apply", "-f", "-", stdin=WEB.replace("name: web", "name: Web_"), fails=True)

    assert "metadata.name: Invalid value" in error


def test_a_dry_run_leaves_no_trace(kubectl: Kubectl) -> None:
    kubectl("run", "ghost", "--image=nginx", "--dry-run=server")

    assert "not found" in kubectl("get", "pod", "ghost", fails=True)


def test_a_pod_is_scheduled_and_runs(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")

    header, web = columns(kubectl("get", "pod", "web", "-o", "wide"))
    assert web[:3] == ["web", "1/1", "Running"]
    assert web[header.index("NODE")] == node_of(kubectl, "web")


def test_a_pod_of_another_scheduler_waits_until_it_is_bound(kubectl: Kubectl) -> None:
    bound = WEB.replace("name: web", "name: bound").replace("spec:", "spec:\n  schedulerName: kubectl")
    kubectl("apply", "-f", "-", stdin=bound)
    assert columns(kubectl("get", "pod", "bound"))[1][:3] == ["bound", "0/1", "Pending"]

    bind(kubectl, "bound", "node-a1")
    kubectl("wait", "--for=condition=Ready", "pod/bound", "--timeout=20s")

    assert node_of(kubectl, "bound") == "node-a1"


def test_a_bound_pod_stays_where_it_is(kubectl: Kubectl) -> None:
    error = bind(kubectl, "bound", "node-b1", fails=True)

    assert 'is already assigned to node "node-a1"' in error


def test_output_as_one_likes_it(kubectl: Kubectl) -> None:
    where = node_of(kubectl, "web")

    assert json.loads(kubectl("get", "pod", "web", "-o", "json"))["spec"]["nodeName"] == where
    assert f"nodeName: {where}" in kubectl("get", "pod", "web", "-o", "yaml")
    assert kubectl("get", "pods", "-l", "app=web", "-o", "name").splitlines() == ["pod/bound", "pod/web"]
    own_columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName"
    assert columns(kubectl("get", "pod", "web", "-o", own_columns))[1] == ["web", where]


def test_selectors(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB.replace("web", "other").replace("spec:", "spec:\n  schedulerName: nobody"))

    def names(*selectors: str) -> list[str]:
        return kubectl("get", "pods", *selectors, "-o", "name").splitlines()

    assert names("-l", "app in (web, nothing),app notin (x)") == ["pod/bound", "pod/web"]
    assert names("-l", "app!=web", "--field-selector", "spec.nodeName=") == ["pod/other"]
    assert names("--field-selector", "spec.nodeName=node-a1,metadata.name=bound") == ["pod/bound"]
    assert "field label not supported" in kubectl("get", "pods", "--field-selector", "spec.nothing=x", fails=True)


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    assert kubectl("label", "pod", "web", "tier=front") == "pod/web labeled"
    assert "already has a value" in kubectl("label", "pod", "web", "tier=back", fails=True)
    assert kubectl("label", "pod", "web", "tier=back", "--overwrite") == "pod/web labeled"
    assert kubectl("annotate", "pod", "web", "note=hello") == "pod/web annotated"
    assert columns(kubectl("get", "pods", "-L", "tier", "-l", "tier=back"))[1][-1] == "back"
    assert kubectl("label", "pod", "web", "tier-") == "pod/web unlabeled"


def test_edit_by_patch(kubectl: Kubectl) -> None:
    image = '{"spec": {"containers": [{"name": "server", "image": "nginx:1.28"}]}}'

    assert kubectl("patch", "pod", "web", "-p", image) == "pod/web patched"
    assert kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[*].image}") == "nginx:1.28"
    assert kubectl("set", "image", "pod/web", "server=nginx:1.29") == "pod/web image updated"
    removal = '[{"op": "remove", "path": "/metadata/annotations/note"}]'
    assert kubectl("patch", "pod", "web", "--type=json", "-p", removal) == "pod/web patched"
    elsewhere = json.dumps({"spec": {"nodeName": "nowhere"}})
    error = kubectl("patch", "pod", "web", "--type=merge", "-p", elsewhere, fails=True)
    assert "pod updates may not change fields other than" in error


def test_describe(kubectl: Kubectl) -> None:
    where = node_of(kubectl, "web")

    of_pod, of_node = kubectl("describe", "pod", "web"), kubectl("describe", "node", where)

    assert re.search(rf"Node:\s+{where}", of_pod)
    assert re.search(r"QoS Class:\s+Burstable", of_pod)
    assert "Allocated resources" in of_node
    assert re.search(r"default\s+web\s+100m", of_node)


def test_events(kubectl: Kubectl) -> None:
    note = f"Successfully assigned default/web to {node_of(kubectl, 'web')}"

    assert note in kubectl("events", "--for", "pod/web")
    assert note in kubectl("get", "events", "--field-selector", "involvedObject.name=web,reason=Scheduled")
    assert note in kubectl("describe", "pod", "web")


def test_a_watch_sees_what_happens(kubectl: Kubectl) -> None:
    watching = kubectl.start("get", "pods", "-l", "app=seen", "-w", "-o", "name", "--output-watch-events=false")
    try:
        kubectl("run", "seen", "--image=nginx", "--labels=app=seen")

        assert watching.stdout is not None
        assert watching.stdout.readline().strip() == "pod/seen"
    finally:
        watching.terminate()
        watching.communicate()


# Nodes.


def test_cordon_and_uncordon(kubectl: Kubectl) -> None:
    assert kubectl("cordon", "node-c2") == "node/node-c2 cordoned"
    assert columns(kubectl("get", "node", "node-c2"))[1][1] == "Ready,SchedulingDisabled"
    assert kubectl("uncordon", "node-c2") == "node/node-c2 uncordoned"
    assert columns(kubectl("get", "node", "node-c2"))[1][1] == "Ready"


def test_taint(kubectl: Kubectl) -> None:
    effect = "jsonpath={.spec.taints[?(@.key=='dedicated')].effect}"

    assert kubectl("taint", "node", "node-c2", "dedicated=db:NoSchedule") == "node/node-c2 tainted"
    assert kubectl("get", "node", "node-c2", "-o", effect) == "NoSchedule"
    assert kubectl("taint", "node", "node-c2", "dedicated-") == "node/node-c2 untainted"


def test_a_node_comes_and_goes(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", stdin=json.dumps(node("extra"))) == "node/extra created"
    assert kubectl("delete", "node", "extra") == 'node "extra" deleted'


# Workloads.


def test_a_deployment_gets_its_pods(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=SHOP).splitlines() == [
        "deployment.apps/shop created",
        "poddisruptionbudget.policy/shop created",
    ]

    kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/shop", "--timeout=20s")
    assert len(kubectl("get", "pods", "-l", "app=shop", "-o", "name").splitlines()) == 2
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/shop", "--timeout=20s")
    assert columns(kubectl("get", "deployments"))[1][:4] == ["shop", "2/2", "2", "2"]


def test_a_disruption_budget_is_kept_up(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/shop", "--timeout=20s")

    assert columns(kubectl("get", "pdb", "shop"))[1][:4] == ["shop", "1", "N/A", "1"]


def test_scale(kubectl: Kubectl) -> None:
    assert kubectl("scale", "deployment/shop", "--replicas=1") == "deployment.apps/shop scaled"

    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/shop", "--timeout=20s")


def test_server_side_apply(kubectl: Kubectl) -> None:
    more = SHOP.replace("replicas: 2", "replicas: 3").split("---")[0]

    assert "conflict" in kubectl("apply", "--server-side", "-f", "-", stdin=more, fails=True)
    output = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=more)
    assert output == "deployment.apps/shop serverside-applied"


def test_output_of_get_can_be_applied_again(kubectl: Kubectl) -> None:
    """It is a List: kubectl itself looks through its items."""
    read = kubectl("get", "namespaces,priorityclasses", "-o", "yaml")

    assert "kind: List" in read
    applied = {line.split()[0] for line in kubectl("apply", "-f", "-", stdin=read).splitlines()}
    assert {"namespace/default", "priorityclass.scheduling.k8s.io/system-node-critical"} <= applied
    error = kubectl("apply", "-f", "-", stdin=read.replace("preemptionPolicy", "preemptionPolicies"), fails=True)
    assert 'unknown field "preemptionPolicies" in io.k8s.api.scheduling.v1.PriorityClass' in error


@pytest.mark.parametrize("form", ["{}", '{{"apiVersion": "v1", "kind": "List", "items": [{}]}}'])
@pytest.mark.parametrize(("version", "kind"), [("apps/v1", "Daemon"), ("batch/v1beta1", "Job"), ("v1", "Widget")])
def test_a_kind_that_is_not_there(kubectl: Kubectl, version: str, kind: str, form: str) -> None:
    manifest = form.format(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "other"}}))

    assert f'no matches for kind "{kind}" in version "{version}"' in kubectl(
        "create", "-f", "-", stdin=manifest, fails=True
    )


# The end.


def test_delete_waits_until_the_pod_is_gone(kubectl: Kubectl) -> None:
    assert kubectl("delete", "pod", "web") == 'pod "web" deleted'
    assert 'pods "web" not found' in kubectl("get", "pod", "web", fails=True)


def test_delete_now(kubectl: Kubectl) -> None:
    kubectl("run", "stuck", "--image=nginx")

    assert '"stuck" force deleted' in kubectl("delete", "pod", "stuck", "--grace-period=0", "--force")


def test_delete_by_label(kubectl: Kubectl) -> None:
    output = kubectl("delete", "pods", "-l", "app in (other, seen)").splitlines()

    assert output == ['pod "other" deleted', 'pod "seen" deleted']


def test_a_deployment_takes_its_pods_along(kubectl: Kubectl) -> None:
    kubectl("delete", "deployment,pdb", "shop")

    kubectl("wait", "--for=delete", "pod", "-l", "app=shop", "--timeout=30s")
    assert kubectl("get", "pods", "-l", "app=shop", "-o", "name") == ""


@pytest.mark.slow
def test_a_namespace_takes_everything_along(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("run", "web", "-n", "team", "--image=nginx")

    assert kubectl("delete", "namespace", "team") == 'namespace "team" deleted'
    assert "not found" in kubectl("get", "pod", "web", "-n", "team", fails=True)
