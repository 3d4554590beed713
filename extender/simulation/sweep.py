"""Sweeps: the same workload with several seeds and configurations, in as many processes as the machine has processors."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from typing import Final

from extender.config import Configuration, load_file
from extender.simulation.playing import play
from extender.simulation.readers import read_workloads
from extender.simulation.report import SimulationReport
from extender.simulation.workload import Workload, WorkloadError

MAX_PLAYS: Final = 10_000
"""The most plays of a sweep."""


def sweep(
    path: Path,
    workload: str,
    configurations: Sequence[Path | None],
    seeds: Sequence[int],
    advance: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> list[list[SimulationReport]]:
    """Returns for each configuration a report for each seed.

    Arguments:
        path: the file or folder of the workload, which each process reads itself.
        workload: its name there.
        configurations: files, which have been read without errors before; None for the default one.
        advance: called with the number of plays that are done, and that of all.

    Raises:
        WorkloadError: one of the plays is not possible, or there are too many.
    """
    plays = [(place, seed) for seed in seeds for place in range(len(configurations))]
    if len(plays) > MAX_PLAYS:
        raise WorkloadError(f"{len(plays)} plays, and the most are {MAX_PLAYS}")
    workers = min(len(plays), os.cpu_count() or 1)
    found: dict[tuple[int, int], SimulationReport] = {}
    # A process that is forked off a program with threads may stand still.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(_played, path, workload, configurations[place], seed): (place, seed) for place, seed in plays}
        try:
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                advance(len(found), len(plays))
        except BrokenProcessPool as exc:
            raise WorkloadError(f"{workload}: a process that played it has ended, perhaps for want of memory") from exc
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [[found[place, seed] for seed in seeds] for place in range(len(configurations))]


def _played(path: Path, name: str, configuration: Path | None, seed: int) -> SimulationReport:
    workload = _workloads(path)[name]
    chosen = workload.own_configuration or Configuration() if configuration is None else load_file(configuration)
    return play(workload, chosen, seed)


@lru_cache(maxsize=1)
def _workloads(path: Path) -> dict[str, Workload]:
    return {workload.name: workload for workload in read_workloads(path)}
