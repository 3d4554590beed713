"""Spans of attempts and verb calls arrive at an OTLP receiver, with the names and attributes that docs/tracing.md
lists.
"""

import gzip
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from api.tracing import check_tracing
from reprieve.errors import StartUpError
from tests.api.test_questions import get
from tests.api.test_shadow import create, place
from tests.kit.service import Service, serving

DOCUMENTED = Path(__file__).parents[2] / "docs" / "tracing.md"
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Receiver:
    """An OTLP receiver over HTTP. State: the spans that came, and the resources that sent them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def take(self, request: Any) -> None:
        for resource in request.resource_spans:
            self.services.add(attributes_of(resource.resource)["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def roots(self, name: str) -> list[Any]:
        ids = {span.span_id for span in self.spans}
        return [span for span in self.spans if span.name == name and span.parent_span_id not in ids]

    def below(self, span: Any) -> list[Any]:
        return [child for child in self.spans if child.parent_span_id == span.span_id]


def attributes_of(span: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


@contextmanager
def traced_service(receiver: Receiver, **variables: str) -> Iterator[Service]:
    """A service that sends its spans to the receiver, all of them by the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.server.server_port}")
        for name, value in variables.items():
            patch.setenv(name, value)
        with serving() as service:
            yield service


FILTER = {
    "Pod": {
        "metadata": {"name": "asked", "namespace": "default", "uid": "u-1"},
        "spec": {"containers": [{"name": "main"}]},
    },
    "NodeNames": ["node-a1", "node-a2"],
}


def filters(service: Service, traceparent: str) -> None:
    service.client.post("/extender/filter", json=FILTER, headers={"traceparent": traceparent})


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Receiver, dict[str, Any]]]:
    """What came when pods were placed and refused, and the decisions that the service recorded."""
    with receiving() as receiver:
        with traced_service(receiver) as service:
            place(service, "web-1", "web-2")
            create(service, "too-large", cpu="1000")
            filters(service, f"00-{TRACE_ID}-{SPAN_ID}-01")
            service.client.post("/extender/prioritize", json=FILTER)
            decisions = get(service, "/v1/decisions", limit="1000")["items"]
            pod = get(service, "/api/v1/namespaces/default/pods/web-1")
        yield receiver, {"decisions": decisions, "pod": pod}


def test_an_attempt_is_a_span_with_its_extension_points_below(traced: tuple[Receiver, dict[str, Any]]) -> None:
    receiver, records = traced
    (root,) = [span for span in receiver.roots("schedule") if attributes_of(span)["k8s.pod.name"] == "web-1"]
    attributes = attributes_of(root)
    spans = receiver.below(root)

    assert receiver.services == {"reprieve"}
    assert attributes["k8s.pod.uid"] == records["pod"]["metadata"]["uid"]
    assert attributes["k8s.node.name"] == records["pod"]["spec"]["nodeName"]
    assert (attributes["reprieve.result"], attributes["reprieve.profile"]) == ("scheduled", "default-scheduler")
    (decision,) = [row for row in records["decisions"] if row["id"] == attributes["reprieve.decision.id"]]
    assert decision["pod"]["name"] == "web-1"
    assert [span.name for span in spans][:2] == ["PreFilter", "Filter"] and "Bind" in {span.name for span in spans}
    assert all(
        root.start_time_unix_nano
        <= child.start_time_unix_nano
        <= child.end_time_unix_nano
        <= root.end_time_unix_nano + 1000
        for child in spans
    )
    assert {span.trace_id for span in spans} == {root.trace_id}


def test_span_of_a_refused_pod_has_the_message(traced: tuple[Receiver, dict[str, Any]]) -> None:
    receiver, _ = traced
    refusals = [
        attributes_of(span) for span in receiver.roots("schedule") if attributes_of(span)["k8s.pod.name"] == "too-large"
    ]

    assert refusals and {refusal["reprieve.result"] for refusal in refusals} == {"unschedulable"}
    assert "Insufficient cpu" in refusals[0]["reprieve.message"]


def test_a_verb_is_a_part_of_the_callers_trace(traced: tuple[Receiver, dict[str, Any]]) -> None:
    receiver, records = traced
    (root,) = receiver.roots("filter")
    attributes = attributes_of(root)

    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE_ID, SPAN_ID)
    values = [attributes[key] for key in ("k8s.pod.uid", "reprieve.result", "reprieve.nodes.evaluated")]
    assert values == ["u-1", "answered", 2]
    recorded = {decision["id"] for decision in records["decisions"] if decision["outcome"] == "Filter"}
    assert attributes["reprieve.decision.id"] in recorded
    assert {"PreFilter", "Filter"} <= {span.name for span in receiver.below(root)}
    assert [span.trace_id.hex() != TRACE_ID for span in receiver.roots("prioritize")] == [True]


def test_every_attribute_and_name_is_documented(traced: tuple[Receiver, dict[str, Any]]) -> None:
    receiver, _ = traced
    documented = set(re.findall(r"`([a-zA-Z0-9_.]+)`", DOCUMENTED.read_text()))

    names = {span.name for span in receiver.spans if not attributes_of(span).get("reprieve.plugin")}
    assert names <= documented
    assert {name for span in receiver.spans for name in attributes_of(span)} <= documented


def test_the_sampler_decides_and_the_callers_flag_with_it() -> None:
    with receiving() as receiver, traced_service(receiver, OTEL_TRACES_SAMPLER="parentbased_always_off") as service:
        place(service, "web-1")
        service.client.post("/extender/filter", json=FILTER)
        filters(service, f"00-{TRACE_ID}-{SPAN_ID}-01")
        filters(service, f"00-{TRACE_ID[::-1]}-{SPAN_ID}-00")
        filters(service, "nonsense")
        assert receiver.spans == []

    assert [span.trace_id.hex() for span in receiver.roots("filter")] == [TRACE_ID]
    assert receiver.roots("schedule") == []


def test_unreachable_receiver_of_spans_delays_no_decision() -> None:
    variables = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.2", "OTEL_BSP_EXPORT_TIMEOUT": "200"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", **variables}.items():
            patch.setenv(name, value)
        with serving() as service:
            place(service, "web-1")


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "only otlp and none are supported"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "only http/protobuf is supported",
        ),
    ],
)
def test_unsupported_exporter_or_protocol_is_refused(variables: dict[str, str], problem: str) -> None:
    with pytest.raises(StartUpError, match=problem):
        check_tracing(variables)


@pytest.mark.parametrize("variables", [{}, {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}])
def test_without_a_receiver_nothing_is_traced(variables: dict[str, str]) -> None:
    check_tracing(variables)


def test_without_a_receiver_an_attempt_and_a_call_do_nothing_for_traces() -> None:
    """No span is made, and no function of a trace is called: a check for None is all there is."""
    called: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called[frame.f_code.co_filename] += 1

    threading.setprofile(count)
    try:
        with serving() as service:
            place(service, "web-1")
            assert service.client.post("/extender/filter", json=FILTER).status_code == 200
    finally:
        threading.setprofile(None)

    files = "\n".join(called)
    assert "scheduler/scheduling_cycle.py" in files
    assert "verbs/filtering.py" in files
    # FastAPI itself looks for a context wherever the API of OpenTelemetry is installed.
    for traces in (
        "extender/values/metrics/tracing.py",
        "api/otel_spans.py",
        "/opentelemetry/sdk/",
        "/opentelemetry/exporter/",
    ):
        assert traces not in files
