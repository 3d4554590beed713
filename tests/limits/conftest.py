"""The service of the pages and the commands."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest

from api.app import create_app
from api.service_state import ServiceState
from api.settings.settings import Settings
from api.starting import Opens, opens
from extender.answers.parts import PodName
from extender.values.config.configuration import Configuration
from reprieve.lab.shadow import Shadow
from tests.extender.answers.records.test_record_store import attempt, preemption
from tests.kit.service import Service, serving_app
from tests.limits.of_lab import difference
from tests.limits.rows import RECORDED


@pytest.fixture(scope="package")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for the example cluster, with so many attempts, preemptions and differences from a shadow."""
    records = tmp_path_factory.mktemp("records") / "records"
    records.write_bytes(b"".join(_recorded(number) for number in range(1, RECORDED + 1)))
    chosen = Settings(port=0, schedule=False, records=records)
    with serving_app(create_app(chosen, _with_a_shadow), chosen) as service:
        yield service


def _recorded(number: int) -> bytes:
    """An attempt, and a preemption for a pod that is on the node."""
    then = time.time() - 10 * (RECORDED - number) - 5
    cart = PodName("shop", "cart-0", "f281f980-1190-5150-94f5-261cab4f68a5", 100)
    attempted = msgspec.structs.replace(attempt(number), time=then)
    preempted = msgspec.structs.replace(preemption(number, "low"), time=then, by=cart, node="node-a2")
    return msgspec.json.encode(attempted) + b"\n" + msgspec.json.encode(preempted) + b"\n"


def _with_a_shadow(settings: Settings) -> Opens:
    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        async with opens(settings)() as state:
            shadow = Shadow(Configuration())
            for number in range(RECORDED):
                shadow.tally.differed(difference(number), "", ())
            yield replace(state, shadow=shadow)

    return opened
