"""The environments of Gymnasium: steps a second of CPU on the sample of a GPU cluster, 48 nodes and 277 pods, with an
agent that takes any feasible node.
"""

import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np

from reprieve.gym import SchedulingEnvironment, TrialEnvironment

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "examples" / "workloads" / "gpu-sample"
ROUNDS = 5


def run(episodes: int = 5) -> None:
    """Print a line for each environment, the quietest of some rounds."""
    objects = runpy.run_path(str(ROOT / "examples" / "gym" / "place_gpus.py"))["objects"]
    print(f"steps a second of CPU in {episodes} episodes with 48 nodes, random feasible actions; the best of {ROUNDS}")
    for name, environment in (
        ("TrialEnvironment", TrialEnvironment(objects(SAMPLE))),
        ("SchedulingEnvironment", SchedulingEnvironment(SAMPLE)),
    ):
        chance = np.random.default_rng(0)
        rates = [rate(environment, episodes, chance) for _ in range(ROUNDS)]
        print(f"  {name:24} {max(rates):8,.0f}", flush=True)
        environment.close()


def rate(environment: Any, episodes: int, chance: np.random.Generator) -> float:
    """Steps a second, `reset` included."""
    began, steps = time.process_time(), 0
    for seed in range(episodes):
        environment.reset(seed=seed)
        is_over = False
        while not is_over:
            feasible = environment.action_masks().nonzero()[0]
            is_over = environment.step(feasible[chance.integers(len(feasible))])[2]
            steps += 1
    return steps / (time.process_time() - began)
