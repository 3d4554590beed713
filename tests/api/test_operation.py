"""What those who operate a scheduler ask it: metrics, and the configuration in force."""

from prometheus_client.parser import text_string_to_metric_families

from extender.config import Configuration, written
from tests.api.serving import Service


def test_metrics_are_in_prometheus_text_format(example: Service) -> None:
    answer = example.client.get("/metrics")

    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert families["reprieve_reflector_lists"].type == "counter"
    assert families["reprieve_reflector_synced"].samples[0].value == 1


def test_configz_spells_out_the_configuration_in_force(example: Service) -> None:
    assert example.client.get("/configz").json() == {"componentconfig": written(Configuration.default())}
