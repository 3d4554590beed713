"""Learns weights for the scheduler's scores, such that more of the GPUs of a workload get used: the cross-entropy
method, in numpy.

    pip install '.[gym]'  # in a clone
    python examples/gym/learn_weights.py                                  # the sample of a GPU cluster, a minute or two
    # such as cluster-trace-gpu-v2023, as `reprieve simulate` reads it
    python examples/gym/learn_weights.py FOLDER --rounds 12

An episode plays the workload once with one vector of weights; the next round begins at the best vectors of the last
one. What was learned is compared with the default weights on seeds that were not learned from.
"""

import argparse

import gymnasium
import numpy as np

from reprieve.gym import Progress, SchedulingEnvironment

GPU = "alibabacloud.com/gpu-milli"
DEFAULT = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
}


def gpus(before: Progress, after: Progress) -> float:
    """The reward: how much more of the GPUs is allocated."""
    return after.allocated.get(GPU, 0.0) - before.allocated.get(GPU, 0.0)


def played(environment: gymnasium.Env, weights: np.ndarray, seed: int) -> float:
    """Returns what an episode brings with these weights throughout."""
    environment.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        _, reward, is_over, _, _ = environment.step(weights)
        total += reward
    return total


def learned(environment: gymnasium.Env, rounds: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the weights after so many rounds of `size` episodes, beginning with none at all."""
    count = environment.action_space.shape[0]
    mean, spread = np.zeros(count), np.full(count, 0.7)
    for number in range(rounds):
        tried = np.clip(rng.normal(mean, spread, (size, count)), -1.0, 1.0).astype(np.float32)
        # All vectors of a round meet the same workload.
        brought = np.array([played(environment, weights, seed=1000 + number) for weights in tried])
        best = tried[np.argsort(brought)[-max(size // 4, 2) :]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(
            f"round {number + 1}: {brought.mean():.1%} of the GPUs on average, {brought.max():.1%} at best", flush=True
        )
    return mean.astype(np.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("workload", nargs="?", default="examples/workloads/gpu-sample")
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--size", type=int, default=8)
    options.add_argument("--seeds", type=int, default=5, help="for the comparison")
    given = options.parse_args()

    environment = SchedulingEnvironment(given.workload, action="weights", reward=gpus)
    start = np.array([DEFAULT.get(name, 1) / 3 for name in environment.score_plugins], np.float32)
    weights = learned(environment, given.rounds, given.size, np.random.default_rng(0))
    for name, weight in zip(environment.score_plugins, weights.tolist(), strict=True):
        print(f"  {name:35} {weight:+.2f}")
    before, after = (
        np.mean([played(environment, each, seed) for seed in range(1, given.seeds + 1)]) for each in (start, weights)
    )
    print(
        f"GPUs allocated over {given.seeds} other seeds: {before:.1%} with the default weights, {after:.1%} with what "
        "was learned"
    )
    environment.close()


if __name__ == "__main__":
    main()
