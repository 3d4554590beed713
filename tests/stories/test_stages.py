"""The way from a story to an API server, with a kube-apiserver that only pretends."""

from pathlib import Path

import pytest

from extender.rules.api_resources import PODS, Object, Resource
from tests.kit.control_plane import ControlPlane
from tests.kit.scene.passing_time import kubelets_act
from tests.kit.scene.remote import NotFoundError, RemoteApi
from tests.kit.stand_ins import pretending


def test_a_kube_apiserver_is_asked_by_its_certificate_and_with_a_token(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    with ControlPlane.start(pretending(tmp_path), work) as plane:
        api = RemoteApi(plane.target())
        answer = api.get(PODS, "default", "p")
        api.close()

    assert answer == {"kind": "Answer", "path": "/api/v1/namespaces/default/pods/p", "user": "admin"}


class Kubeless:
    """An API server that lists a pod which is gone by the time that somebody acts on it."""

    def __init__(self, **meta: str) -> None:
        self._pod = {
            "metadata": {"namespace": "default", "name": "gone", **meta},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Pending"},
        }

    def list(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        return [self._pod]

    def get(self, *args: object, **more: object) -> Object:
        raise NotFoundError('pods "gone" not found')

    create = update = delete = get


@pytest.mark.parametrize("meta", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}], ids=["starts", "leaves"])
def test_a_kubelet_does_not_mind_that_its_pod_is_gone(meta: dict[str, str]) -> None:
    assert kubelets_act(Kubeless(**meta))
