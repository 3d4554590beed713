"""Writes `examples/workloads/gpu-sample`, nodes and pods in the form of a GPU trace: `python -m
tools.generate_gpu_sample`.

The statistics are like those of public GPU clusters: most pods ask for a part of a GPU or for one, few for eight, and
about one in eight for none. The numbers are drawn, and no line is of anybody's cluster.
"""

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "examples" / "workloads" / "gpu-sample"
SEED: Final = 36

NODES: Final = (
    (18, (64_000, 262_144, 2, "T4")),
    (15, (96_000, 393_216, 8, "V100")),
    (9, (128_000, 786_432, 8, "A10")),
    (6, (96_000, 524_288, 0, "")),
)
"""(how many, (millicores, MiB, GPUs, model))."""
PARTS: Final = (
    (13, 0, 0),
    (14, 1, 250),
    (24, 1, 500),
    (6, 1, 750),
    (37, 1, 1000),
    (3, 2, 1000),
    (1, 4, 1000),
    (2, 8, 1000),
)
"""(how often of a hundred, GPUs, thousandths of each)."""
CHOOSY: Final = 0.15
"""The part of the pods with GPUs that name models."""
ASKED: Final = 1.05
"""GPUs asked for, as a part of those that there are."""


def nodes() -> list[tuple[str, int, int, int, str]]:
    """Returns the rows of the nodes."""
    rows = [node for count, node in NODES for _ in range(count)]
    return [(f"node-{number:02}", cpu, memory, gpus, model) for number, (cpu, memory, gpus, model) in enumerate(rows)]


def pods(rng: random.Random, gpus: int) -> Iterable[tuple[str, int, int, int, int, str]]:
    """Yields rows of pods, until they have asked for the GPUs."""
    requested, number = 0.0, 0
    while requested < ASKED * gpus:
        _, count, share = rng.choices(PARTS, weights=[often for often, *_ in PARTS])[0]
        # A pod has a few cores for each of its GPUs, and some GiB for each core.
        cores = max(1, round(rng.lognormvariate(1.3, 0.5) * max(count * share / 1000, 0.4)))
        memory = 1024 * max(1, round(cores * rng.choice((2, 4, 4, 6))))
        models = (
            "|".join(sorted(rng.sample(("T4", "V100", "A10"), rng.choice((1, 2)))))
            if count and rng.random() < CHOOSY
            else ""
        )
        yield f"pod-{number:04}", cores * 1000, memory, count, share, models
        requested, number = requested + count * share / 1000, number + 1


def main() -> None:
    """Writes both tables."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    of_nodes = nodes()
    _write("nodes.csv", ("sn", "cpu_milli", "memory_mib", "gpu", "model"), of_nodes)
    of_pods = pods(random.Random(SEED), sum(gpus for *_, gpus, _ in of_nodes))
    _write("pods.csv", ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"), of_pods)


def _write(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with open(FOLDER / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
