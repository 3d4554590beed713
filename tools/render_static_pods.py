"""Writes `deploy/recipes/static-pods`: the chart's pod for a kubelet that starts it without an API server (`make
manifests`).

A static pod has no service account and no ConfigMap: what it needs is in a folder of its machine, and it is a user of
the cluster.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tools.kubernetes_programs import ROOT
from tools.render_manifests import NAMESPACE, RELEASE, rendered

FOLDER: Final = ROOT / "deploy" / "recipes" / "static-pods"
USER: Final = "reprieve"
PLACE: Final = "/etc/kubernetes/reprieve"
"""The folder of the machine, with `config.yaml` and `kubeconfig`."""
_CONFIGURATION: Final = "/etc/reprieve/config"

PODS: Final[Mapping[str, tuple[str, ...]]] = {
    # As in a sidecar's pod, where kube-scheduler reaches it over loopback too; kube-scheduler has its own pod here.
    "extender": ("--set=mode=sidecar", "--set=schedulerName=default-scheduler", "--set=hostNetwork=true"),
    "scheduler": ("--set=mode=scheduler",),
}

Object = dict[str, Any]


def files(name: str) -> dict[str, str]:
    """Returns the text of each file of a pod: the pod, its configuration, and what its user may do."""
    objects = [obj for obj in yaml.safe_load_all(rendered(*PODS[name])) if obj]
    (config_map,) = (obj for obj in objects if obj["kind"] == "ConfigMap")
    (deployment,) = (obj for obj in objects if obj["kind"] == "Deployment")
    words = (
        f"# Rendered from deploy/chart by `make manifests`; deploy/recipes/README.md says what to do with it.\n# {{}} "
        f"of {PLACE}.\n"
    )
    return {
        "reprieve.yaml": words.split("\n", 1)[0] + "\n" + _dump([_pod(deployment)]),
        "config.yaml": words.format("The file config.yaml") + config_map["data"]["config.yaml"],
        "rbac.yaml": words.split("\n", 1)[0] + "\n" + _dump(_rights(objects)),
    }


def _pod(deployment: Object) -> Object:
    spec = dict(deployment["spec"]["template"]["spec"])
    (container,) = (container for container in spec["containers"] if container["name"] == "reprieve")
    container["args"].append(f"--kubeconfig={_CONFIGURATION}/kubeconfig")
    # The name of the API server is one of this machine's, which no pod network resolves.
    spec |= {
        "containers": [container],
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
    }
    spec["volumes"] = [{"name": "config", "hostPath": {"path": PLACE, "type": "Directory"}}]
    for of_pods in ("serviceAccountName", "automountServiceAccountToken", "affinity", "tolerations"):
        spec.pop(of_pods, None)
    metadata = {"name": RELEASE, "namespace": NAMESPACE, "labels": deployment["spec"]["template"]["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _rights(objects: list[Object]) -> Iterator[Object]:
    """Yields Reprieve's roles, and their bindings to the user. A kube-scheduler has its own."""
    for obj in objects:
        role = obj.get("roleRef", {}).get("name", "")
        if obj["kind"] in ("ClusterRole", "Role") or role in (RELEASE, "system:auth-delegator"):
            # An extender needs no lease: that is kube-scheduler's.
            if obj["kind"].startswith("Role") and obj["metadata"]["labels"]["app.kubernetes.io/component"] == "sidecar":
                continue
            metadata = {key: value for key, value in obj["metadata"].items() if key != "labels"}
            bound = (
                {"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]} if role else {}
            )
            yield obj | {"metadata": metadata} | bound


def _dump(objects: Any) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, width=140)


def main() -> None:
    """Writes the files, by default into deploy/recipes/static-pods."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name in PODS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, text in files(name).items():
            (folder / name / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
