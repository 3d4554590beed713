"""The forms in which objects are asked for: as they are, as a table, or only their metadata."""

import json
from datetime import UTC, datetime

from extender.rules.api_resources import PODS
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests.request_info import Form
from reprieve.cluster.responses.response import Presenter
from tests.kit.tables import cases
from tests.reprieve.cluster.api_calls import PODS_PATH, add_pod, ask, make_api


def api_with_a_pod() -> KubeApi:
    api = make_api()
    add_pod(api, "a")
    return api


@cases(
    "form, one, several",
    ("plain", "application/json", "Pod", "PodList"),
    ("a table", "application/json;as=Table;g=meta.k8s.io;v=v1", "Table", "Table"),
    ("metadata", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "PartialObjectMetadata", ""),
    (
        "metadata of a list",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "",
        "PartialObjectMetadataList",
    ),
)
def test_an_answer_has_the_form_that_is_asked_for(form: str, one: str, several: str) -> None:
    api = api_with_a_pod()

    if one:
        assert ask(api, "GET", f"{PODS_PATH}/a", accept=form)[1]["kind"] == one
    if several:
        assert ask(api, "GET", PODS_PATH, accept=form)[1]["kind"] == several


@cases(
    "form, kind",
    ("plain", Form(), "Pod"),
    ("a table", Form("Table", "meta.k8s.io/v1"), "Table"),
    ("metadata", Form("PartialObjectMetadata", "meta.k8s.io/v1"), "PartialObjectMetadata"),
)
def test_a_bookmark_has_the_form_of_the_watch(form: Form, kind: str) -> None:
    presenter = Presenter(PODS, form, "", lambda: datetime.now(UTC))

    bookmark = json.loads(presenter.bookmark({"kind": "Pod", "metadata": {"resourceVersion": "5"}}))

    assert (bookmark["kind"], bookmark["metadata"]["resourceVersion"]) == (kind, "5")
