"""Objects are read as Go reads and writes them: what is kept, what is filled in, what is refused and with which
words.
"""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from extender.rules.api_resources import NODES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES, RESOURCES, of_kind
from extender.rules.schema import api_types
from extender.values.golang.json import JsonError, parse_json
from extender.values.golang.schema import Kind, ListOf, MapOf, Scalar, Struct, type_meta
from tests.kit.tables import cases

HERE = Path(__file__)
TRANSCRIPT = json.loads((HERE.parents[3] / "reprieve" / "cluster" / "transcript.json").read_text())
CASES = HERE.parents[3] / "parity" / "cases"
ANSWERED = [
    pytest.param(body, id=name)
    for name, call in TRANSCRIPT.items()
    if isinstance(body := (call.get("response") or {}).get("body"), dict)
    and of_kind(body.get("apiVersion", ""), body.get("kind", ""))
]
LISTS = {"pods": PODS, "nodes": NODES, "pdbs": POD_DISRUPTION_BUDGETS, "priorityClasses": PRIORITY_CLASSES}

SCALARS = {
    Kind.STRING: ["", "a"],
    Kind.BOOL: [True, False],
    Kind.INT32: [0, -1],
    Kind.INT64: [0, 1 << 40],
    Kind.BYTES: ["", "YQ=="],
    Kind.QUANTITY: ["0", "1000m", 2],
    Kind.TIME: ["2026-11-20T10:00:00Z"],
    Kind.MICRO_TIME: ["2026-11-20T10:00:00.000000Z"],
    Kind.DURATION: ["1h0m0s"],
    Kind.INT_OR_STRING: [0, "25%"],
}


def read_pod(**spec):
    return api_types.read(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}})


@pytest.mark.parametrize("body", ANSWERED)
def test_objects_recorded_from_a_real_server_round_trip_unchanged(body):
    """Every field is known, nothing is lost or added, and the order of the fields is that of the server."""
    resource = of_kind(body["apiVersion"], body["kind"])
    assert resource is not None

    obj, problems = api_types.read(resource, body)

    assert problems == []
    assert json.dumps(obj) == json.dumps(body)


@pytest.mark.parametrize("name", ["mixed", "volumes", "interpod"])
def test_recorded_clusters_have_no_unknown_fields(name):
    with gzip.open(CASES / f"{name}.jsonl.gz") as lines:
        situations = [json.loads(line)["scenario"]["objects"] for _, line in zip(range(5), lines, strict=False)]

    read = [
        api_types.read(LISTS[kind], obj) for objects in situations for kind in LISTS for obj in objects.get(kind, ())
    ]

    assert read
    assert [problems for _, problems in read if problems] == []


@cases(
    "spec, stored",
    ("an empty text says nothing", {"nodeName": ""}, {}),
    ("nor does false", {"hostNetwork": False}, {}),
    ("nor an empty list", {"tolerations": []}, {}),
    ("nor an empty map", {"nodeSelector": {}}, {}),
    ("null is absent", {"priority": None}, {}),
    ("a zero that was given where absence means something else", {"priority": 0}, {"priority": 0}),
    ("an empty struct behind a pointer", {"securityContext": {}}, {"securityContext": {}}),
    ("maps are sorted", {"nodeSelector": {"b": "1", "a": "2"}}, {"nodeSelector": {"a": "2", "b": "1"}}),
)
def test_empty_fields(spec, stored):
    obj, problems = read_pod(**spec)

    assert problems == []
    assert {name: value for name, value in obj["spec"].items() if name != "containers"} == stored


def test_fields_that_are_always_written():
    """Go writes structs that are no pointers, and fields without omitempty, even if nobody set them."""
    node, _ = api_types.read(NODES, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    assert node["spec"] == {}
    assert node["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}
    ]
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


@pytest.mark.parametrize(
    ("quantity", "canonical"),
    [("1000m", "1"), (0.5, "500m"), (2, "2"), ("1024Mi", "1Gi"), ("1e3", "1e3"), (" 1Gi ", "1Gi"), ("0.0001", "100u")],
)
def test_quantities_are_written_in_canonical_form(quantity, canonical):
    obj, _ = read_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": quantity}}}])

    assert obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": canonical}


def test_times_are_written_in_utc():
    obj, _ = api_types.read(PODS, {"metadata": {"creationTimestamp": "2026-11-20T12:00:00.7+02:00"}})

    assert obj["metadata"]["creationTimestamp"] == "2026-11-20T10:00:00Z"


def test_strict_problems_name_their_place():
    """Unknown and repeated fields are named with list indices, in the order in which they stand."""
    body = """{
        "spec": {"foo": 1, "containers": [{"name": "a"}, {"name": "b", "name": "c", "bar": 2}]},
        "baz": 3,
        "metadata": {"labels": {"x": "1", "x": "2"}}
    }"""

    obj, problems = api_types.read(PODS, parse_json(body))

    assert problems == [
        'unknown field "spec.foo"',
        'duplicate field "spec.containers[1].name"',
        'unknown field "spec.containers[1].bar"',
        'unknown field "baz"',
        'duplicate field "metadata.labels.x"',
    ]
    assert obj["spec"]["containers"][1] == {"name": "c", "resources": {}}
    assert obj["metadata"]["labels"] == {"x": "2"}


@pytest.mark.parametrize("seed", range(3))
def test_reading_again_changes_nothing(seed):
    """What was read can be stored and read again, null or empty as its parts may be."""
    rng = random.Random(seed)
    for resource in RESOURCES:
        obj, problems = api_types.read(resource, random_value(api_types.type_of(resource), rng))
        reread, _ = api_types.read(resource, obj)

        assert problems == []
        assert reread == obj, f"seed {seed}"


def random_value(schema, rng):
    """Something that fits a type, now and then null."""
    if isinstance(schema, Struct):
        chosen = {name: field for name, field in schema.fields.items() if rng.random() < 0.4}
        return {name: None if rng.random() < 0.1 else random_value(field.type, rng) for name, field in chosen.items()}
    if isinstance(schema, ListOf):
        return [random_value(schema.item, rng) for _ in range(rng.randrange(3))]
    if isinstance(schema, MapOf):
        return {key: random_value(schema.value, rng) for key in rng.sample(["a", "b", "cpu"], rng.randrange(3))}
    return rng.choice(SCALARS[schema.kind]) if isinstance(schema, Scalar) else {"x": 1}


def test_field_names_are_case_sensitive():
    _, problems = read_pod(NodeName="n")

    assert problems == ['unknown field "spec.NodeName"']


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"nodeName": 5}, "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string"),
        (
            {"containers": "x"},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": [{"name": True}]},
            "json: cannot unmarshal bool into Go struct field Container.spec.containers.name of type string",
        ),
        (
            {"nodeSelector": {"a": 1}},
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string",
        ),
        (
            {"nodeSelector": []},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            {"restartPolicy": {}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            {"priority": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"priority": 1 << 31},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"affinity": []},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.affinity of type v1.Affinity",
        ),
        (
            {"nodeName": 5, "overhead": {"cpu": "x"}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_wrong_types_are_refused_in_the_words_of_go(spec, text):
    """The first wrong type counts, unless a type that reads itself gives up."""
    with pytest.raises(JsonError) as refusal:
        read_pod(**spec)

    assert str(refusal.value) == text


def test_a_count_or_share_of_the_wrong_type():
    with pytest.raises(JsonError) as refusal:
        api_types.read(POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": True}})

    assert (
        str(refusal.value)
        == "json: cannot unmarshal bool into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32"
    )


def test_list_has_no_kind_and_is_refused_as_a_real_server_does():
    with pytest.raises(
        JsonError, match="couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value"
    ) as refusal:
        type_meta(["not a pod"])

    assert str(refusal.value) in TRANSCRIPT["pod-create-malformed-400"]["response"]["body"]["message"]


def test_reading_leaves_the_given_object_alone():
    source: Any = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]}, "status": None}
    before = json.dumps(source)

    obj, _ = api_types.read(PODS, source)

    assert json.dumps(source) == before
    assert obj["status"] == {}


def test_numbers_that_are_none_in_json_are_refused():
    with pytest.raises(ValueError, match="invalid character 'N' looking for beginning of value"):
        parse_json('{"a": NaN}')
