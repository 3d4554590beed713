"""What those who operate a scheduler ask it: metrics, and the configuration in force."""

import logging
import re
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from extender import __version__
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from tests.api.fake_engines import FailingEngine
from tests.kit.service import Service, assert_is_refusal, serving

TEXT = {"Content-Type": "text/plain"}


def test_metrics_are_in_prometheus_text_format(example: Service) -> None:
    answer = example.client.get("/metrics")

    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert families["reprieve_reflector_lists"].type == "counter"
    assert families["reprieve_reflector_synced"].samples[0].value == 1


def test_configz_spells_out_the_configuration_in_force(example: Service) -> None:
    answer = example.client.get("/configz").json()

    assert answer["componentconfig"] == written(Configuration())
    assert answer["featureGates"]["SchedulerQueueingHints"] is True


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) -> value."""
    items = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in items}


def test_health_checks_are_counted_for_slis(example: Service) -> None:
    for path in ("/readyz", "/readyz/ping", "/livez"):
        assert example.client.get(path).text == "ok"

    values = samples(example.client.get("/metrics/slis").text)
    assert values["kubernetes_healthcheck", "ping", "livez"] == 1
    assert values["kubernetes_healthcheck", "informer-sync", "readyz"] == 1
    assert values["kubernetes_healthchecks_total", "ping", "success", "readyz"] >= 2


def test_a_check_that_fails_is_counted_too() -> None:
    with serving(lambda _: FailingEngine(RuntimeError(), is_ready=False)) as service:
        service.client.get("/readyz")

        values = samples(service.client.get("/metrics/slis").text)
    assert values["kubernetes_healthcheck", "informer-sync", "readyz"] == 0
    assert values["kubernetes_healthchecks_total", "informer-sync", "error", "readyz"] == 1


def test_resource_requests_are_exported_by_pod_and_resource(twelve_nodes: Service) -> None:
    values = samples(twelve_nodes.client.get("/metrics/resources").text)

    requests = {key: value for key, value in values.items() if key[0] == "kube_pod_resource_request"}
    assert requests
    # In the order of their names: namespace, node, pod, priority, resource, scheduler, unit.
    assert {key[5:] for key in requests} >= {("cpu", "default-scheduler", "cores")}
    assert all(value > 0 for value in requests.values())


@pytest.fixture
def levels() -> Iterator[None]:
    yield
    for name in ("extender", "api"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("levels")
def test_verbosity_of_the_log_can_be_changed(example: Service) -> None:
    answer = example.client.put("/debug/flags/v", content=b"5", headers=TEXT)

    assert (answer.status_code, answer.text) == (200, "successfully set klog.logging.verbosity to 5\n")
    assert logging.getLogger("extender.engine.scheduler.scheduler").isEnabledFor(logging.INFO - 5)
    assert not logging.getLogger("extender.engine.scheduler.scheduler").isEnabledFor(logging.INFO - 6)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("body", [b"", b"x", b"-1", b"9" * 100, b"1\n2", b"\xff"])
def test_verbosity_that_is_no_number_is_refused(example: Service, body: bytes) -> None:
    answer = example.client.put("/debug/flags/v", content=body, headers=TEXT)

    assert answer.status_code == 400
    assert answer.text.startswith("failed set klog.logging.verbosity ")
    assert answer.text.count("\n") == 1


def test_verbosity_cannot_be_set_without_profiling() -> None:
    with serving(schedule=False, profiling=False) as service:
        assert_is_refusal(service.client.put("/debug/flags/v", content=b"5", headers=TEXT), 404)


def test_flagz_shows_what_is_set(example: Service) -> None:
    lines = example.client.get("/flagz").text.splitlines()

    assert lines[1:3] == [
        "reprieve flagz",
        "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and "
        "is for debugging "
        "purposes only.",
    ]
    assert {"schedule=false", "v=0", "pod-max-in-unschedulable-pods-duration=5m0s", "config="} <= set(lines)


def test_statusz_shows_which_version_runs_since_when(example: Service) -> None:
    text = example.client.get("/statusz").text

    assert text.startswith("\nreprieve statusz\nWarning: ")
    assert f"Binary version: {__version__}\nEmulation version: 1.36\n" in text
    assert re.search(r"^Up: \d+ hr \d\d min \d\d sec$", text, re.MULTILINE)
