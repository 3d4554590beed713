"""One question lists, and does not watch. What may not be listed is said to be not known, and is no end."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from typer.testing import CliRunner

from api.cli import app
from extender.values.objects.kinds import KINDS, NODES, PODS, WatchedKind
from reprieve import Cluster, ReprieveError
from reprieve.errors import SourceAwayError
from tests.kit import objects
from tests.kit.api_with_roles import ApiWithRoles, serving_with_roles, without_groups
from tests.kit.faults import Fault, answers
from tests.kit.faults.script import Call, Forward
from tests.kit.objects import node
from tests.kit.rbac import Rbac

Object = dict[str, Any]

ANN, ADMIN = "ann", "admin"
WATCHED: Final = [kind for kind in KINDS if not kind.gate]


def pod(name: str, cpu: str = "1", **spec: Any) -> Object:
    dev_pod = objects.pod(name, cpu, metadata={"namespace": "dev"})
    dev_pod["spec"] |= spec
    return dev_pod


def affinity(**term: Any) -> Object:
    of_web = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [of_web]}}


OBJECTS: Final = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}},
    node("n1", "2"),
    pod("big", "4"),
    pod("plain"),
    pod("urgent", "2", priority=100),
    pod("running", "1", nodeName="n1"),
    pod("volumes", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
    pod("devices", resourceClaims=[{"name": "d", "resourceClaimName": "gpu"}]),
    pod("selecting", affinity=affinity(namespaceSelector={"matchLabels": {"team": "a"}})),
)


def role(*kinds: WatchedKind[Any], verbs: tuple[str, ...] = ("list",), namespace: str = "") -> Rbac:
    """Returns the rights of Ann to these kinds, in the whole cluster or in a namespace."""
    metadata = {"name": "r", **({"namespace": namespace} if namespace else {})}
    rules = [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": [*verbs]} for kind in kinds]
    reference = {"kind": "ClusterRole", "name": "r"}
    return Rbac(
        [
            {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules},
            {
                "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": reference,
                "subjects": [{"kind": "User", "name": ANN}],
            },
        ],
        ANN,
    )


@pytest.fixture
def serves() -> Iterator[Callable[[Rbac | None], ApiWithRoles]]:
    """Serves the objects to Ann, who has these rights, and to an administrator."""
    opened: list[AbstractContextManager[ApiWithRoles]] = []

    def serve(rights: Rbac | None) -> ApiWithRoles:
        opened.append(serving_with_roles(OBJECTS, {ANN: rights, ADMIN: None}))
        return opened[-1].__enter__()

    yield serve
    for server in opened:
        server.__exit__(None, None, None)


def ask(api: ApiWithRoles, folder: Path, *words: str, user: str = ANN) -> tuple[str, str]:
    """Returns what is printed, and what is told beside it. Raises what ends the command."""
    result = CliRunner().invoke(app, [*words, "--kubeconfig", str(api.kubeconfig(user, folder))])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout, result.stderr


Serves = Callable[[Rbac | None], ApiWithRoles]


def test_one_question_lists_each_kind_once_and_watches_nothing(serves: Serves, tmp_path: Path) -> None:
    api = serves(None)
    answer, beside = ask(api, tmp_path, "why", "dev/big")

    assert ("Insufficient cpu" in answer, beside) == (True, "")
    requests = Counter(api.requests(ANN))
    assert requests.pop(("list", "events", "dev")) == 1
    assert requests == Counter(("list", kind.plural, "") for kind in WATCHED)


@pytest.mark.parametrize("verbs", [("list",), ("get", "list"), ("list", "watch")], ids="+".join)
def test_nodes_and_pods_are_enough_for_a_pod_without_volumes(
    serves: Serves, tmp_path: Path, verbs: tuple[str, ...]
) -> None:
    answer, beside = ask(serves(role(NODES, PODS, verbs=verbs)), tmp_path, "why", "dev/big")

    assert "It does not fit on the only node: NodeResourcesFit refuses it; no eviction would make room." in answer
    assert "persistentvolumeclaims" in beside
    assert "cannot be listed: what hangs on them is not known" in beside


@pytest.mark.parametrize("kind", [kind for kind in WATCHED if kind not in (NODES, PODS)], ids=lambda kind: kind.plural)
def test_a_kind_that_does_not_matter_to_the_pod_changes_nothing(
    serves: Serves, tmp_path: Path, kind: WatchedKind[Any]
) -> None:
    api = serves(role(*(other_kind for other_kind in WATCHED if other_kind is not kind)))
    for name in ("big", "plain"):
        whole, _ = ask(api, tmp_path, "why", f"dev/{name}", user=ADMIN)
        part, beside = ask(api, tmp_path, "why", f"dev/{name}")

        assert part == whole
        assert beside.strip().endswith(f"{kind.plural} cannot be listed: what hangs on them is not known")


MATTERS: Final = [
    *(("volumes", plural) for plural in ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes")),
    *(("devices", plural) for plural in ("resourceclaims", "deviceclasses", "resourceslices")),
    ("selecting", "namespaces"),
]


@pytest.mark.parametrize(("name", "plural"), MATTERS)
def test_a_kind_that_matters_makes_the_pod_not_known(serves: Serves, tmp_path: Path, name: str, plural: str) -> None:
    api = serves(role(*(kind for kind in WATCHED if kind.plural != plural)))

    answer, _ = ask(api, tmp_path, "why", f"dev/{name}")

    assert f"It is not known whether it fits on the only node, since {plural} cannot be listed." in answer
    assert f"the right to list {plural} would show it" in answer
    assert "does not exist" not in answer


def test_whom_a_pod_evicts_is_not_known_without_budgets(serves: Serves, tmp_path: Path) -> None:
    api = serves(role(*(kind for kind in WATCHED if kind.plural != "poddisruptionbudgets")))

    whole, _ = ask(api, tmp_path, "why", "dev/urgent", user=ADMIN)
    part, _ = ask(api, tmp_path, "why", "dev/urgent")

    assert "dev/running" in whole
    assert "It does not fit on the only node: NodeResourcesFit refuses it." in part
    assert "preemption: not known, since poddisruptionbudgets cannot be listed" in part
    assert "dev/running" not in part


def test_groups_that_the_server_does_not_have_are_no_gap(serves: Serves, tmp_path: Path) -> None:
    api = serves(None)
    api.transports[ANN].add(without_groups("resource.k8s.io", "scheduling.k8s.io", "policy"))

    answer, beside = ask(api, tmp_path, "why", "dev/big")

    assert ("Insufficient cpu" in answer, beside) == (True, "")


def test_pods_of_which_the_second_page_is_refused_do_not_count(serves: Serves, tmp_path: Path) -> None:
    """The rights are lost in between: the first page alone would look like a whole list."""

    async def first_page(call: Call, forward: Forward) -> httpx.Response:
        body = json.loads((await forward()).content)
        return httpx.Response(200, json={**body, "metadata": {**body["metadata"], "continue": "more"}})

    def is_further(call: Call) -> bool:
        return call.resource == "pods" and "continue" in call.request.url.params

    api = serves(None)
    api.transports[ANN].add(
        Fault(answers.status(403, "no more"), where=is_further, times=None),
        Fault(first_page, resource="pods", where=lambda call: not call.namespace and not is_further(call)),
    )

    answer, beside = ask(api, tmp_path, "why", "dev/plain")

    assert "It is not known whether it fits on the only node, since pods can be listed in" in answer
    assert "pods can be listed in" in beside


def test_a_pod_of_a_namespace_that_is_not_there_is_no_pod(serves: Serves, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no pod nowhere/web"):
        ask(serves(None), tmp_path, "why", "nowhere/web")


def test_whether_there_is_a_namespace_is_not_known_to_who_may_not_look(serves: Serves, tmp_path: Path) -> None:
    with pytest.raises(SourceAwayError, match="not known: which pods there are in nowhere, since pods"):
        ask(serves(role(NODES)), tmp_path, "why", "nowhere/web")


def test_neither_nodes_nor_pods_are_too_little_to_say_anything(serves: Serves, tmp_path: Path) -> None:
    with pytest.raises(
        SourceAwayError, match=r"neither nodes nor the pods of default or dev can be listed .*kubectl auth"
    ):
        ask(serves(role(PODS, namespace="elsewhere")), tmp_path, "why", "dev/big")


@pytest.mark.parametrize("when", ["first", "in between"])
def test_credentials_that_are_not_accepted_are_told_as_such(serves: Serves, tmp_path: Path, when: str) -> None:
    api = serves(None)
    refused = Fault(
        answers.status(401, "Unauthorized"), where=lambda call: when == "first" or bool(call.resource), times=None
    )
    api.transports[ANN].add(refused)

    with pytest.raises(SourceAwayError, match=r"Unauthorized.*sign in again"):
        ask(api, tmp_path, "why", "dev/big")


def test_a_list_that_fails_at_first_is_repeated(serves: Serves, tmp_path: Path) -> None:
    api = serves(None)
    api.transports[ANN].add(Fault(answers.answer("?"), resource="nodes"))

    answer, beside = ask(api, tmp_path, "why", "dev/big")

    assert ("Insufficient cpu" in answer, beside) == (True, "")


def test_following_a_cluster_takes_the_right_to_watch(serves: Serves, tmp_path: Path) -> None:
    with pytest.raises(SourceAwayError, match="cannot watch"):
        ask(serves(role(*WATCHED)), tmp_path, "why", "dev/big", "--watch")


# The library.


def test_a_trial_says_what_is_not_known(serves: Serves, tmp_path: Path) -> None:
    cluster = Cluster.connect(serves(role(NODES, PODS)).kubeconfig(ANN, tmp_path))
    with cluster.trial() as trial:
        (with_volumes,), (plain,) = trial.schedule("dev/volumes"), trial.schedule("dev/plain")

    assert (plain.node, plain.message) == ("n1", "")
    assert with_volumes.node == ""
    assert "not known, since persistentvolumeclaims" in with_volumes.message
    assert "persistentvolumeclaims" in cluster.notes[0]


def test_a_trial_without_nodes_is_refused(serves: Serves, tmp_path: Path) -> None:
    with pytest.raises(ReprieveError, match="not known: which nodes there are"):
        Cluster.connect(serves(role(PODS)).kubeconfig(ANN, tmp_path))
