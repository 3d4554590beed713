"""Lists with as many terms as a URL holds, among thousands of objects, keep nobody from being answered."""

import json
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.hostile.test_pods import shop

NUM_OBJECTS = 5000
NUM_TERMS = 3000
EVENTS = "/api/v1/namespaces/shop/events"
JSON = {"content-type": "application/json"}


def labels(term: str) -> str:
    return "labelSelector=" + ",".join(term.format(number) for number in range(NUM_TERMS))


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        pytest.param("GET", f"{EVENTS}?{labels('app!=web-{}')}", None, id="values of one label"),
        pytest.param("GET", f"{EVENTS}?{labels('a{}!=x')}", None, id="labels that no object has"),
        pytest.param("GET", f"{EVENTS}?fieldSelector={','.join(['reason!=None'] * NUM_TERMS)}", None, id="fields"),
        pytest.param(
            "GET", f"{EVENTS}?watch=1&timeoutSeconds=1&{labels('app!=web-{}')}", None, id="a watch with what is there"
        ),
        pytest.param("DELETE", f"{EVENTS}?{labels('app!=web-{}')}", {"dryRun": ["All"]}, id="a deletion"),
    ],
)
def test_a_selector_of_thousands_of_terms_stops_nobody(method: str, url: str, body: object, tmp_path: Path) -> None:
    state = tmp_path / "cluster.json"
    reference = {"kind": "Pod", "namespace": "shop", "name": "web"}
    events = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"e{number}", "namespace": "shop", "labels": {"app": "db"}},
            "involvedObject": reference,
        }
        for number in range(NUM_OBJECTS)
    ]
    state.write_text(json.dumps(shop(*events)))

    with serving(loop="asyncio", state=state, schedule=False) as service:
        content = b"" if body is None else json.dumps(body).encode()
        answer = service.client.request(method, url, content=content, headers=JSON)

    assert answer.status_code == 200
    assert len(answer.content) > NUM_OBJECTS * 50, "all of them are selected"
