"""The forms in which a workload may be written; and the same one with several seeds and configurations, in a process
for each processor or on a cluster.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

import msgspec

from extender import how_to_install
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from reprieve.lab import limits
from reprieve.lab.recordings.entries import is_recording
from reprieve.lab.simulation.dumped_workload import DumpedWorkload
from reprieve.lab.simulation.openb_trace import OpenbTrace
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.recorded_workload import RecordedWorkload
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.scheduler_perf import read_scheduler_perf
from reprieve.lab.simulation.workload import Workload, WorkloadError, lines_of
from reprieve.lab.simulation.workload_file import WorkloadFile

PERFORMANCE_CONFIG: Final = "performance-config.yaml"
"""The file name of scheduler_perf."""


def read_workloads(path: Path) -> Sequence[Workload]:
    """Returns the workloads at a path, in order. Raises WorkloadError if there are none, or one cannot be read."""
    if not path.exists():
        raise WorkloadError(f"{path}: no such file or directory")
    trace = OpenbTrace.find(path)
    if trace is not None:
        return [trace]
    if path.is_dir():
        files = sorted(path.rglob(PERFORMANCE_CONFIG))
        if len(files) == 1:
            return read_scheduler_perf(files[0])
        if files:
            return [
                workload
                for file in files
                for workload in read_scheduler_perf(file, prefix=f"{file.parent.relative_to(path)}/")
            ]
    if is_recording(path):
        return [RecordedWorkload(path)]
    if path.name.endswith((".json", ".json.gz")) or _begins(path, "apiVersion:", "kind:", "items:"):
        return [DumpedWorkload(path)]
    if path.name.endswith((".yaml", ".yml")):
        return read_scheduler_perf(path) if _begins(path, "-", "[") else [WorkloadFile(path)]
    raise WorkloadError(
        f"{path}: not a workload; give a YAML file, a recording, a dump, a folder with nodes.csv and pods.csv, or one "
        f"with {PERFORMANCE_CONFIG}"
    )


def _begins(path: Path, *beginnings: str) -> bool:
    """Whether the first line with content, of a YAML file, begins so."""
    if not path.name.endswith((".yaml", ".yml")):
        return False
    first = next(
        (line for line in lines_of(path, limits.WORKLOAD_BYTES) if line.strip() and not line.startswith(("#", "---"))),
        "",
    )
    return first.lstrip().startswith(beginnings)


# Sweeps.

SECONDS_TO_CONNECT: Final = 10

SentConfiguration = tuple[bytes, FeatureGates] | None
"""A configuration as v1 JSON; None for the workload's own, or the default one."""


@final
class Players:
    """Processes of this machine, or workers of a cluster, that play. They read no files of their machine."""

    def __init__(self, pool: Executor, hold: Callable[[bytes], Any], deaths: tuple[type[Exception], ...]) -> None:
        """`hold` keeps a workload with the workers; `deaths` are the errors of a play whose worker died."""
        self._pool = pool
        self._hold = hold
        self._deaths = deaths

    def send(self, workload: Workload) -> Any:
        """Sends the workload to the workers; `played` takes the result."""
        return self._hold(pickle.dumps(workload))

    def played(
        self, workload: Any, plays: Sequence[tuple[SentConfiguration, int]], *, in_full: bool = False
    ) -> Iterator[tuple[int, Played]]:
        """Yields (place among `plays`, outcome) of each configuration with its seed, as they end.

        The play of a worker that dies begins again elsewhere. Raises WorkloadError.
        """
        waiting: dict[Future[Played], int] = {}
        try:
            for place, (configuration, seed) in enumerate(plays):
                waiting[self._pool.submit(_played, workload, configuration, seed, in_full)] = place
            for done in as_completed([*waiting]):
                yield waiting.pop(done), done.result()
        except self._deaths as exc:
            raise WorkloadError("what played it has ended, perhaps because memory ran out") from exc
        finally:
            for play in waiting:
                play.cancel()


def sendable(configuration: Configuration | None) -> SentConfiguration:
    return None if configuration is None else (msgspec.json.encode(written(configuration)), configuration.feature_gates)


def sweep(
    workload: Workload,
    configurations: Sequence[Configuration | None],
    seeds: Sequence[int],
    advance: Callable[[int, int], None] = lambda done, all_of_them: None,
    *,
    on: str | None = None,
    keep: Callable[[int, Played], None] | None = None,
) -> list[list[SimulationReport]]:
    """Returns for each configuration a report for each seed.

    Raises WorkloadError if one of the plays is not possible, there are too many, or nobody plays at that address.

    Arguments:
        configurations: None for the default one, or the workload's own.
        advance: called with the number of plays that are done, and that of all.
        on: the address of a scheduler of dask.distributed, whose workers play; None for processes of this machine.
        keep: takes each play in full, with the place of its configuration.
    """
    plays = [(place, seed) for seed in seeds for place in range(len(configurations))]
    if len(plays) > limits.WORKLOAD_PLAYS:
        raise WorkloadError(f"{len(plays)} plays, but at most {limits.WORKLOAD_PLAYS}")
    reports: dict[tuple[int, int], SimulationReport] = {}
    sendables = [sendable(configuration) for configuration in configurations]
    with players(on, len(plays)) as pool:
        requests = [(sendables[place], seed) for place, seed in plays]
        for number, played in pool.played(pool.send(workload), requests, in_full=keep is not None):
            reports[plays[number]] = played.report
            if keep is not None:
                keep(plays[number][0], played)
            advance(len(reports), len(plays))
    return [[reports[place, seed] for seed in seeds] for place in range(len(configurations))]


@contextmanager
def players(on: str | None, max_processes: int) -> Iterator[Players]:
    """Yields players in processes of this machine, or at the address of a scheduler of dask.distributed."""
    with _of_this_machine(max_processes) if on is None else _of_a_cluster(on) as pool:
        yield pool


@contextmanager
def _of_this_machine(max_processes: int) -> Iterator[Players]:
    # A process that is forked off a program with threads may stand still.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(max_processes, os.cpu_count() or 1), context, _end_with_parent) as pool:
        yield Players(pool, lambda workload: workload, (BrokenProcessPool,))


def _end_with_parent() -> None:
    # A terminal sends Ctrl-C to all processes of a command: the first one ends the others, once their plays are over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # One that is killed cannot: then the others, which wait for each other, would stay.
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _of_a_cluster(address: str) -> Iterator[Players]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as exc:
        raise WorkloadError(f"--on needs dask.distributed: {how_to_install('dask')}") from exc
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as exc:
        raise WorkloadError(f"--on {address}: no scheduler of dask.distributed answers there") from exc
    with client:
        if not client.scheduler_info()["workers"]:
            raise WorkloadError(f"--on {address}: the scheduler has no workers")

        def hold(workload: bytes) -> Any:
            # The result of a task can be made again: data that is only scattered is lost with the workers that have it.
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # a large graph is meant here
                return client.submit(bytes, workload, pure=False)

        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # the error says it
        deaths = distributed.KilledWorker, distributed.client.ClosedClientError, CancelledError
        yield Players(client.get_executor(pure=False), hold, deaths)


def _played(pickled: bytes, configuration: SentConfiguration, seed: int, in_full: bool) -> Played:
    workload = _workload(pickled)
    chosen = workload.own_configuration or Configuration() if configuration is None else load(*configuration)
    return play(workload, chosen, seed, keeps_decisions=in_full)


@lru_cache(maxsize=1)
def _workload(pickled: bytes) -> Workload:
    workload: Workload = pickle.loads(pickled)  # noqa: S301 - of our own, from who started this process
    return workload
