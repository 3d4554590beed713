"""docs/figures.md: every figure that the documentation gives of this version, measured by one command.

The words are in figures_page.md, the plot in figures_plot.py. `REPRIEVE_TRACES` names the folder of the trace openb,
`KUBEBUILDER_ASSETS` that of kube-apiserver and etcd, `REPRIEVE_KUBE_SCHEDULER` a kube-scheduler to drain beside.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import numpy as np

from bench.cluster import make_cache
from bench.decision import SHAPES, Figures, decide
from bench.drain import ASSETS
from bench.figures_plot import lines
from bench.preemption import evaluate
from bench.published import GO_CPU_MS, GO_SAMPLED_CPU_MS
from extender import __version__
from extender.values.config.configuration import Configuration
from reprieve.lab.simulation import SimulationReport, play, read_workloads
from tests.parity.agreement import agreements

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "figures.md"
IMAGES = ROOT / "docs" / "images"
FORM = Path(__file__).with_name("figures_page.md")

WORKLOADS = (
    "examples/workloads/gpu-sample",
    "examples/workloads/web-and-batch.yaml",
    "examples/workloads/scheduler-perf/performance-config.yaml",
)


PRINTED = ("large", "verbs", "reflector", "library", "hostile")
"""Benchmarks whose lines the page shows as they are printed."""


def run(sizes: Sequence[int] = (1000, 5000, 15000), pods: int = 400) -> None:
    """Measure, and write the page with its plots."""
    cases, printed = agreements(), {name: _printed(name) for name in PRINTED} | {"wire": _on_a_wire()}
    decisions = _decisions(sizes, pods)
    preemptions = {nodes: evaluate(nodes, 9, time.process_time) for nodes in sizes if nodes <= 5000}
    plays = [play(workload, Configuration()).report for path in WORKLOADS for workload in read_workloads(ROOT / path)]
    trace = os.environ.get("REPRIEVE_TRACES")
    if trace is not None:
        plays += [play(workload, Configuration()).report for workload in read_workloads(Path(trace) / "openb")]
    PAGE.write_text(_page(decisions, preemptions, plays, printed, cases))
    (IMAGES / "figures-decisions.svg").write_text(lines(decisions))
    print(f"written: {PAGE.relative_to(ROOT)} and a plot in {IMAGES.relative_to(ROOT)}")


def _on_a_wire() -> str:
    """Both schedulers in turn, where there are the programs."""
    kube_scheduler = os.environ.get("REPRIEVE_KUBE_SCHEDULER")
    if not kube_scheduler or not os.environ.get(ASSETS):
        return f"Not measured: {ASSETS} or REPRIEVE_KUBE_SCHEDULER was not set."
    arguments = ("--against-kube-scheduler", kube_scheduler, "--rounds", "3")
    return "\n\n".join(_printed("drain", *arguments, "--nodes", str(nodes)) for nodes in (1000, 5000))


def _printed(*arguments: str) -> str:
    """In a process of its own, whose children do not count the memory of this one as theirs."""
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.rstrip()


def _decisions(sizes: Sequence[int], pods: int) -> dict[tuple[int, str], Figures]:
    decisions = {}
    for nodes in sizes:
        cache = make_cache(nodes)
        for shape, make in SHAPES.items():
            backlog = [make(number) for number in range(pods)]
            # The quietest of three: other work on the machine takes caches and memory away.
            decisions[nodes, shape] = min(
                (decide(cache.fork(), backlog, time.process_time) for _ in range(3)), key=lambda figures: figures.p50
            )
            print(f"{nodes:7} {shape:14} {decisions[nodes, shape].p50:8.3f} ms", flush=True)
    return decisions


# The page.


def _page(
    decisions: Mapping[tuple[int, str], Figures],
    preemptions: Mapping[int, tuple[int, float]],
    plays: Sequence[SimulationReport],
    printed: Mapping[str, str],
    cases: Sequence[tuple[str, int, int]],
) -> str:
    return FORM.read_text().format(
        date=datetime.now(UTC).date().isoformat(),
        load=f"{os.getloadavg()[0]:.0f}",
        version=__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        cores=os.cpu_count(),
        decisions=_rows(_decision(nodes, shape, figures) for (nodes, shape), figures in decisions.items()),
        preemptions=_rows((nodes, count, f"{took:.1f}") for nodes, (count, took) in preemptions.items()),
        plays=_rows(
            (
                report.workload,
                report.nodes,
                report.pods,
                report.attempts,
                f"{report.cpu_ms_per_pod:.2f}",
                report.placed,
                report.preemptions,
            )
            for report in plays
        ),
        **printed,
        cases=_rows(cases),
        number=f"{sum(number for _, number, _ in cases):,}",
        agree=f"{sum(agree for *_, agree in cases):,}",
    )


def _decision(nodes: int, shape: str, figures: Figures) -> tuple[object, ...]:
    key, rate = (nodes, shape), figures.per_second
    cells = (f"{figures.p50:.3f}", f"{figures.p99:.3f}", rate)
    beside = ((f"{go:g}", f"{go * rate / 1000:,.0f}x") for go in (GO_SAMPLED_CPU_MS[key], GO_CPU_MS[key]))
    return *key, *cells, *chain.from_iterable(beside)


def _rows(rows: Iterable[Sequence[object]]) -> str:
    """Rows of a table in Markdown; numbers are whole, with commas between thousands."""
    return "\n".join(
        f"| {' | '.join(f'{cell:,.0f}' if isinstance(cell, (int, float)) else str(cell) for cell in row)} |"
        for row in rows
    )
