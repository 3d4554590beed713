"""`python -m bench drain --against COMMIT`: how much CPU the scheduler of this tree needs for a backlog on a
real API server, beside that of another commit, or beside a kube-scheduler with its default configuration.

kube-apiserver and etcd are those of KUBEBUILDER_ASSETS. Both schedulers drain the same backlog in turn, A B B A, so that
what changes on the machine meets both alike. What decides is the CPU of the scheduler's process a pod after its first
binding, because it varies least: pods a second also measure what else the machine does. Rounds go on until the ratio
is known well enough.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from bench.drain_run import KUBE_SCHEDULER, Drained, Wire
from tests.kit.control_plane import ControlPlane

ROOT: Final = Path(__file__).parents[1]
ASSETS: Final = "KUBEBUILDER_ASSETS"
LEAST_ROUNDS: Final = 4
"""Twice A B B A; quartiles of fewer say nothing."""


def main(arguments: list[str]) -> int:
    """Measure. Returns the exit code: 2 without the programs."""
    flags = _parser().parse_args(arguments)
    assets = os.environ.get(ASSETS)
    if not assets:
        print(f"{ASSETS} is not set: run `setup-envtest use 1.36.x -p env` and source what it prints", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, _other(flags, Path(folder)) as other:
        plane_folder = Path(folder, "plane")
        plane_folder.mkdir()
        _compile([Path(sys.executable), other[1]])
        # As in upstream's scheduler_perf, nodes are ready: there is no controller to take the taint away.
        admission = ("TaintNodesByCondition",)
        with ControlPlane.start(Path(assets), plane_folder, without_admission=admission) as plane:
            asyncio.run(_compare(plane, other, flags))
    return 0


def _compile(schedulers: Iterable[Path]) -> None:
    """Has Python keep compiled modules, as those of an installed package are, whatever the shell says."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for python in (path for path in schedulers if path.name != KUBE_SCHEDULER):
        subprocess.run([python.with_name("reprieve"), "serve", "--help"], check=True, stdout=subprocess.DEVNULL)


async def _compare(plane: ControlPlane, other: tuple[str, Path], flags: argparse.Namespace) -> None:
    schedulers = dict([("this tree", Path(sys.executable)), other])
    async with Wire.open(plane, flags.nodes) as wire:
        print(f"drain of {flags.pods:,} pods on {flags.nodes:,} nodes, {await wire.version()}; CPU of the scheduler")
        print(
            f"{await wire.bindings_alone(flags.pods):.0f} bindings a second from a client that does nothing else",
            flush=True,
        )
        for shape in flags.shapes:
            print(
                f"{shape}\n{'round':>5} {'':14} {'ms a pod':>9} {'pods/s':>7} {'with events':>12} {'first binding s':>16} {'CPU until s':>12}"
            )
            runs: dict[str, list[Drained]] = {name: [] for name in schedulers}
            for number in range(flags.rounds):
                for name in [*schedulers] if number % 2 == 0 else reversed(schedulers):
                    drained = await wire.drain(schedulers[name], shape, flags.pods)
                    runs[name].append(drained)
                    print(f"{number + 1:5} {name:14} {drained}", flush=True)
                ratios = _ratios(*runs.values())
                if len(ratios) >= LEAST_ROUNDS and spread(ratios) <= flags.spread / 100:
                    break
            _show(runs, flags.spread)


def _show(runs: dict[str, list[Drained]], bound: float) -> None:
    for name, drains in runs.items():
        print(f"{'':5} {name:14} {Drained(*(median(figures) for figures in zip(*drains, strict=True)))}  medians")
    ratios = _ratios(*runs.values())
    ours, other = runs
    print(
        f"  {ours} / {other}: {median(ratios):.3f} of the CPU a pod, from {min(ratios):.3f} to {max(ratios):.3f}; "
        f"spread {spread(ratios):.1%} after {len(ratios)} rounds (bound {bound:g} %); "
        f"{_until_first(runs[ours]) / _until_first(runs[other]):.2f} of the CPU until the first binding",
        flush=True,
    )


def _ratios(ours: list[Drained], theirs: list[Drained]) -> list[float]:
    return [a.cpu_ms / b.cpu_ms for a, b in zip(ours, theirs, strict=True)]


def _until_first(drains: list[Drained]) -> float:
    return median(drained.first_cpu for drained in drains)


def spread(ratios: list[float]) -> float:
    """How far the median of so many ratios may be off: about its standard error, from their quartiles, which a single
    run that went wrong does not move. One alone says nothing.
    """
    if len(ratios) < 2:
        return float("inf")
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return float((high - low) / len(ratios) ** 0.5 / median(ratios))


@contextmanager
def _other(flags: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields the name and the interpreter of the other side: a worktree with an environment of its own, or what is
    given.
    """
    if flags.against_python is not None:
        yield "other", flags.against_python.absolute()  # not resolved: an interpreter of an environment is a link
        return
    if flags.against_kube_scheduler is not None:
        yield KUBE_SCHEDULER, flags.against_kube_scheduler.absolute()
        return
    tree = folder / "tree"
    commit = _git("rev-parse", "--short", f"{flags.against}^{{commit}}")
    _git("worktree", "add", "--detach", str(tree), commit)
    try:
        subprocess.run(["make", "-s", "-C", tree, ".venv/.runs"], check=True, stdout=sys.stderr)
        yield commit, tree / ".venv" / "bin" / "python"
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench drain", description=__doc__)
    other = parser.add_mutually_exclusive_group(required=True)
    other.add_argument("--against", help="a commit; it gets a worktree and an environment for the time being")
    other.add_argument("--against-python", type=Path, help="or the interpreter of an environment with another Reprieve")
    other.add_argument("--against-kube-scheduler", type=Path, help="or a program of this name")
    parser.add_argument("--shapes", nargs="+", default=["basic", "mixed"], choices=["basic", "mixed"])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=16, help="at most")
    parser.add_argument("--spread", type=float, default=1.0, help="per cent, below which no further round is needed")
    return parser
