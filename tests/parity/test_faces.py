"""What people are told of recorded situations is the same by request, by command and on the page."""

import asyncio
import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import yaml
from starlette.applications import Starlette
from typer.testing import CliRunner

from api.app import create_app
from api.cli import app as command
from api.service_state import ServiceState
from api.settings.settings import Settings
from api.starting import Opens
from extender.answers.phrases import for_people
from extender.answers.questions import Questions
from extender.answers.types import Explanation, WhatIf
from extender.assembly.backend import Backend
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_verbs
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from extender.values.objects.kinds import KINDS
from tests.kit.many_cases import each_case
from tests.kit.objects import state_file
from tests.parity.test_decisions import id_of
from tests.parity.test_explanations import pending_cases
from tests.parity.test_what_if import as_served, promised

pytestmark = pytest.mark.slow

_EVENT = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "elsewhere"}, "reason": "Pulled",
    "involvedObject": {"kind": "Pod", "namespace": "elsewhere", "name": "e", "uid": "of-another"},
}  # fmt: skip
NAME_OF_KIND = {kind.list_name: kind.name for kind in KINDS}


def _nothing(settings: Settings) -> Opens:
    raise AssertionError("the application is asked without being started")


@pytest.fixture(scope="module")
def application() -> Iterator[Starlette]:
    yield create_app(Settings(), _nothing)


def objects_of(scenario: dict[str, Any]) -> dict[str, list[Any]]:
    """The cluster of the scenario, with its pod among the others."""
    objects = {**scenario.get("objects", {})}
    pod = scenario["pod"]
    pod = {**pod, "metadata": {"namespace": "default", **pod["metadata"]}}
    objects["pods"] = [*objects.get("pods", []), *(promised(entry) for entry in scenario.get("nominated") or ()), pod]
    return objects


@dataclass
class Seen:
    """Names of pods for which kube-scheduler chose victims, and of those for which a what-if told of victims."""

    preempting: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)


@pytest.fixture
def tally() -> Iterator[Seen]:
    """What-ifs are among what is compared."""
    tally = Seen()
    yield tally
    assert len(tally.compared) >= len(tally.preempting) / 2


@each_case(pending_cases, name_of=id_of)
def test_every_face_says_the_same(case: dict[str, Any], application: Starlette, tmp_path: Path, tally: Seen) -> None:
    scenario = case["scenario"]
    config, objects = scenario.get("config"), objects_of(scenario)
    configuration = Configuration() if config is None else load(msgspec.json.encode(config))
    namespace, name = objects["pods"][-1]["metadata"]["namespace"], objects["pods"][-1]["metadata"]["name"]

    questions = Questions.of(configuration, ClusterState.decode(objects), TrialRegistry)
    by_request, page, trial = asyncio.run(_asked(application, questions, namespace, name, as_served(scenario["pod"])))
    by_command = _by_command(objects, config, f"{namespace}/{name}", tmp_path)

    explanation = asyncio.run(
        Questions.of(configuration, ClusterState.decode(objects), TrialRegistry).explain(namespace, name)
    )
    assert explanation is not None
    # Of one that waits for a volume on a node that was chosen already, no Filter is told.
    if scenario["pod"]["metadata"].get("uid") and not _is_gated(scenario["pod"]) and explanation.standing is None:
        assert explanation.message.startswith(case["expected"]["fitError"])
    assert _without_hours(by_request) == _without_hours(explanation)
    assert _without_hours(by_command) == _without_hours(explanation)
    assert for_people(explanation.message) in html.unescape(page)
    for victim in explanation.preemption.victims if explanation.preemption is not None else ():
        assert victim.pod.name in page
    if (
        trial is not None
        and explanation.preemption is not None
        and explanation.preemption.node
        and trial.placements[0].preemption is not None
    ):
        assert _without_hours(trial.placements[0].preemption.victims) == _without_hours(explanation.preemption.victims)
        tally.compared.append(name)
    if (case["expected"]["preemption"] or {}).get("bestSet"):
        tally.preempting.append(name)


def _without_hours(answer: object) -> Any:
    """An answer without the GPU-hours of running pods, which grow from one question to the next."""

    def trimmed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: trimmed(member) for name, member in value.items() if not name.startswith("gpuHours")}
        return [trimmed(item) for item in value] if isinstance(value, list | tuple) else value

    return trimmed(msgspec.to_builtins(answer))


def _is_gated(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


async def _not_asked(scenario: object) -> dict[str, Any]:
    raise AssertionError("no scenario is evaluated")


async def _asked(
    application: Starlette, questions: Questions, namespace: str, name: str, pod: dict[str, Any]
) -> tuple[Explanation, str, WhatIf | None]:
    application.state.service = ServiceState(
        Backend(make_verbs(ClusterState()), _not_asked, make_questions=lambda: questions)
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://localhost") as client:
        by_request = await client.get(f"/v1/explain/{namespace}/{name}")
        page = await client.get(f"/ui/pods/{namespace}/{name}")
        other = {**pod, "metadata": {**pod["metadata"], "name": "another", "uid": "another"}}
        trial = await client.post("/v1/whatif", json={"create": [other]}, headers={"Content-Type": "application/json"})
    assert by_request.status_code == 200, by_request.text
    assert page.status_code == 200, page.text
    what_if = msgspec.json.decode(trial.content, type=WhatIf) if trial.status_code == 200 else None
    return msgspec.json.decode(by_request.content, type=Explanation), page.text, what_if


def _by_command(objects: dict[str, list[Any]], config: Any, pod: str, folder: Path) -> Explanation:
    dump, arguments = folder / "cluster.json", ["why", pod, "-o", "json"]
    items = [
        {"apiVersion": "v1", "kind": NAME_OF_KIND[name], **item} for name, listed in objects.items() for item in listed
    ]
    # Of a file without any Event it is said that those of the pod are not known.
    state_file(dump, *items, _EVENT)
    if config is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        arguments += ["--config", str(folder / "config.yaml")]
    result = CliRunner().invoke(command, [*arguments, "--dump", str(dump)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    # Every node's verdict comes with it, and what Events say, which the questions above have not been given.
    explanation = msgspec.json.decode(result.stdout, type=Explanation)
    notes = tuple(note for note in explanation.notes if not note.startswith("no Events of the claim "))
    return msgspec.structs.replace(explanation, picture=None, events=None, notes=notes)
