"""Writes `deploy/chart/files/roles.yaml`, the rights of each role of the chart: `python -m tools.generate_roles` (or
`make docs`).

A role allows what the service asks of an API server: lists and watches of the kinds in `extender.values.objects.kinds`,
the requests of the calls in `extender.engine.framework`, events, and the lease of a scheduler. Nothing else is in it,
and no rule is written by hand.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from extender.client.lease_lock import GROUP as LEASE_GROUP
from extender.client.paths import Right
from extender.client.writes.call_requests import REQUESTS, rights_for
from extender.engine.framework import BindPod, PatchPodGroupStatus
from extender.values.objects.kinds import KINDS

FILE: Final = Path(__file__).parents[1] / "deploy" / "chart" / "files" / "roles.yaml"

# The Events about a pod are listed when somebody looks at its page.
EVENTS: Final = frozenset(
    {*(Right("events.k8s.io", "events", verb) for verb in ("create", "patch")), Right("", "events", "list")}
)
FOLLOW: Final = (
    frozenset(Right(kind.group, kind.plural, verb) for kind in KINDS if not kind.gate for verb in ("list", "watch"))
    | EVENTS
)

ROLES: Final[Mapping[str, frozenset[Right]]] = {
    "follow": FOLLOW,
    "extender": FOLLOW | rights_for(BindPod),
    "scheduler": FOLLOW.union(*(rights_for(call) for call in REQUESTS if call is not PatchPodGroupStatus)),
    # A name cannot limit a request to create: it is not in the path.
    "create-lease": frozenset({Right(LEASE_GROUP, "leases", "create")}),
    # The chart adds the name of the lease.
    "keep-lease": frozenset(Right(LEASE_GROUP, "leases", verb) for verb in ("get", "update")),
}
"""Answers that write nothing but events; the same with bind; a scheduler; and the two halves of what a lease needs."""

_OF_SCHEDULERS: Final[Mapping[str, frozenset[Right]]] = {"GenericWorkload": rights_for(PatchPodGroupStatus)}
BY_GATE: Final[Mapping[str, Mapping[str, frozenset[Right]]]] = {
    gate: {"follow": follows, "extender": follows, "scheduler": follows | _OF_SCHEDULERS.get(gate, frozenset())}
    for gate in sorted({kind.gate for kind in KINDS} - {""})
    for follows in [
        frozenset(
            Right(kind.group, kind.plural, verb) for kind in KINDS if kind.gate == gate for verb in ("list", "watch")
        )
    ]
}
"""Feature gate -> the rights that a role has besides while the gate is on."""

_INTRODUCTION: Final = """\
# `make docs` writes this file from what the code reads and writes; no rule is written by hand.
# follow: filter, prioritize, preempt and answers for people. extender: the same, and bind. scheduler: decides by
# itself, with a lease. gates: what a role has besides while a feature gate is on.
"""


def rules(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """Returns the rules that allow these rights and no others: one for the resources of a group that have the same
    verbs.
    """
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in sorted(rights):
        verbs.setdefault((right.group, right.resource), []).append(right.verb)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in verbs.items():
        resources.setdefault((group, tuple(allowed)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": together, "verbs": list(allowed)}
        for (group, allowed), together in resources.items()
    ]


class _WithoutAliases(yaml.SafeDumper):
    """Writes equal rules out each time."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def page() -> str:
    """Returns the file."""
    roles: dict[str, object] = {name: rules(rights) for name, rights in ROLES.items()}
    roles["gates"] = {
        gate: {name: rules(rights) for name, rights in of_roles.items()} for gate, of_roles in BY_GATE.items()
    }
    return _INTRODUCTION + yaml.dump(roles, Dumper=_WithoutAliases, sort_keys=False, default_flow_style=None, width=140)


def main() -> None:
    """Writes the file, by default into the chart."""
    Path(sys.argv[1] if len(sys.argv) > 1 else FILE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
