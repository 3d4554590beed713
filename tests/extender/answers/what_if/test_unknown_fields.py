"""Manifests with fields that no API server knows are refused, in an API server's words: misspelt demands are none."""

from typing import Any

import pytest

from extender.answers.types import QuestionError
from tests.extender.answers.what_if.test_what_if import ask, node
from tests.kit.cluster import cluster_of

SPEC: dict[str, Any] = {
    "nodeSelektor": {"a": "b"},
    "containers": [{"name": "c", "image": "x", "resuorces": {"requests": {"cpu": 64}}}],
}


def manifest(api_version: str, kind: str, spec: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, **parts}


def of_pods(**spec: Any) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": {"app": "x"}}, "spec": spec}}


def unknown_in(path: str) -> list[str]:
    return [f"{path}.containers[0].resuorces", f"{path}.nodeSelektor"]


SELECTOR = {"selector": {"matchLabels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        (manifest("v1", "Pod", SPEC), unknown_in("spec")),
        (
            manifest("apps/v1", "Deployment", {"replicas": 1, **SELECTOR, **of_pods(**SPEC)}),
            unknown_in("spec.template.spec"),
        ),
        (manifest("apps/v1", "DaemonSet", {**SELECTOR, **of_pods(**SPEC)}), unknown_in("spec.template.spec")),
        (manifest("batch/v1", "Job", of_pods(**SPEC)), unknown_in("spec.template.spec")),
        (
            manifest("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": of_pods(**SPEC)}}),
            unknown_in("spec.jobTemplate.spec.template.spec"),
        ),
        (manifest("policy/v1", "PodDisruptionBudget", {"minAvailabel": 1, **SELECTOR}), ["spec.minAvailabel"]),
        (manifest("v1", "Node", {}, status={"alocatable": {"cpu": "4"}}), ["status.alocatable"]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_unknown_fields_are_refused_in_the_words_of_an_api_server(obj: dict[str, Any], paths: list[str]) -> None:
    """Of kinds that our own API does not serve, the pods are known."""
    with pytest.raises(QuestionError) as refused:
        ask(cluster_of(node("n")), obj)

    kind, version = obj["kind"], obj["apiVersion"].rpartition("/")[2]
    errors = set(str(refused.value).partition("strict decoding error: ")[2].split(", "))
    assert f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: ' in str(refused.value)
    assert errors == {f'unknown field "{path}"' for path in paths}


@pytest.mark.parametrize(
    "of_a_server",
    [{"resourceVersion": "7"}, {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}],
    ids=["version", "uid"],
)
def test_objects_of_a_newer_server_may_have_newer_fields(of_a_server: dict[str, Any]) -> None:
    pod = manifest("v1", "Pod", {"colour": "red", "containers": [{"name": "c", "image": "x"}]})

    answer = ask(cluster_of(node("n")), {**pod, "metadata": {**pod["metadata"], **of_a_server}})

    assert [placement.node for placement in answer.placements] == ["n"]


def test_fields_of_what_means_nothing_to_a_scheduler_are_not_looked_at() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dada": {}}
    job = manifest(
        "batch/v1",
        "Job",
        {"managedBy": "x", "newer": 1, **of_pods(restartPolicy="Never", containers=[{"name": "c", "image": "x"}])},
    )

    assert [placement.node for placement in ask(cluster_of(node("n")), config_map, job).placements] == ["n"]
