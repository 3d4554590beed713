"""Traces for OpenTelemetry: an attempt or a verb call is a span, extension points and slow plugins are its children.

The extra `otel` brings the SDK; the standard variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and so on)
configure it. Spans are made when an attempt has ended, from the durations that were taken anyway, and sent by a thread.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final, final

from extender import how_to_install
from extender.answers.records.records import Records
from extender.engine.framework import Candidate, Candidates, PreemptionOutcome, Status
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.reporter import Reporter, VerbCall
from extender.engine.runtime.findings import Findings
from extender.values.metrics.tracing import CURRENT, Tracer
from extender.values.objects.pod import Pod
from reprieve.errors import StartUpError

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def check_tracing(environment: Mapping[str, str] = os.environ) -> None:
    """Checks that what the variables ask for is there. Raises StartUpError, which says what to do."""
    if not is_wanted(environment):
        return
    try:
        is_there = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # a package around it is missing, too
        is_there = False
    if not is_there:
        raise StartUpError(
            f"OTEL_* variables ask for traces, but the OpenTelemetry SDK is not installed: {how_to_install('otel')}"
        )


@asynccontextmanager
async def traced(environment: Mapping[str, str] = os.environ) -> AsyncIterator[Tracer | None]:
    """Opens what traces, until the end of the block, when the last spans are sent; None if nothing asks for traces."""
    if not is_wanted(environment):
        yield None
        return
    from api.otel_spans import OpenTelemetryTracer, provider_of_environment  # noqa: PLC0415 - an extra

    provider = provider_of_environment()
    try:
        yield OpenTelemetryTracer(provider)
    finally:
        provider.shutdown()  # waits for the receiver; everything else has ended


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Returns whether the variables ask for traces; unlike with the SDK, only they do. Raises StartUpError."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    if not exporter and not any(environment.get(name) for name in _ENDPOINTS):
        return False
    if exporter not in ("", "otlp"):
        raise StartUpError(f"OTEL_TRACES_EXPORTER={exporter!r:.40}: only otlp and none are supported")
    protocols = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((value for name in protocols if (value := environment.get(name))), "http/protobuf")
    if protocol != "http/protobuf":
        raise StartUpError(f"OTLP protocol {protocol!r:.40}: only http/protobuf is supported")
    return True


@final
class TraceReporter(Reporter):
    """Describes the current trace as decisions are reported."""

    def __init__(self, records: Records) -> None:
        """Takes the ids of decisions from the records, which have to be told of a decision before."""
        self._records = records

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self._describe(
            info.pod,
            profile,
            "scheduled",
            k8s__node__name=node,
            reprieve__nodes__evaluated=evaluated,
            reprieve__nodes__feasible=feasible,
            reprieve__attempts=info.attempts,
        )

    def failed(self, info: QueuedPodInfo, profile: str, status: Status, seconds: float) -> None:
        self._describe(
            info.pod, profile, _result(status), reprieve__message=status.message, reprieve__attempts=info.attempts
        )

    def preemption_tried(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        trace, chosen = CURRENT.get(), outcome.chosen
        if trace is not None and chosen is not None:
            trace.describe(reprieve__nominated_node=chosen.node, reprieve__victims=len(chosen.victims))

    def binding_failed(self, pod: Pod, status: Status) -> None:
        trace = CURRENT.get()
        if trace is not None:
            trace.describe(reprieve__result=_result(status), reprieve__message=status.message)

    def filter_called(self, call: VerbCall, findings: Findings, num_kept: int) -> None:
        self._called(call, "answered", reprieve__nodes__feasible=num_kept)

    def prioritize_called(self, call: VerbCall, nodes: object, scores: object) -> None:
        self._called(call, "answered")

    def preempt_called(self, call: VerbCall, candidates: Candidates, without_policies: Candidate | None) -> None:
        self._called(call, "answered", reprieve__nodes__feasible=len(candidates))

    def call_failed(self, call: VerbCall, message: str) -> None:
        self._called(call, "error", reprieve__message=message)

    def _called(self, call: VerbCall, result: str, **attributes: str | int) -> None:
        self._describe(call.pod, call.profile, result, reprieve__nodes__evaluated=call.num_nodes, **attributes)

    def _describe(self, pod: Pod, profile: str, result: str, **attributes: str | int) -> None:
        trace = CURRENT.get()
        if trace is not None:
            trace.describe(k8s__pod__uid=pod.uid, k8s__pod__name=pod.metadata.name, k8s__namespace__name=pod.namespace)
            trace.describe(reprieve__profile=profile, reprieve__result=result, **attributes)
            trace.describe(reprieve__decision__id=self._records.newest)


def _result(status: Status) -> str:
    return "unschedulable" if status.is_rejected else "error"
