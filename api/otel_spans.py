"""OpenTelemetry spans for attempts and calls. Imported only where traces are wanted: the SDK is an extra."""

import os
import secrets
from collections.abc import Mapping
from time import perf_counter, time_ns
from typing import Any, Final, final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision
from opentelemetry.trace import SpanKind, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from extender.values import limits
from extender.values.metrics.tracing import Trace, Tracer

SLOW_PLUGIN: Final = 0.001
"""Seconds from which on a plugin has a span of its own."""


def provider_of_environment() -> TracerProvider:
    """Returns the SDK's provider as the standard variables describe it."""
    has_name = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "") or os.environ.get("OTEL_SERVICE_NAME")
    provider = TracerProvider(
        resource=Resource.create({} if has_name else {SERVICE_NAME: "reprieve"}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class _PreparedIds(RandomIdGenerator):
    """Gives a trace the id by which it was sampled. State: that id."""

    trace_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id


@final
class OpenTelemetryTracer(Tracer):
    """Makes spans. State: the SDK's provider, its sampler, and the ids that are to be used next."""

    def __init__(self, provider: TracerProvider) -> None:
        """Makes spans of a provider, whose sampler decides what is traced."""

        # Asked before a span is made: most attempts may not be sampled, and a span costs ten times as much as the
        # question.
        self._should_sample = provider.sampler.should_sample
        # A sampler that does not take the lowest id takes none.
        self._takes_attempts = self._should_sample(None, 0, "schedule").decision is Decision.RECORD_AND_SAMPLE
        provider.sampler = ALWAYS_ON
        self._ids = _PreparedIds()
        provider.id_generator = self._ids
        self._spans = provider.get_tracer("reprieve")
        self._propagator = TraceContextTextMapPropagator()

    def attempt(self, began: float) -> Trace | None:
        return self._sampled("schedule", None, began, is_call=False) if self._takes_attempts else None

    def call(self, verb: str, headers: Mapping[str, str]) -> Trace | None:
        parent = None
        if "traceparent" in headers:
            parent = self._propagator.extract(
                {"traceparent": headers["traceparent"], "tracestate": headers.get("tracestate", "")}
            )
        return self._sampled(verb, parent, perf_counter(), is_call=True)

    def _sampled(self, name: str, parent: Context | None, began: float, *, is_call: bool) -> "_Spans | None":
        trace_id = secrets.randbits(128) or 1
        if parent is not None:
            trace_id = get_current_span(parent).get_span_context().trace_id or trace_id
        if self._should_sample(parent, trace_id, name).decision is not Decision.RECORD_AND_SAMPLE:
            return None
        return _Spans(self, name, parent, trace_id, began, is_call=is_call)

    def make(self, traced: "_Spans", ended: float) -> None:
        """Makes the spans of an attempt or call that has ended."""

        to_epoch = time_ns() - int(perf_counter() * 1e9)
        self._ids.trace_id = traced.trace_id
        kind = SpanKind.SERVER if traced.is_call else SpanKind.INTERNAL
        root = self._spans.start_span(
            traced.name, traced.parent, kind, traced.attributes, start_time=int(traced.began * 1e9) + to_epoch
        )
        points = sorted(_with_points(traced.timed_parts), key=lambda part: (part[0], -part[1]))
        root_context = set_span_in_context(root)
        opened: list[tuple[float, Any]] = []
        for began, end, plugin, point, status in points:
            if plugin and end - began < SLOW_PLUGIN:
                continue
            if not plugin:
                opened.append((end, None))
            attributes = {"reprieve.extension_point": point, "reprieve.status": status} | (
                {"reprieve.plugin": plugin} if plugin else {}
            )
            parent = next(
                (context for until, context in reversed(opened) if context is not None and until >= end), root_context
            )
            span = self._spans.start_span(
                plugin or point, parent, attributes=attributes, start_time=int(began * 1e9) + to_epoch
            )
            span.end(int(end * 1e9) + to_epoch)
            if not plugin:
                opened[-1] = end, set_span_in_context(span)
        root.end(int(ended * 1e9) + to_epoch)


_Part = tuple[float, float, str, str, str]
"""(began, ended, plugin or nothing, extension point, status)."""


def _with_points(parts: list[_Part]) -> list[_Part]:
    """Returns the parts, with an extension point around plugins that ran without one, as verbs run them."""
    spans = [*parts]
    lone: dict[str, list[_Part]] = {}
    for part in parts:
        if part[2] and not any(not span[2] and span[0] <= part[0] and part[1] <= span[1] for span in parts):
            lone.setdefault(part[3], []).append(part)
    for point, plugins in lone.items():
        spans.append((min(span[0] for span in plugins), max(span[1] for span in plugins), "", point, plugins[-1][4]))
    return spans


@final
class _Spans(Trace):
    def __init__(
        self,
        tracer: OpenTelemetryTracer,
        name: str,
        parent: Context | None,
        trace_id: int,
        began: float,
        *,
        is_call: bool,
    ) -> None:
        self.name, self.parent, self.trace_id, self.began, self.is_call = name, parent, trace_id, began, is_call
        self.attributes: dict[str, str | int] = {}
        self.timed_parts: list[_Part] = []
        self._tracer = tracer
        self._open = 1

    def timed(self, seconds: float, plugin: str, point: str, status: str) -> None:
        if len(self.timed_parts) < limits.TRACE_SPANS:
            now = perf_counter()
            self.timed_parts.append((now - seconds, now, plugin, point, status))

    def describe(self, **attributes: str | int) -> None:
        self.attributes.update({name.replace("__", "."): value for name, value in attributes.items()})

    def goes_on(self) -> None:
        self._open += 1

    def end(self) -> None:
        self._open -= 1
        if not self._open:
            self._tracer.make(self, perf_counter())
