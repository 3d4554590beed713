"""Role-based access control in front of a server that has none: requests are refused as a kube-apiserver refuses them.

    role = Rbac(yaml.safe_load_all(text), "system:serviceaccount:kube-system:reprieve")
    transport = FaultyTransport(server, *role.faults())

Upstream: plugin/pkg/auth/authorizer/rbac/rbac.go; apiserver/pkg/endpoints/handlers/responsewriters/errors.go,
ForbiddenStatusError; pkg/registry/resource/utils.go, AuthorizedForBinding.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import httpx
import msgspec

from extender.client.paths import Right
from extender.client.writes.call_requests import BIND_CLAIM
from tests.kit.faults import answers
from tests.kit.faults.script import Call, Fault, Forward

Object = dict[str, Any]

BUILT_IN: Final[Object] = {
    "kind": "ClusterRole",
    "metadata": {"name": "system:auth-delegator"},
    "rules": [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ],
}
"""The one role of every cluster that manifests refer to here."""


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """One right that a user has."""

    right: Right
    name: str = ""
    """The one object that it is about; empty for all."""
    namespace: str = ""
    """The one namespace that it is about; empty for the whole cluster."""


@final
class Rbac:
    """What one service account may do by the roles and bindings of some manifests. State: the requests that it
    refused.
    """

    def __init__(self, manifests: Iterable[Object], user: str) -> None:
        """Reads the manifests; of kinds that have nothing to do with roles there may be any.

        Arguments:
            user: as `system:serviceaccount:NAMESPACE:NAME`.
        """
        objects = list(manifests)
        self.user: Final = user
        self.grants = frozenset(_grants(objects, user))
        self.refused: list[Right] = []

    def without(self, right: Right) -> "Rbac":
        """Returns the same roles but for one right."""
        reduced = Rbac((), self.user)
        reduced.grants = frozenset(grant for grant in self.grants if grant.right != right)
        return reduced

    def faults(self) -> tuple[Fault, Fault]:
        """Returns what refuses requests that are not allowed; to be the first faults of a transport."""
        return Fault(self._forbid, where=self._is_forbidden, times=None), Fault(
            self._forbid_binding,
            verb="patch",
            resource="resourceclaims",
            subresource="status",
            where=self._may_not_bind_claims,
            times=None,
        )

    def _allows(self, right: Right, namespace: str, name: str) -> bool:
        return any(
            grant.right == right and grant.namespace in ("", namespace) and grant.name in ("", name)
            for grant in self.grants
        )

    def _is_forbidden(self, call: Call) -> bool:
        # Whoever is authenticated may read what is no resource: /version, discovery.
        return bool(call.resource) and not self._allows(_right_of(call), call.namespace, call.name)

    def _may_not_bind_claims(self, call: Call) -> bool:
        status = msgspec.json.decode(call.request.content).get("status", {})
        return bool(status.keys() & {"allocation", "reservedFor"}) and not self._allows(BIND_CLAIM, "", "")

    async def _forbid(self, call: Call, forward: Forward) -> httpx.Response:
        right = _right_of(call)
        self.refused.append(right)
        details = {"name": call.name, "group": call.group, "kind": call.resource}
        answer = answers.status(403, self._words(right, call.namespace, call.name), details=details)
        return await answer(call, forward)

    async def _forbid_binding(self, call: Call, forward: Forward) -> httpx.Response:
        self.refused.append(BIND_CLAIM)
        message = (
            f'ResourceClaim.resource.k8s.io "{call.name}" is invalid: status: Forbidden: changing status.allocation or '
            "status.reservedFor "
            f'requires resource="resourceclaims/binding", verb="patch" permission: {self._words(BIND_CLAIM)}'
        )
        return await answers.status(422, message)(call, forward)

    def _words(self, right: Right, namespace: str = "", name: str = "") -> str:
        qualified = f"{right.plural}.{right.group}" if right.group else right.plural
        quoted_name = f' "{name}"' if name else ""
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        return (
            f'{qualified}{quoted_name} is forbidden: User "{self.user}" cannot {right.verb} resource "{right.resource}" '
            f'in API group "{right.group}" {where}'
        )


def _right_of(call: Call) -> Right:
    return Right(call.group, call.resource, call.verb, call.subresource)


def _grants(objects: list[Object], user: str) -> Iterator[Grant]:
    roles = {(obj["kind"], _key(obj)): obj for obj in (BUILT_IN, *objects) if obj["kind"] in ("Role", "ClusterRole")}
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if user not in map(_user, binding["subjects"]):
            continue
        namespace = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        role = roles[reference["kind"], (namespace if reference["kind"] == "Role" else "", reference["name"])]
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            plural, _, subresource = resource.partition("/")
                            yield Grant(Right(group, plural, verb, subresource), name, namespace)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _user(subject: Object) -> str:
    return (
        f"system:serviceaccount:{subject.get('namespace')}:{subject['name']}"
        if subject["kind"] == "ServiceAccount"
        else subject["name"]
    )
