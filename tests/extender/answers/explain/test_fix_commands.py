"""What would help, as something to use: a patch that an API server applies, a command, and objects for a what-if."""

import shlex
from copy import deepcopy
from typing import Any

import msgspec

from extender.answers.explain.fixes import command_of, objects_to_try, patch_of
from extender.rules.schema import api_types
from extender.testing import make_pod
from extender.values import limits
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from reprieve.cluster.patches.strategic_merge import merge
from tests.kit.tables import cases

HARD: dict[str, Any] = {
    "containers": [
        {
            "name": "main",
            "resources": {"requests": {"cpu": "4", "memory": "1Gi"}},
            "ports": [{"containerPort": 80, "hostPort": 80}],
        },
        {"name": "side", "resources": {"requests": {"cpu": "1"}}},
    ],
    "nodeSelector": {"disk": "ssd", "zone": "a"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "schedulingGates": [{"name": "one"}, {"name": "two"}],
    "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "new", "operator": "Exists"}]}}
            ],
        }
    },
}


MAIN, SIDE = HARD["containers"]


def a_pod(spec: dict[str, Any], **metadata: Any) -> Pod:
    return convert(Pod, {"metadata": {"name": "p", "namespace": "shop", **metadata}, "spec": spec})


def changed(**members: Any) -> dict[str, Any]:
    """The spec with members replaced; None takes one away."""
    return {name: value for name, value in (deepcopy(HARD) | members).items() if value is not None}


@cases(
    "after",
    ("a label less", changed(nodeSelector={"zone": "a"})),
    ("no selector", changed(nodeSelector=None)),
    ("a toleration more", changed(tolerations=[*HARD["tolerations"], {"key": "b", "operator": "Exists"}])),
    ("no gates", changed(schedulingGates=None)),
    ("a gate less", changed(schedulingGates=[{"name": "two"}])),
    (
        "only prefer to spread",
        changed(
            topologySpreadConstraints=[{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
        ),
    ),
    (
        "nothing required",
        changed(
            affinity={
                "nodeAffinity": {k: v for k, v in HARD["affinity"]["nodeAffinity"].items() if k.startswith("pref")}
            }
        ),
    ),
    (
        "less of a resource",
        changed(
            containers=[
                {**HARD["containers"][0], "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
                HARD["containers"][1],
            ]
        ),
    ),
    ("no host port", changed(containers=[{**MAIN, "ports": [{"containerPort": 80}]}, SIDE])),
)
def test_an_api_server_that_applies_the_patch_has_the_changed_pod(after: dict[str, Any]) -> None:
    before, then = a_pod(HARD), a_pod(after)

    patch = patch_of(before, then)

    assert patch
    kind = api_types.find("", "v1", "Pod")
    assert kind is not None
    patched = merge(kind, {"spec": msgspec.to_builtins(before.spec)}, {"spec": deepcopy(patch)})
    assert a_pod(patched["spec"]).spec == then.spec


def test_patch_leaves_other_containers_out() -> None:
    """The scheduler does not know their environment, which a patch must leave alone."""
    after = changed(containers=[{**MAIN, "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}, SIDE])

    patch = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    assert patch_of(a_pod(HARD), a_pod(after)) == patch


def owned(kind: str, name: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [owner], "labels": {"pod-template-hash": "5d8"}}


@cases(
    "owner, patch, target, patch_json",
    (
        "the template of its Deployment",
        owned("ReplicaSet", "web-5d8"),
        {"nodeSelector": {"a": "it's"}},
        "deployment web",
        '{"spec":{"template":{"spec":{"nodeSelector":{"a":"it\'s"}}}}}',
    ),
    (
        "the template of its StatefulSet",
        owned("StatefulSet", "db"),
        {"tolerations": []},
        "statefulset db",
        '{"spec":{"template":{"spec":{"tolerations":[]}}}}',
    ),
    (
        "the pod, where the template of its Job cannot be changed",
        owned("Job", "once"),
        {"tolerations": []},
        "pod p",
        '{"spec":{"tolerations":[]}}',
    ),
    (
        "the gates of the pod alone",
        owned("ReplicaSet", "web-5d8"),
        {"schedulingGates": None},
        "pod p",
        '{"spec":{"schedulingGates":null}}',
    ),
    ("nothing, where a pod would have to be created again", {}, {"nodeSelector": None}, "", ""),
    ("nothing, where the pod does not change", {}, {}, "", ""),
)
def test_the_command_changes_what_makes_the_pod(
    owner: dict[str, Any], patch: dict[str, Any], target: str, patch_json: str
) -> None:
    words = [*f"kubectl -n shop patch {target} -p".split(), patch_json] if target else []

    assert shlex.split(command_of(a_pod(HARD, **owner), patch)) == words


def test_tried_objects_have_a_name_and_a_priority_class_of_their_own() -> None:
    priority_class, pod = objects_to_try(make_pod("web").priority(7).node("a").req(cpu=1).obj())

    assert (priority_class["kind"], priority_class["value"]) == ("PriorityClass", 7)
    assert pod["metadata"]["name"] == "web-tried"
    assert pod["spec"].keys() == {"containers", "priorityClassName"}


def test_a_very_large_pod_is_not_tried_by_an_address() -> None:
    labels = {f"l{number}": "x" * 60 for number in range(limits.FIX_OBJECT_BYTES // 60)}
    assert objects_to_try(make_pod("web").label(**labels).obj()) == ()
