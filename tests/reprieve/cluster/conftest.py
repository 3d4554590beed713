import pytest

from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import make_api


@pytest.fixture
def api() -> KubeApi:
    """An API with the namespace `default` and nothing in it."""
    return make_api()
