"""Writes `deploy/kubernetes`: a manifest per mode, with the rights that it needs: `python -m tools.generate_manifests` (or `make docs`).

A role allows what the service asks of an API server in its mode: lists and watches of the kinds in `extender.objects.kinds`, the requests
of the calls in `extender.framework`, events, and the lease of a scheduler. Nothing else is in it, and no rule is written by hand.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from textwrap import indent
from typing import Final, final

from extender.apiserver.lease.lease_lock import GROUP as LEASE_GROUP
from extender.apiserver.paths import Right
from extender.apiserver.writes.call_requests import REQUESTS, rights_for
from extender.framework import BindPod
from extender.objects.kinds import KINDS

NAMESPACE: Final = "kube-system"
CALLER: Final = "system:kube-scheduler"
"""The common name of kube-scheduler's certificate, with which it may call the verbs."""
LEASE: Final = "reprieve"
"""The lease of a scheduler. kube-scheduler's own has another name, so that both may run in one cluster."""

EVENTS: Final = frozenset(Right("events.k8s.io", "events", verb) for verb in ("create", "patch"))
FOLLOW: Final = frozenset(Right(kind.group, kind.plural, verb) for kind in KINDS for verb in ("list", "watch")) | EVENTS
_KEEP_LEASE: Final = tuple(Right(LEASE_GROUP, "leases", verb) for verb in ("get", "update"))
# A name cannot limit a request to create: it is not in the path.
_CREATE_LEASE: Final = Right(LEASE_GROUP, "leases", "create")


@final
@dataclass(frozen=True)
class Mode:
    """One way to run the service in a cluster."""

    words: str
    """What it does there, and what it writes."""
    rights: frozenset[Right]
    """What it asks of the whole cluster."""
    args: Sequence[str] = ()
    """Arguments besides those of every mode."""
    configuration: str = ""
    """A KubeSchedulerConfiguration; empty for the defaults."""


MODES: Final[Mapping[str, Mode]] = {
    "follow": Mode("It answers filter, prioritize, preempt and people's questions, and writes nothing but events.", FOLLOW),
    "extender": Mode("As follow.yaml; it also binds pods for kube-scheduler.", FOLLOW | rights_for(BindPod), ("--serve-bind",)),
    "scheduler": Mode(
        "It schedules the pods whose schedulerName is `reprieve`, beside kube-scheduler.",
        FOLLOW.union(*map(rights_for, REQUESTS)),
        ("--schedule", "--config=/etc/reprieve/config/config.yaml"),
        f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: true, resourceName: {LEASE}, resourceNamespace: {NAMESPACE}}}
profiles:
- schedulerName: reprieve
""",
    ),
}

_ARGS: Final = (
    "serve",
    "--host=0.0.0.0",
    "--port=8888",
    "--tls-cert-file=/etc/reprieve/tls/tls.crt",
    "--tls-private-key-file=/etc/reprieve/tls/tls.key",
    "--client-ca-file=/etc/reprieve/clients/ca.crt",
    f"--client-allowed-names={CALLER}",
)


def account(name: str) -> str:
    """Returns the user that a mode's service account is to an API server."""
    return f"system:serviceaccount:{NAMESPACE}:reprieve-{name}"


def manifest(name: str) -> str:
    """Returns the file of a mode, as YAML: its service account, roles and their bindings, and what runs it."""
    mode, own_name = MODES[name], f"reprieve-{name}"
    parts = [
        _introduction(name) + f"apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {own_name}, namespace: {NAMESPACE}}}\n",
        _role("ClusterRole", own_name, rules(mode.rights)),
        _binding("ClusterRole", own_name, own_name, own_name),
        "# The API server is asked who a caller is and what the caller may do.\n"
        + _binding("ClusterRole", f"{own_name}-auth-delegator", own_name, '"system:auth-delegator"'),
    ]
    if mode.configuration:
        parts += [_role("Role", own_name, [*rules([_CREATE_LEASE]), *rules(_KEEP_LEASE, names=[LEASE])])]
        parts += [_binding("Role", own_name, own_name, own_name), _config_map(own_name, mode.configuration)]
    return "---\n".join([*parts, _workload(own_name, mode)])


def rules(rights: Iterable[Right], names: Iterable[str] = ()) -> Iterator[str]:
    """Yields the rules that allow these rights and no others: one for the resources of a group that have the same verbs."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in sorted(rights):
        verbs.setdefault((right.group, right.resource), []).append(right.verb)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in verbs.items():
        resources.setdefault((group, tuple(allowed)), []).append(resource)
    only = "".join(f"  resourceNames: [{name}]\n" for name in names)
    for (group, together), plurals in resources.items():
        group_words = group or '""'
        yield f"- apiGroups: [{group_words}]\n  resources: [{', '.join(plurals)}]\n{only}  verbs: [{', '.join(together)}]\n"


def _introduction(name: str) -> str:
    host = _host(f"reprieve-{name}")
    return f"""\
# {MODES[name].words}
# Generated by `make docs`: the roles hold what the code reads and writes in this mode, and nothing else.
#
# 1 `make image`, and push the image to where your nodes find it. Name it below by its digest.
# 2 A certificate for {host}, by your own authority or by itself:
#     openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN={host} \\
#       -addext subjectAltName=DNS:{host} -keyout tls.key -out tls.crt
#     kubectl --namespace {NAMESPACE} create secret tls reprieve-{name}-tls --cert=tls.crt --key=tls.key
#   A renewed one is read within ten seconds.
# 3 kube-scheduler shows its own client certificate: deploy/kube-scheduler-config.yaml. Others show a token or certificate of the cluster;
#   Prometheus needs a ClusterRole for nonResourceURLs: [/metrics], as it does at kube-scheduler (docs/access.md).
# 4 kubectl apply -f deploy/kubernetes/{name}.yaml
"""


def _host(name: str) -> str:
    return f"{name}.{NAMESPACE}.svc"


def _role(kind: str, name: str, allowed: Iterable[str]) -> str:
    return f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {_metadata(kind, name)}\nrules:\n{''.join(allowed)}"


def _binding(kind: str, name: str, subject: str, role: str) -> str:
    return (
        f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {_metadata(kind, name)}\n"
        f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}\n"
        f"subjects:\n- {{kind: ServiceAccount, name: {subject}, namespace: {NAMESPACE}}}\n"
    )


def _metadata(kind: str, name: str) -> str:
    return f"{{name: {name}}}" if kind == "ClusterRole" else f"{{name: {name}, namespace: {NAMESPACE}}}"


def _config_map(name: str, configuration: str) -> str:
    text = indent(configuration, "    ")
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\ndata:\n  config.yaml: |\n{text}"


def _workload(name: str, mode: Mode) -> str:
    mounts = [
        "{name: tls, mountPath: /etc/reprieve/tls, readOnly: true}",
        "{name: clients, mountPath: /etc/reprieve/clients, readOnly: true}",
    ]
    volumes = [
        f"{{name: tls, secret: {{secretName: {name}-tls, defaultMode: 0440}}}}",
        # Whom the cluster's own API server trusts to sign client certificates; it publishes them here.
        "{name: clients, configMap: {name: extension-apiserver-authentication, items: [{key: client-ca-file, path: ca.crt}]}}",
    ]
    if mode.configuration:
        mounts.append("{name: config, mountPath: /etc/reprieve/config, readOnly: true}")
        volumes.append(f"{{name: config, configMap: {{name: {name}}}}}")
    args = (*_ARGS, f"--allowed-hosts={_host(name)}", *mode.args)
    template = Template(Path(__file__).with_name("workload.yaml").read_text(encoding="utf-8"))
    return template.substitute(name=name, namespace=NAMESPACE, args=_items(8, args), mounts=_items(8, mounts), volumes=_items(6, volumes))


def _items(depth: int, items: Iterable[str]) -> str:
    return "\n".join(f"{'':{depth}}- {item}" for item in items)


def main() -> None:
    """Writes the files, by default into deploy/kubernetes of the current folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "deploy/kubernetes")
    for name in MODES:
        (folder / f"{name}.yaml").write_text(manifest(name), encoding="utf-8")


if __name__ == "__main__":
    main()
