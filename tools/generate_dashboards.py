"""Writes the Grafana dashboards of the chart, `deploy/chart/files/dashboards`: `python -m tools.generate_dashboards`
(or `make docs`).

A dashboard is a table of panels here: a title, what it says, and its expressions. Every expression is evaluated in
`tests/deploy/test_observability.py` by a real Prometheus.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

FOLDER: Final = Path(__file__).parents[1] / "deploy" / "chart" / "files" / "dashboards"

_OF_JOB: Final = 'job=~"$job"'
_WIDTH: Final = 8
_HEIGHT: Final = 8
_PER_ROW: Final = 24 // _WIDTH


@final
@dataclass(frozen=True)
class Panel:
    """One graph. `JOB` in an expression is the selector of the dashboard's job, `RATE` the window of a rate."""

    title: str
    words: str
    queries: Sequence[tuple[str, str]]
    """(expression, legend)"""
    unit: str = "short"


def _quantiles(metric: str, label: str) -> list[tuple[str, str]]:
    rates = f"sum by (le, {label}) (rate({metric}_bucket{{JOB}}[RATE]))"
    return [
        (f"histogram_quantile({quantile}, {rates})", f"{{{{{label}}}}} p{quantile * 100:g}") for quantile in (0.5, 0.99)
    ]


def _mean(metric: str, label: str, legend: str) -> tuple[str, str]:
    both = (f"sum by ({label}) (rate({metric}_{part}{{JOB}}[RATE]))" for part in ("sum", "count"))
    return " / ".join(both), legend


_PROCESS: Final = (
    Panel(
        "Plugins in quarantine",
        "1 while a plugin of your own is not called, because too many of its calls failed.",
        [("max by (plugin) (reprieve_plugin_quarantined{JOB})", "{{plugin}}")],
    ),
    Panel(
        "Health checks",
        "1 where the last run of a check was well.",
        [("min by (name, type) (kubernetes_healthcheck{JOB})", "{{type}} {{name}}")],
    ),
    Panel(
        "Errors of watches",
        "Failures to read from the API server, by class.",
        [("sum by (resource, error) (rate(reprieve_reflector_errors_total{JOB}[RATE]))", "{{resource}} {{error}}")],
        "ops",
    ),
    Panel(
        "Events of watches",
        "Changes of the cluster that were read.",
        [("sum by (resource) (rate(reprieve_reflector_events_total{JOB}[RATE]))", "{{resource}}")],
        "ops",
    ),
    Panel(
        "Memory", "Resident memory of each replica.", [("process_resident_memory_bytes{JOB}", "{{instance}}")], "bytes"
    ),
    Panel(
        "CPU", "Processors that each replica uses.", [("rate(process_cpu_seconds_total{JOB}[RATE])", "{{instance}}")]
    ),
)

DASHBOARDS: Final = {
    "extender": (
        "Reprieve as an extender",
        (
            Panel(
                "Requests",
                "Calls of the verbs, by result. An error is a call that was understood and not answered.",
                [("sum by (verb, result) (rate(reprieve_verb_requests_total{JOB}[RATE]))", "{{verb}} {{result}}")],
                "reqps",
            ),
            Panel(
                "Share of calls without an answer",
                "kube-scheduler schedules without the extender then, or not at all, by `ignorable`.",
                [
                    (
                        'sum by (verb) (rate(reprieve_verb_requests_total{JOB, result!="answered"}[RATE]))'
                        " / sum by (verb) (rate(reprieve_verb_requests_total{JOB}[RATE]))",
                        "{{verb}}",
                    )
                ],
                "percentunit",
            ),
            Panel(
                "Duration",
                "From the head of a request to its answer.",
                _quantiles("reprieve_verb_duration_seconds", "verb"),
                "s",
            ),
            Panel("Nodes a call", "Nodes that a call was about.", [_mean("reprieve_verb_nodes", "verb", "{{verb}}")]),
            Panel(
                "Rejected nodes",
                "Nodes that filter did not keep, by the reason that pods see in their events.",
                [("topk(10, sum by (reason) (rate(reprieve_verb_rejected_nodes_total{JOB}[RATE])))", "{{reason}}")],
            ),
            Panel(
                "Size of a call",
                "Bytes of requests and answers.",
                [
                    _mean("reprieve_verb_request_bytes", "verb", "{{verb}} request"),
                    _mean("reprieve_verb_response_bytes", "verb", "{{verb}} answer"),
                ],
                "bytes",
            ),
            *_PROCESS,
        ),
    ),
    "scheduler": (
        "Reprieve as a scheduler",
        (
            Panel(
                "Attempts",
                "Attempts to schedule a pod, by result.",
                [
                    (
                        "sum by (result, profile) (rate(scheduler_schedule_attempts_total{JOB}[RATE]))",
                        "{{profile}} {{result}}",
                    )
                ],
                "ops",
            ),
            Panel(
                "Waiting pods",
                "Pods in each queue.",
                [("sum by (queue) (scheduler_pending_pods{JOB})", "{{queue}}")],
            ),
            Panel(
                "Refused by plugin",
                "Waiting pods by the plugin that refused them.",
                [("sum by (plugin) (scheduler_unschedulable_pods{JOB})", "{{plugin}}")],
            ),
            Panel(
                "Duration of an attempt",
                "From the pop of a pod to the end of its binding.",
                _quantiles("scheduler_scheduling_attempt_duration_seconds", "result"),
                "s",
            ),
            Panel(
                "From creation to binding",
                "However many attempts that took.",
                _quantiles("scheduler_pod_scheduling_sli_duration_seconds", "attempts"),
                "s",
            ),
            Panel(
                "Duration by extension point",
                "All plugins of a point together.",
                _quantiles("scheduler_framework_extension_point_duration_seconds", "extension_point")[1:],
                "s",
            ),
            Panel(
                "Slowest plugins",
                "One call over many nodes; one of ten cycles is timed.",
                [
                    (
                        "topk(10, sum by (plugin, extension_point) "
                        "(rate(scheduler_plugin_execution_duration_seconds_sum{JOB}[RATE]))"
                        " / sum by (plugin, extension_point) "
                        "(rate(scheduler_plugin_execution_duration_seconds_count{JOB}[RATE])))",
                        "{{plugin}} {{extension_point}}",
                    )
                ],
                "s",
            ),
            Panel(
                "Preemptions",
                "Attempts to preempt, and victims.",
                [
                    ("sum(rate(scheduler_preemption_attempts_total{JOB}[RATE]))", "attempts"),
                    ("sum(rate(scheduler_preemption_victims_sum{JOB}[RATE]))", "victims"),
                ],
                "ops",
            ),
            Panel(
                "What brings pods into queues",
                "Pods that were added to a queue, by event.",
                [
                    (
                        "sum by (queue, event) (rate(scheduler_queue_incoming_pods_total{JOB}[RATE]))",
                        "{{queue}} {{event}}",
                    )
                ],
                "ops",
            ),
            Panel(
                "Writes",
                "Writes to the API server by result.",
                [
                    (
                        "sum by (call_type, result) (rate(scheduler_async_api_call_execution_total{JOB}[RATE]))",
                        "{{call_type}} {{result}}",
                    )
                ],
                "ops",
            ),
            Panel(
                "Size of the cache",
                "Nodes and pods that are known.",
                [("max by (type) (scheduler_cache_size{JOB})", "{{type}}")],
            ),
            Panel(
                "Leader", "1 for the replica that decides.", [("leader_election_master_status{JOB}", "{{instance}}")]
            ),
            *_PROCESS,
        ),
    ),
}


def expressions(name: str) -> Iterator[str]:
    """Yields every expression of a dashboard as Grafana has it."""
    for panel in DASHBOARDS[name][1]:
        for expression, _ in panel.queries:
            yield _as_grafana_has_it(expression)


def page(name: str) -> str:
    """Returns a dashboard as JSON."""
    title, panels = DASHBOARDS[name]
    source = {"type": "prometheus", "uid": "${datasource}"}
    dashboard = {
        "uid": f"reprieve-{name}",
        "title": title,
        "tags": ["kubernetes", "scheduler", "reprieve"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "job",
                    "type": "query",
                    "datasource": source,
                    "query": {"query": "label_values(reprieve_log_lines_dropped_total, job)", "refId": "job"},
                    "definition": "label_values(reprieve_log_lines_dropped_total, job)",
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*reprieve.*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": [_panel(number, panel, source) for number, panel in enumerate(panels)],
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _panel(number: int, panel: Panel, source: dict[str, str]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + place),
            "expr": _as_grafana_has_it(expression),
            "legendFormat": legend,
            "datasource": source,
        }
        for place, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.words,
        "datasource": source,
        "gridPos": {"x": number % _PER_ROW * _WIDTH, "y": number // _PER_ROW * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }


def _as_grafana_has_it(expression: str) -> str:
    return expression.replace("JOB", _OF_JOB).replace("RATE", "$__rate_interval")


def main() -> None:
    """Writes the files, by default into the chart."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in DASHBOARDS:
        (folder / f"{name}.json").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
