"""openapi.json is current, complete, and its examples can be sent as they are."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from reprieve.lab.extender_schema import PATH
from tests.kit.service import Service
from tools.generate_openapi import document_text

FILE = Path(__file__).parents[2] / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text())
EXAMPLES = [
    pytest.param(path, example["value"], id=f"{path} {name}")
    for path, methods in DOCUMENT["paths"].items()
    for operation in methods.values()
    for name, example in operation.get("requestBody", {})
    .get("content", {})
    .get("application/json", {})
    .get("examples", {})
    .items()
]


def test_the_file_is_current() -> None:
    assert document_text() == FILE.read_text(), "run `make docs`"


def test_the_service_tells_the_same(example: Service) -> None:
    assert example.client.get("/openapi.json").json() == DOCUMENT


def test_no_description_keeps_the_indentation_of_a_docstring() -> None:
    """Python 3.13 and later take it out of docstrings, earlier ones leave it in."""
    described = {
        name: schema["description"]
        for name, schema in DOCUMENT["components"]["schemas"].items()
        if "description" in schema
    }

    assert any("\n\n" in text for text in described.values())
    assert [name for name, text in described.items() if "\n " in text] == []


@pytest.mark.parametrize(
    ("schema", "field", "words"),
    [
        ("Capacity", "isLimit", "whether counting stopped at the limit of the question, not of the cluster."),
        ("PreemptionAnswer", "notHelpful", "why evictions of pods of lower priority do not help on other nodes."),
        ("Victim", "gpuHours", "GPU time that its eviction loses: its GPUs times the hours since its last checkpoint, "
         "or its start."),
    ],
)  # fmt: skip
def test_fields_have_the_words_of_their_attributes(schema: str, field: str, words: str) -> None:
    assert DOCUMENT["components"]["schemas"][schema]["properties"][field]["description"] == words


def test_attributes_are_told_of_fields_alone() -> None:
    described = [schema.get("description", "") for schema in DOCUMENT["components"]["schemas"].values()]

    assert [text for text in described if "Attributes:" in text] == []


def test_every_reference_leads_somewhere() -> None:
    text = FILE.read_text()
    schemas = DOCUMENT["components"]["schemas"]

    referred = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}

    assert referred <= set(schemas)
    assert {
        "ExtenderArgs",
        "ExtenderFilterResult",
        "HostPriority",
        "ExtenderPreemptionArgs",
        "ExtenderBindingArgs",
    } <= referred
    assert {"Pod", "Node"} <= referred


@pytest.mark.parametrize(
    ("schema", "members"),
    [
        ("ExtenderArgs", {"Pod", "Nodes", "NodeNames"}),
        ("ExtenderFilterResult", {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}),
        ("HostPriority", {"Host", "Score"}),
        ("ExtenderPreemptionArgs", {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}),
        ("ExtenderPreemptionResult", {"NodeNameToMetaVictims"}),
        ("MetaVictims", {"Pods", "NumPDBViolations"}),
        ("MetaPod", {"UID"}),
        ("ExtenderBindingArgs", {"PodName", "PodNamespace", "PodUID", "Node"}),
        ("ExtenderBindingResult", {"Error"}),
        ("NodeList", {"metadata", "items"}),
    ],
)
def test_members_have_the_names_that_go_gives_them(schema: str, members: set[str]) -> None:
    assert set(DOCUMENT["components"]["schemas"][schema]["properties"]) == members


@pytest.mark.parametrize(("path", "body"), EXAMPLES)
def test_examples_can_be_sent_as_they_are(example: Service, path: str, body: object) -> None:
    answer = example.post(path, body)

    assert answer.status_code == 200
    if path.endswith("preempt"):
        assert answer.json()["NodeNameToMetaVictims"]["node-a2"]["Pods"]


def test_there_are_examples_for_every_body() -> None:
    with_body = {path for path, methods in DOCUMENT["paths"].items() if "post" in methods}

    verbs = {f"/extender/{verb}" for verb in ("filter", "prioritize", "preempt", "bind")}
    assert with_body == verbs | {"/v1/evaluate", "/v1/whatif", "/v1/plan", "/v1/capacity", "/v1/explain"}
    assert {example.values[0] for example in EXAMPLES} == with_body


def test_reader_finds_the_extender_first() -> None:
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    used = {tag for methods in DOCUMENT["paths"].values() for method in methods.values() for tag in method["tags"]}

    assert tags == ["extender", "questions", "health", "operation"]
    assert used == set(tags)


def test_document_says_how_callers_are_known_and_under_which_licence_it_is() -> None:
    kinds = {name: scheme["type"] for name, scheme in DOCUMENT["components"]["securitySchemes"].items()}

    assert kinds == {"token": "http", "certificate": "mutualTLS"}
    assert DOCUMENT["security"] == [{"token": []}, {"certificate": []}, {}]
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"


@pytest.mark.parametrize("path", ["/flagz", "/statusz", "/schemas/extender/v1"])
def test_paths_for_people_who_look_into_the_process_are_described(example: Service, path: str) -> None:
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]

    assert example.client.get(path).headers["content-type"].partition(";")[0] in content


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        pytest.param(path, methods["get"], id=path)
        for path, methods in DOCUMENT["paths"].items()
        if "get" in methods and path != PATH
    ],
)
def test_every_answer_to_a_get_has_an_example_of_its_form(path: str, operation: dict[str, Any]) -> None:
    (content,) = operation["responses"]["200"]["content"].values()
    names_with_example = {parameter["name"] for parameter in operation.get("parameters", ()) if "example" in parameter}

    assert content.get("example"), "run `python -m tools.generate_answers`"
    if content["schema"] != {"type": "string"}:
        schema = {**_closed(content["schema"]), "components": _closed(DOCUMENT["components"])}
        jsonschema_rs.Draft202012Validator(schema).validate(content["example"])
    assert set(re.findall(r"{(\w+)}", path)) <= names_with_example


def _closed(schema: Any) -> Any:
    """The schema, by which members that it does not name are wrong."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: _closed(member) for name, member in schema.items()}
    return {"additionalProperties": False, **copy} if "properties" in copy and copy.get("type") == "object" else copy


def test_the_page_for_people_loads_nothing_but_what_the_service_sends(example: Service) -> None:
    page = example.client.get("/docs")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert [example.client.get(f"/{path}").status_code for path in loaded] == [200, 200, 200]
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}'" in page.headers["content-security-policy"]
    assert example.client.get("/docs/secrets.txt").status_code == 404


@pytest.mark.parametrize("path", ["/", "/ui/nodes", "/v1/cluster", "/docs", "/healthz"])
def test_head_answers_as_get_without_a_body(example: Service, path: str) -> None:
    answer = example.client.head(path)

    assert (answer.status_code, answer.content) == (200, b"")


def test_head_of_what_never_ends_is_refused(example: Service) -> None:
    assert example.client.head("/v1/stream").status_code == 405


@pytest.mark.parametrize(("path", "encoding"), [("/", "gzip"), ("/ui/cells", "gzip"), ("/v1/cluster", None)])
def test_pages_are_sent_compressed(example: Service, path: str, encoding: str | None) -> None:
    plain = example.client.get(path, headers={"Accept-Encoding": "identity"})
    compressed = example.client.get(path, headers={"Accept-Encoding": "gzip, br"})

    assert ("content-encoding" in plain.headers, compressed.headers.get("content-encoding")) == (False, encoding)
    assert len(plain.content) == len(compressed.content) or path == "/"  # the first page tells the time
