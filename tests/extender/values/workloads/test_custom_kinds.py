"""Kinds that charts bring along are left out, but none that an API server has, and no JobSets."""

from extender.values.workloads.custom_kinds import is_custom, left_out
from tests.kit.tables import cases

SERVED = {"Deployment": "apps/v1", "PriorityClass": "scheduling.k8s.io/v1"}


@cases(
    "api_version, kind, custom",
    ("one of a domain", "monitoring.coreos.com/v1", "ServiceMonitor", True),
    ("one that is called as one of Kubernetes", "example.com/v1", "Deployment", True),
    ("one of Kubernetes", "scheduling.k8s.io/v1", "PriorityClass", False),
    ("another version of one of Kubernetes", "scheduling.k8s.io/v9", "PriorityClass", False),
    ("one without a domain", "apps/v1", "Mystery", False),
    ("one of the core", "v1", "Mystery", False),
    ("JobSets have pods", "jobset.x-k8s.io/v1alpha2", "JobSet", False),
)
def test_which_kinds_are_custom(api_version: str, kind: str, custom: bool) -> None:
    assert is_custom({"apiVersion": api_version, "kind": kind}, SERVED.get) is custom


def test_each_kind_that_is_left_out_is_named_once() -> None:
    monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor"}

    assert left_out([monitor, monitor]) == (
        "left out, since no pods are known to come of them: ServiceMonitor (monitoring.coreos.com/v1)"
    )
    assert left_out([]) == ""
