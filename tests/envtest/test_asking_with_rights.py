"""Questions by people with four roles: nobody is told what is wrong, and each what may be known.

They are asked before the embedded API behind the test kit's roles, always, and before a kube-apiserver with RBAC where
there is one.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from api.cli import app
from extender.client.client import Client
from extender.values.objects.kinds import KINDS
from extender.values.targets.target import Target
from reprieve.errors import StartUpError
from tests.envtest.asking import (
    ELSEWHERE,
    HOME,
    OBJECTS,
    OPERATOR,
    OWNER,
    OWNER_WITHOUT_NODES,
    ROLES,
    SAID,
    apply,
    roles_of_the_page,
    roles_with_bindings,
)
from tests.envtest.conftest import ASSETS
from tests.kit.api_with_roles import serving_with_roles
from tests.kit.control_plane import ADMIN
from tests.kit.rbac import Rbac

Asks = Callable[..., tuple[int, str, str]]
"""Asks a question as a user; returns the exit code, what is printed, and what is told beside it."""


@pytest.fixture(scope="module", params=["embedded", "kube-apiserver"] if os.environ.get(ASSETS) else ["embedded"])
def kubeconfig_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Path]]:
    folder = tmp_path_factory.mktemp("asking")
    if request.param == "embedded":
        users = {ADMIN: None, **{user: Rbac(roles_with_bindings(), user) for user in ROLES}}
        with serving_with_roles((), users) as api:
            asyncio.run(_applied(lambda: Client(Target(f"http://127.0.0.1:{api.port}/{ADMIN}")), roles=False))
            yield lambda user: api.kubeconfig(user, folder)
        return
    plane = request.getfixturevalue("control_plane")
    asyncio.run(_applied(lambda: Client(plane.target()), roles=True))
    yield plane.kubeconfig


async def _applied(make: Callable[[], Client], *, roles: bool) -> None:
    await apply(make(), [*OBJECTS, *(roles_with_bindings() if roles else ())])


@pytest.fixture
def asks(kubeconfig_of: Callable[[str], Path]) -> Asks:
    def ask(user: str, *words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [*words, "--kubeconfig", str(kubeconfig_of(user))])
        if isinstance(result.exception, StartUpError):
            return result.exception.exit_code, result.stdout, f"{result.stderr}\n{result.exception}"
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    return ask


REFUSED: Final = r"It fits on none of \d+ nodes"
OPEN: Final = r"It is not known whether it fits"
BLIND: Final = r"Which nodes there are is not known, since nodes cannot be listed"
FITS: Final = r"It fits on (\d+ of \d+ nodes|the only node), "

ANSWERS: Final = {
    "huge": {ADMIN: REFUSED, OPERATOR: REFUSED, OWNER: REFUSED, OWNER_WITHOUT_NODES: BLIND},
    "ssd": {ADMIN: REFUSED, OPERATOR: REFUSED, OWNER: REFUSED, OWNER_WITHOUT_NODES: BLIND},
    "full": {ADMIN: REFUSED, OPERATOR: REFUSED, OWNER: OPEN, OWNER_WITHOUT_NODES: BLIND},
    "fine": {ADMIN: FITS, OPERATOR: FITS, OWNER: OPEN, OWNER_WITHOUT_NODES: BLIND},
    "data": {ADMIN: REFUSED, OPERATOR: REFUSED, OWNER: OPEN, OWNER_WITHOUT_NODES: BLIND},
}


@pytest.mark.parametrize(
    ("pod", "user", "summary"),
    [(pod, user, summary) for pod, by_user in ANSWERS.items() for user, summary in by_user.items()],
)
def test_why_says_what_is_known_and_no_more(asks: Asks, pod: str, user: str, summary: str) -> None:
    code, answer, _ = asks(user, "why", f"{HOME}/{pod}")

    claims = {name: text for name, text in (("refused", REFUSED), ("fits", FITS)) if text != summary}
    assert code == 0
    assert re.search(summary, answer), answer
    assert not [name for name, text in claims.items() if re.search(text, answer)]
    assert summary not in (OPEN, BLIND) or "would show it" in answer


@pytest.mark.parametrize("user", [OPERATOR, ADMIN])
def test_who_may_list_everything_is_told_of_no_gap(asks: Asks, user: str) -> None:
    code, answer, beside = asks(user, "why", f"{HOME}/full")

    assert (code, beside.strip()) == (0, "")
    assert "Insufficient cpu" in answer
    assert "not known" not in answer


def test_the_owner_of_a_namespace_is_told_which_rights_would_tell(asks: Asks) -> None:
    _, answer, beside = asks(OWNER, "why", f"{HOME}/full")

    assert "the right to list pods of all namespaces would show it" in answer
    assert f"pods can be listed in {HOME} alone" in " ".join((answer + beside).split())
    assert re.search(rf"default-scheduler refused it.*: {SAID.rstrip('.')}", answer), answer


def test_without_nodes_the_pod_speaks_for_itself(asks: Asks) -> None:
    """By its condition and its events, in words."""
    _, answer, _ = asks(OWNER_WITHOUT_NODES, "why", f"{HOME}/full")

    assert re.search(rf"default-scheduler refused it.*: {SAID.rstrip('.')}", answer), answer
    assert re.search(rf"\(x3 since .*default-scheduler: {SAID}", answer), answer
    assert "the right to list nodes would show it" in answer
    assert "would be refused now" not in answer


@pytest.fixture
def one_more(tmp_path: Path) -> str:
    file = tmp_path / "pod.yaml"
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeSelector": {"asking": "yes"}, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    metadata = {"name": "new", "namespace": HOME}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    return str(file)


DOORS: Final = [
    (OPERATOR, ["fits"], 0, "pods fit on"),
    (OPERATOR, ["victims"], 0, "without evictions"),
    (OPERATOR, ["whatif"], 0, "would go to"),
    (OPERATOR, ["plan"], 0, "without any move"),
    (OWNER, ["fits"], 3, "how many fit is not known"),
    (OWNER, ["victims"], 3, "it is not known"),
    (OWNER, ["whatif"], 3, "It is not known whether"),
    (OWNER, ["plan"], 3, "not known: how much room other pods leave"),
    (OWNER_WITHOUT_NODES, ["fits"], 3, "not known: which nodes there are"),
    (OWNER_WITHOUT_NODES, ["whatif"], 3, "not known: which nodes there are"),
    (OWNER_WITHOUT_NODES, ["plan"], 3, "not known: which nodes there are"),
]


@pytest.mark.parametrize(
    ("user", "command", "code", "words"), DOORS, ids=[f"{user} {command[0]}" for user, command, _, _ in DOORS]
)
def test_every_door_says_what_is_not_known(
    asks: Asks, one_more: str, user: str, command: list[str], code: int, words: str
) -> None:
    exit_code, answer, beside = asks(user, *command, "-n", HOME, "-f", one_more)

    assert (exit_code, words in answer + beside) == (code, True), answer + beside


@pytest.mark.parametrize("user", ROLES)
def test_pods_that_wait_are_listed_as_far_as_they_may_be(asks: Asks, user: str) -> None:
    code, answer, _ = asks(user, "pending", "-n", HOME, "-o", "name")

    assert code == 0
    assert {line.rpartition("/")[2] for line in answer.split()} == {"huge", "ssd", "full", "fine", "data"}


@pytest.mark.parametrize("user", [OWNER, OWNER_WITHOUT_NODES])
@pytest.mark.parametrize(
    "words", [["why", f"{ELSEWHERE}/hog"], ["why", "-l", "app=x", "-n", ELSEWHERE]], ids=["one", "some"]
)
def test_nobody_is_told_of_no_pods_where_none_may_be_listed(asks: Asks, user: str, words: list[str]) -> None:
    code, answer, beside = asks(user, *words)

    assert code == 3
    assert "there is no pod" not in beside
    assert re.search(f"(not known: which pods there are in|nor the pods of .*) ?{ELSEWHERE}", answer + beside), beside


def test_a_drain_is_about_pods_that_an_owner_may_not_list(asks: Asks) -> None:
    code, _, beside = asks(OWNER, "whatif", "-n", HOME, "--drain", "asking-large")

    assert code == 3
    assert "not known: how much room other pods leave" in beside


def test_the_roles_of_the_page_let_all_be_listed() -> None:
    everything, of_owners = (
        {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
        for role in roles_of_the_page()
    )

    assert everything == {(kind.group, kind.plural) for kind in KINDS} | {("", "events")}
    assert of_owners == {(kind.group, kind.plural) for kind in KINDS if not kind.is_namespaced}
    assert {verb for role in roles_of_the_page() for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
