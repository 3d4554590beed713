"""Each role allows what its mode does, and nothing that it does not do."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import pytest

from extender.testing import virtual_time
from extender.values.objects.kinds import KINDS, PRIORITY_CLASSES
from tests.deploy import role_actions
from tests.deploy.manifests import ACCOUNT, KUBE_SCHEDULERS_OWN, reprieves_own, role_of, shipped
from tests.kit.rbac import Rbac
from tools.generate_roles import FILE, FOLLOW, page
from tools.render_manifests import VARIANTS

Deed = Callable[[Rbac], Coroutine[Any, Any, bool]]

FOLLOWS: Final[dict[str, Deed]] = {
    **{f"list {kind.resource}": role_actions.follows_a_server_that_streams_no_lists for kind in KINDS if not kind.gate},
    **{f"watch {kind.resource}": role_actions.follows_the_cluster for kind in KINDS if not kind.gate},
    f"list {PRIORITY_CLASSES.resource}": role_actions.knows_the_classes_of_a_server_that_streams_no_lists,
    f"watch {PRIORITY_CLASSES.resource}": role_actions.knows_the_priority_classes,
    "list events": role_actions.shows_the_events_about_a_pod,
    "create events.events.k8s.io": role_actions.tells_that_a_victim_was_spared,
    "patch events.events.k8s.io": role_actions.counts_the_victims_spared,
    "create tokenreviews.authentication.k8s.io": role_actions.knows_who_a_caller_is,
    "create subjectaccessreviews.authorization.k8s.io": role_actions.knows_who_a_caller_is,
}
BINDS: Final[dict[str, Deed]] = {
    "create pods/binding": role_actions.binds_for_kube_scheduler,
    "get pods": role_actions.learns_what_became_of_a_binding,
}
SCHEDULES: Final[dict[str, Deed]] = {
    "create pods/binding": role_actions.schedules_a_pod,
    "get pods": role_actions.learns_what_became_of_a_pod,
    "create events.events.k8s.io": role_actions.tells_that_a_pod_was_scheduled,
    "patch events.events.k8s.io": role_actions.counts_how_often_it_said_so,
    "patch pods/status": role_actions.says_why_a_pod_waits,
    "delete pods": role_actions.preempts,
    "patch persistentvolumes": role_actions.gives_a_volume_to_a_claim,
    "get persistentvolumes": role_actions.learns_whose_a_volume_is,
    "patch persistentvolumeclaims": role_actions.has_a_volume_made,
    "get persistentvolumeclaims": role_actions.learns_whether_a_volume_is_made,
    "patch resourceclaims.resource.k8s.io": role_actions.allocates_devices,
    "patch resourceclaims/status.resource.k8s.io": role_actions.allocates_devices,
    "patch resourceclaims/binding.resource.k8s.io": role_actions.allocates_devices,
    "get resourceclaims.resource.k8s.io": role_actions.learns_what_became_of_a_claim,
    "create resourceclaims.resource.k8s.io": role_actions.makes_a_claim_for_an_extended_resource,
    "delete resourceclaims.resource.k8s.io": role_actions.takes_a_claim_back_that_it_made,
}
LEADS: Final[dict[str, Deed]] = {
    f"{verb} leases.coordination.k8s.io": role_actions.leads for verb in ("create", "get", "update")
}
NEEDS: Final[dict[str, dict[str, Deed]]] = {
    "service": FOLLOWS,
    "service-with-bind": BINDS,
    "second-scheduler": SCHEDULES | LEADS,
    "scheduler": SCHEDULES | LEADS,
    # kube-scheduler leads with the lease; the service account is the pod's.
    "sidecar": dict.fromkeys(LEADS, role_actions.holds_the_lease),
}
"""For each variant the rights that following does not need, or needs for something else, and what cannot be done
without them.
"""


TRIED: Final = {variant: LEADS if variant == "scheduler" else needs for variant, needs in NEEDS.items()}
"""What is tried for each variant: of the scheduler's role only the lease differs from that of a second scheduler."""


def role(variant: str) -> Rbac:
    return Rbac(reprieves_own(shipped(variant)), ACCOUNT)


def lease_of(variant: str) -> str:
    return "kube-scheduler" if variant == "scheduler" else "reprieve"


def _followed(variant: str) -> Iterable[Deed]:
    return FOLLOWS.values() if variant != "scheduler" else ()


def test_a_scheduler_has_the_rights_of_a_second_scheduler() -> None:
    assert {grant.right for grant in role("scheduler").grants} == {
        grant.right for grant in role("second-scheduler").grants
    }


def test_the_rules_of_the_chart_are_what_the_code_generates() -> None:
    """`make docs` writes them."""
    assert FILE.read_text() == page()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_right_is_needed_for_something(variant: str) -> None:
    expected = {**FOLLOWS, **NEEDS[variant]}.keys()

    assert {str(grant.right) for grant in role(variant).grants} == expected


@pytest.mark.parametrize(
    ("variant", "deed"),
    [
        (variant, deed)
        for variant in VARIANTS
        for deed in dict.fromkeys([*_followed(variant), *TRIED[variant].values()])
    ],
)
def test_with_its_role_a_variant_can_do_everything(variant: str, deed: Deed) -> None:
    allowed = role(variant)

    assert virtual_time.run(deed(allowed))

    assert allowed.refused == []


@pytest.mark.parametrize(
    ("variant", "right", "deed"),
    [(variant, right, deed) for variant in TRIED for right, deed in TRIED[variant].items()],
)
def test_without_one_right_something_fails(variant: str, right: str, deed: Deed) -> None:
    whole = role(variant)
    (lost,) = {grant.right for grant in whole.grants if str(grant.right) == right}
    less = whole.without(lost)

    assert not virtual_time.run(deed(less))

    assert set(less.refused) == {lost}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_lease_is_one_by_name_in_one_namespace(variant: str) -> None:
    leases = {
        (str(grant.right), grant.namespace, grant.name)
        for grant in role(variant).grants
        if grant.right.plural == "leases"
    }

    assert leases == (
        set()
        if variant.startswith("service")
        else {
            ("create leases.coordination.k8s.io", "kube-system", ""),
            ("get leases.coordination.k8s.io", "kube-system", lease_of(variant)),
            ("update leases.coordination.k8s.io", "kube-system", lease_of(variant)),
        }
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_roles_of_the_cluster_are_bound_for_a_kube_scheduler_in_the_pod_only(variant: str) -> None:
    bound = {role_of(obj) for obj in shipped(variant)} - {"", "reprieve", "system:auth-delegator"}

    assert bound == (set(KUBE_SCHEDULERS_OWN) if variant == "sidecar" else set())


def test_following_writes_nothing_but_events() -> None:
    assert {str(right) for right in FOLLOW if right.verb not in ("list", "watch")} == {
        "create events.events.k8s.io",
        "patch events.events.k8s.io",
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_role_reads_secrets_or_takes_another_identity(variant: str) -> None:
    dangerous = {"secrets", "configmaps", "users", "groups", "serviceaccounts", "pods/exec", "nodes/proxy", "*"}

    assert not {grant.right.resource for grant in role(variant).grants} & dangerous
    assert "*" not in {grant.right.verb for grant in role(variant).grants}
