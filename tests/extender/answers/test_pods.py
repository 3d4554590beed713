"""What a pod asks for in all."""

import pytest

from extender.answers.pods import requested
from extender.testing.builders import PodBuilder, make_pod


@pytest.mark.parametrize(
    ("pod", "asks"),
    [
        pytest.param(make_pod().req(cpu="500m", memory="1Gi").req(cpu="1"), {"cpu": "1500m", "memory": "1Gi"}, id="containers add up"),
        pytest.param(make_pod().req(cpu="1").init_req(cpu="3"), {"cpu": "3"}, id="the largest of what runs before them"),
        pytest.param(make_pod().req(cpu="1").overhead(cpu="100m"), {"cpu": "1100m"}, id="with overhead"),
        pytest.param(make_pod(), {}, id="nothing"),
        pytest.param(make_pod().req(cpu="much"), {}, id="what cannot be read"),
    ],
)
def test_requests(pod: PodBuilder, asks: dict[str, str]) -> None:
    assert requested(pod.obj()) == asks
