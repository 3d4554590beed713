"""An embedded API with empty nodes and a backlog of pods, for `uvicorn --factory`."""

import os
from datetime import UTC, datetime

from starlette.types import ASGIApp

from api.kubernetes import KubernetesApp
from bench.backlog import node, pod
from extender.rules.api_resources import NODES, PODS
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry


def make() -> ASGIApp:
    """The application; what it holds is in the environment."""
    registry = make_registry("default", "kube-system", now=lambda: datetime.now(UTC))
    for number in range(int(os.environ["NUM_NODES"])):
        registry.create(NODES, "", node(number))
    for number in range(int(os.environ["NUM_PODS"])):
        registry.create(PODS, "default", pod(number, os.environ["SHAPE"]))
    return KubernetesApp(KubeApi(registry))
