"""The metrics of the verbs: what was asked, how it came out, how long it took, and why nodes were rejected."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from api.verb_metrics import VerbMetrics
from extender.values import limits
from tests.kit.service import Service, serving

SMALL = {"metadata": {"name": "web", "namespace": "default", "uid": "1"}, "spec": {"containers": [{"name": "c"}]}}
LARGE = {
    "metadata": {"name": "large", "namespace": "default", "uid": "2"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000"}}}]},
}
NODES = ["node-a1", "node-b1", "no-such-node"]


def samples(service: Service) -> dict[str, float]:
    """Every sample whose name begins with reprieve_verb, as `name{label values in the order of the labels' names}`."""
    families = text_string_to_metric_families(service.client.get("/metrics").text)
    return {
        f"{sample.name}{{{','.join(sample.labels[name] for name in sorted(sample.labels))}}}": sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("reprieve_verb")
    }


def test_each_call_is_counted_by_its_result() -> None:
    with serving(schedule=False) as service:
        before = samples(service)
        service.call("filter", {"Pod": LARGE, "NodeNames": NODES})
        service.call("filter", {"Pod": LARGE})
        service.call("filter", b"[]")
        service.call("prioritize", {"Pod": SMALL, "NodeNames": NODES[:2]})
        service.call("bind", {"PodName": "web", "PodNamespace": "default", "PodUID": "1", "Node": "node-a1"})
        after = samples(service)

    assert before.get("reprieve_verb_requests_total{answered,filter}") is None
    assert {name: value for name, value in after.items() if "_requests_total" in name} == {
        "reprieve_verb_requests_total{answered,filter}": 1,
        # Neither nodes nor their names.
        "reprieve_verb_requests_total{error,filter}": 1,
        "reprieve_verb_requests_total{refused,filter}": 1,
        "reprieve_verb_requests_total{answered,prioritize}": 1,
        # It is not served.
        "reprieve_verb_requests_total{refused,bind}": 1,
    }
    assert after["reprieve_verb_duration_seconds_count{filter}"] == 3
    assert after["reprieve_verb_nodes_sum{filter}"] == 3
    assert after["reprieve_verb_request_bytes_sum{filter}"] > 200
    assert after["reprieve_verb_response_bytes_sum{prioritize}"] > 20


def test_rejected_nodes_are_counted_by_reason() -> None:
    with serving(schedule=False) as service:
        service.call("filter", {"Pod": LARGE, "NodeNames": NODES})
        service.call("filter", {"Pod": LARGE, "NodeNames": NODES})
        rejected = {name: value for name, value in samples(service).items() if "rejected" in name}

    assert rejected == {
        "reprieve_verb_rejected_nodes_total{Insufficient cpu}": 4,
        "reprieve_verb_rejected_nodes_total{node not known to the extender yet}": 2,
    }


def test_reasons_take_a_bounded_number_of_series() -> None:
    metrics = VerbMetrics()

    metrics.rejected(f"no licence on rack {number}" for number in range(5 * limits.METRIC_REASONS))

    (family,) = (family for family in metrics.collect() if family.name == "reprieve_verb_rejected_nodes")
    assert len(family.samples) == limits.METRIC_REASONS + 1
    assert sum(sample.value for sample in family.samples) == 5 * limits.METRIC_REASONS


def test_one_can_be_left_out() -> None:
    settings: dict[str, Any] = {"disabled_metrics": "reprieve_verb_nodes, reprieve_verb_requests_total"}
    with serving(schedule=False, **settings) as service:
        service.call("filter", {"Pod": SMALL, "NodeNames": NODES})
        names = {name.partition("{")[0] for name in samples(service)}

    assert not {name for name in names if name.startswith(("reprieve_verb_nodes", "reprieve_verb_requests"))}
    assert "reprieve_verb_duration_seconds_count" in names
