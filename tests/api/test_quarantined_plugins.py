"""What operators see of a plugin that is not called, because too many of its calls failed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from api.app import create_app
from api.service_state import ServiceState
from api.settings.settings import Settings
from extender.assembly.backend import Backend
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import Configuration
from tests.api.fake_engines import FailingEngine
from tests.kit.service import serving_app


def test_a_quarantined_plugin_is_named_under_healthz_and_does_not_end_the_process() -> None:
    reasons: list[str] = []
    engine: Any = FailingEngine(ValueError())
    backend = Backend(engine, partial(evaluate_scenario, configuration=Configuration()), quarantined=lambda: reasons)

    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        yield ServiceState(backend)

    settings = Settings(port=0)
    with serving_app(create_app(settings, lambda _: opened), settings) as service:
        assert service.client.get("/healthz/plugins").text == "ok"

        reasons.append("GpuGeneration: the plugin is quarantined until 00:00:10")

        answer = service.client.get("/healthz/plugins")
        assert (answer.status_code, answer.text) == (
            500,
            "internal server error: GpuGeneration: the plugin is quarantined until 00:00:10\n",
        )
        assert [service.client.get(path).status_code for path in ("/healthz", "/livez", "/readyz")] == [200, 200, 200]
