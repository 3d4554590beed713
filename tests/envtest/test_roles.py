"""The shipped roles against a server that enforces them: kube-apiserver with RBAC, or the embedded API behind the test
kit's own.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import pytest

from extender.client.client import MERGE_PATCH, Client
from extender.client.errors import AlreadyExists, ApiError, Forbidden
from extender.client.paths import Right, path
from extender.client.writes.call_requests import BIND_CLAIM, send
from extender.engine.framework.storage_calls import ReserveResourceClaim
from extender.values.objects.decoding import decode
from extender.values.objects.devices import AllocationResult, ResourceClaimConsumerReference
from extender.values.objects.kinds import KINDS
from extender.values.targets.target import Target
from tests.deploy.manifests import account_of, released_as
from tests.envtest.servers import Embedded, Server
from tests.kit.faults import FaultyTransport
from tests.kit.rbac import Rbac
from tools.render_manifests import NAMESPACE, VARIANTS

T = TypeVar("T")

_RBAC: Final = "rbac.authorization.k8s.io"
PLURALS: Final = {
    "ServiceAccount": ("", "serviceaccounts"),
    "ConfigMap": ("", "configmaps"),
    "Service": ("", "services"),
    "Deployment": ("apps", "deployments"),
    "PodDisruptionBudget": ("policy", "poddisruptionbudgets"),
    "NetworkPolicy": ("networking.k8s.io", "networkpolicies"),
    "ClusterRole": (_RBAC, "clusterroles"),
    "ClusterRoleBinding": (_RBAC, "clusterrolebindings"),
    "Role": (_RBAC, "roles"),
    "RoleBinding": (_RBAC, "rolebindings"),
}
NAMESPACED: Final = {kind.plural for kind in KINDS if kind.is_namespaced} | {
    "events",
    "leases",
    "secrets",
    "configmaps",
}

NO_NAME: Final = "no-such-object"

NEVER: Final = frozenset(
    {
        *(Right("", "secrets", verb) for verb in ("get", "list", "watch", "create")),
        *(Right("", "pods", verb) for verb in ("create", "update", "patch")),
        *(Right("", "pods", "create", subresource) for subresource in ("exec", "eviction")),
        *(Right("", "nodes", verb) for verb in ("create", "update", "patch", "delete")),
        *(Right("coordination.k8s.io", "leases", verb) for verb in ("list", "watch", "delete")),
        Right("", "configmaps", "list"),
        Right("", "persistentvolumes", "delete"),
        Right("resource.k8s.io", "resourceclaims", "delete"),
        Right(_RBAC, "clusterrolebindings", "create"),
    }
)
"""What no mode may do."""

MODES: Final = [variant for variant in VARIANTS if variant != "sidecar"]
"""A kube-scheduler's roles, which a sidecar's pod has besides, are the server's own."""


def granted_to(mode: str) -> dict[Right, str]:
    """The rights of a mode's account, each with the name of the object that it is about, if it is about one."""
    return {grant.right: grant.name for grant in Rbac(released_as(mode), account_of(mode)).grants}


ALL: Final = NEVER | granted_to("second-scheduler").keys()


@contextmanager
def client_of(server: Server, mode: str, lost: Right | None = None) -> Iterator[Callable[[], Client]]:
    """Yields what makes a client that is the service account of a mode, with its role but for one right."""
    objects = _manifest(mode, lost)
    if isinstance(server, Embedded):
        # The embedded API has no RBAC of its own.
        role, transport = Rbac(objects, account_of(mode)), server.transport
        yield lambda: Client(Target("http://embedded"), transport=FaultyTransport(transport(), *role.faults()))
        return
    run(server.client, lambda admin: _apply(admin, objects))
    run(lambda: server.client(account_of(mode)), lambda client: _settled(client, mode, lost))
    yield lambda: server.client(account_of(mode))


def run(make: Callable[[], Client], act: Callable[[Client], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(120), aclosing(make()) as client:
            return await act(client)

    return asyncio.run(bounded())


def _manifest(mode: str, lost: Right | None) -> list[dict[str, Any]]:
    """Returns the shipped objects, their cluster role but for one right."""
    return [obj | {"rules": _rules(obj, lost)} if obj["kind"] == "ClusterRole" else obj for obj in released_as(mode)]


async def _apply(admin: Client, objects: list[dict[str, Any]]) -> None:
    """Creates the objects, strictly read, or changes the rules of a cluster role that is there."""
    for obj in objects:
        group, plural = PLURALS[obj["kind"]]
        where = path(group, "v1", plural, namespace=obj["metadata"].get("namespace"))
        with suppress(AlreadyExists):
            await admin.create(f"{where}?fieldValidation=Strict", obj)
        if obj["kind"] == "ClusterRole":
            await admin.patch(f"{where}/{obj['metadata']['name']}", {"rules": obj["rules"]}, MERGE_PATCH)


async def _settled(client: Client, mode: str, lost: Right | None) -> None:
    """Returns once the server knows the role as it is now: its RBAC authorizer follows roles by watch."""
    for right, name in granted_to(mode).items():
        while right.verb != "watch" and await is_allowed(client, right, name or NO_NAME) != (right != lost):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.1)


def _rules(role: dict[str, Any], lost: Right | None) -> list[dict[str, Any]]:
    """The rules without one right: that resource's verbs are in a rule of their own."""
    rules = []
    for rule in role["rules"]:
        if lost is None or lost.group not in rule["apiGroups"] or lost.resource not in rule["resources"]:
            rules.append(rule)
            continue
        rules.append(rule | {"resources": [resource for resource in rule["resources"] if resource != lost.resource]})
        rules.append(
            rule | {"resources": [lost.resource], "verbs": [verb for verb in rule["verbs"] if verb != lost.verb]}
        )
    return [rule for rule in rules if rule["resources"] and rule["verbs"]]


async def is_allowed(client: Client, right: Right, name: str = NO_NAME) -> bool:
    """Whether such a request is let through. It does nothing: it is about an object that does not exist, or it is
    malformed.
    """
    is_named = right.verb in ("get", "update", "patch", "delete") or bool(right.subresource)
    namespace = NAMESPACE if right.plural in NAMESPACED and (is_named or right.verb == "create") else None
    resource = path(right.group, "v1", right.plural, namespace=namespace, name=name if is_named else None)
    where = f"{resource}/{right.subresource}" if right.subresource else resource
    try:
        match right.verb:
            case "get" | "list":
                await client.get(where)
            case "watch":
                await client.get(where, params={"watch": "1", "timeoutSeconds": "1"})
            case "create":
                await client.create(where, {})
            case "update":
                await client.update(where, {})
            case "patch":
                await client.patch(where, {}, MERGE_PATCH)
            case "delete":
                await client.delete(where)
    except Forbidden:
        return False
    except ApiError:
        pass
    return True


@pytest.mark.parametrize("mode", MODES)
def test_an_account_may_do_what_its_role_says_and_nothing_else(server: Server, mode: str) -> None:
    granted = granted_to(mode)

    async def ask(client: Client) -> set[Right]:
        answers = await asyncio.gather(*(is_allowed(client, right, granted.get(right) or NO_NAME) for right in ALL))
        return {right for right, may in zip(ALL, answers, strict=True) if may}

    with client_of(server, mode) as make:
        allowed = run(make, ask)

    assert allowed == granted.keys()


def test_the_lease_of_another_component_is_out_of_reach(server: Server) -> None:
    async def ask(client: Client) -> list[bool]:
        rights = [Right("coordination.k8s.io", "leases", verb) for verb in ("get", "update")]
        return [await is_allowed(client, right, name) for name in ("reprieve", "kube-scheduler") for right in rights]

    with client_of(server, "second-scheduler") as make:
        assert run(make, ask) == [True, True, False, False]


@pytest.mark.parametrize("lost", [None, BIND_CLAIM], ids=["with the role", "without resourceclaims/binding"])
def test_allocating_devices_needs_the_right_to_bind_claims(server: Server, lost: Right | None) -> None:
    """Since 1.36 the right to patch a claim's status is not enough."""

    async def give(admin: Client, make: Callable[[], Client]) -> str:
        claim = await _new_claim(admin)
        device = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}
        allocation = {"devices": {"results": [device]}}
        call = ReserveResourceClaim(
            NAMESPACE,
            claim["name"],
            claim["uid"],
            claim["resourceVersion"],
            ResourceClaimConsumerReference(resource="pods", name="web", uid="u"),
            decode(AllocationResult, json.dumps(allocation).encode()),
        )
        async with aclosing(make()) as client:
            try:
                await send(client, call, lambda: datetime.now(UTC))
            except ApiError as exc:
                return exc.message
        return ""

    with client_of(server, "second-scheduler", lost) as make:
        message = run(server.client, lambda admin: give(admin, make))

    if lost is None:
        assert message == ""
    else:
        assert 'requires resource="resourceclaims/binding"' in message


async def _new_claim(admin: Client) -> dict[str, Any]:
    """Its metadata."""
    with suppress(AlreadyExists):
        await admin.create(path("", "v1", "namespaces"), {"metadata": {"name": NAMESPACE}})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"generateName": "gpu-"},
        "spec": {"devices": {"requests": requests}},
    }
    created = await admin.create(path("resource.k8s.io", "v1", "resourceclaims", namespace=NAMESPACE), claim)
    metadata: dict[str, Any] = json.loads(created)["metadata"]
    return metadata
