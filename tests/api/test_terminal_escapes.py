"""What anybody has written reaches a terminal, or the page, without what a terminal acts on: no command moves the
cursor, forges a line, changes the title, or turns the direction of text.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.ui import wording
from api.ui.node_drawing import element
from tests.api.in_process import reprieve
from tests.kit import objects
from tests.kit.objects import owner

EVIL = "x\x1b]0;pwn\x07\x1b[2J\r\nNODE ok\u202e\u2066\x9b31m\u2028\x7f\u200b\u200d\u2060\ufeff\U000e0041\U000e007f"
"""A title, a cleared screen, a line, a direction, a C1 control sequence; and what nobody sees."""


def hostile(value: Any) -> Any:
    """The manifest with the hostile text in each `$`."""
    return json.loads(json.dumps(value).replace("$", json.dumps(EVIL)[1:-1]))


def pod(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "shop", "uid": f"u-{name}", "ownerReferences": [owner("K$", "o$", "v1", uid="1")]}
    manifest = objects.pod(name, labels={"app": "a$"}, metadata=metadata, container={"name": "c$", "image": "i$"})
    manifest["spec"] |= {"priority": 0, "priorityClassName": "p$"} | spec
    unschedulable = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: $."}
    return manifest | {"status": {"phase": "Pending", "conditions": [unschedulable]}}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1", "zone": "z$"}},
    "spec": {"taints": [{"key": "t$", "value": "v$", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "9"}},
}
TOLERATES: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
PODS = [
    pod("low", nodeName="n1", priorityClassName="p$", **TOLERATES),
    pod("low-2$", nodeName="n1", **TOLERATES),
    pod("tainted"),
    pod("claiming", volumes=[{"name": "v$", "persistentVolumeClaim": {"claimName": "c$"}}], **TOLERATES),
    pod("strange", schedulerName="s$"),
    pod("gated", schedulingGates=[{"name": "g$"}]),
    pod("selecting", nodeSelector={"k$": "v$"}, **TOLERATES),
    pod("devices", resourceClaims=[{"name": "d$", "resourceClaimName": "r$"}], **TOLERATES),
    pod("large", containers=[{"name": "c", "resources": {"requests": {"cpu": "9", "gpu$": "1"}}}], **TOLERATES),
    pod("vip", priority=9, **TOLERATES),
]
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b$", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "a$"}}, "minAvailable": 2},
}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("evil") / "dump.yaml"
    file.write_text(yaml.safe_dump(hostile({"apiVersion": "v1", "kind": "List", "items": [NODE, *PODS, BUDGET]})))
    return file


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("evil") / "pod.yaml"
    new = pod("new", schedulerName="default-scheduler", **TOLERATES)
    del (
        new["spec"]["priorityClassName"],
        new["spec"]["priority"],
        new["metadata"]["ownerReferences"],
        new["metadata"]["labels"],
    )
    new["spec"]["containers"][0] |= {"name": "c", "image": "registry.example/i"}
    file.write_text(yaml.safe_dump(hostile(new)))
    return file


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    rule = {
        "given": {"nodes": [NODE]},
        "when": {"create": [pod("new")]},
        "then": [{"pods": "app=a$", "onNodes": "zone=$"}],
    }
    (folder / "rule.yaml").write_text(yaml.safe_dump({"name": EVIL} | hostile(rule)))
    return folder


def acted_on(output: str) -> set[str]:
    """The characters in it that a terminal acts on, or that are no characters of a line."""
    return {character for character in output.replace("\n", "") if character in EVIL and not character.isprintable()}


def run(*arguments: str) -> str:
    """All that the command prints, errors included."""
    done = reprieve(*arguments)
    return (done.stdout + done.stderr).decode()


PENDING = [item["metadata"]["name"].replace("$", EVIL) for item in PODS[2:]]
FORMS = ["table", "wide", "json", "yaml"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PENDING)
def test_explanation_of_a_hostile_pod(dump: Path, name: str, form: str) -> None:
    output = run("why", f"shop/{name}", "--dump", str(dump), "-o", form)

    assert acted_on(output) == set()
    assert "NODE ok" not in [line.strip() for line in output.splitlines()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "words",
    [
        ["pending"],
        ["why", "-n", "shop", "-l", "app"],
        ["fits", "-f", "MANIFEST"],
        ["victims", "-f", "MANIFEST"],
        ["why", "-f", "MANIFEST"],
        ["whatif", "-f", "MANIFEST"],
        ["whatif", "--drain", "n1"],
        ["plan", "--for", "MANIFEST"],
        ["who-preempted"],
    ],
)
def test_answers_about_a_hostile_cluster(dump: Path, manifest: Path, words: list[str], form: str) -> None:
    arguments = [str(manifest) if word == "MANIFEST" else word for word in words]

    assert acted_on(run(*arguments, "--dump", str(dump), "-o", form)) == set()


def test_the_page_shows_lines_but_nothing_that_turns_or_moves_them() -> None:
    template = wording.environment().from_string('<a title="{{ text }}">{{ text }}</a>{{ shape }}')

    page = template.render(text=EVIL, shape=element("title", EVIL, id=EVIL) + wording.marked(EVIL, "node"))

    assert acted_on(page.replace("\r", "")) == set()
    assert page.count(r"ok\u202e\u2066\x9b31m\u2028\x7f\u200b\u200d\u2060\ufeff\U000e0041\U000e007f") == 5
    assert page.count("\nNODE ok") == 4


def test_verdicts_on_hostile_rules(rules: Path) -> None:
    assert acted_on(run("verify", str(rules))) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["why", f"default/{EVIL}", "--dump", "DUMP"],
        ["why", "--dump", f"/nowhere/{EVIL}", "shop/vip"],
        ["fits", "-f", "BAD", "--dump", "DUMP"],
        ["whatif", "--drain", EVIL, "--dump", "DUMP"],
        ["why", "shop/vip", "--kubeconfig", "KUBECONFIG"],
        ["doctor", f"http://127.0.0.1:1/{EVIL}"],
        ["verify", f"/nowhere/{EVIL}"],
        ["init", f"{EVIL}"],
        ["print-config", "--config", f"/nowhere/{EVIL}"],
        ["evaluate", f"/nowhere/{EVIL}"],
        ["simulate", f"/nowhere/{EVIL}"],
        ["replay", f"/nowhere/{EVIL}"],
        [f"{EVIL}"],
    ],
    ids=lambda arguments: arguments[0][:8].replace(EVIL[:2], "unknown"),
)
def test_errors_about_what_is_hostile(dump: Path, tmp_path: Path, arguments: list[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(hostile(pod("new") | {"kind": "Pod$"})))
    kubeconfig = tmp_path / "kubeconfig"
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "nothing$",
        "installHint": "get it$",
        "interactiveMode": "Never",
    }
    kubeconfig.write_text(
        yaml.safe_dump(
            hostile(
                {
                    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                    "users": [{"name": "u", "user": {"exec": command}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
    )
    files = {"DUMP": dump, "BAD": bad, "KUBECONFIG": kubeconfig}

    output = run(*(str(files.get(word, word)) for word in arguments))

    assert output
    assert acted_on(output) == set()
