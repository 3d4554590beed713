"""`python -m bench.jepsen --runs 200 --seed 1`: many runs, a line for each; the histories of those that have failed
stay in a folder.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

from bench.jepsen import history
from bench.jepsen.checker import violations
from bench.jepsen.history import Ended, Healed, History, Request
from bench.jepsen.machines import FAKETIME, the_command
from bench.jepsen.run import run
from bench.jepsen.schedule import schedule

SETTLING: Final = "seconds to settle"


REAL: Final = 10
"""Where KUBEBUILDER_ASSETS is set, one run in so many has a real kube-apiserver, which takes half a minute to come up.
"""


def many(seeds: list[int], folder: Path) -> list[tuple[int, float, list[str], Counter[str]]]:
    """Makes some runs, one after the other. Returns for each its seed, its duration, what is wrong, and what was
    counted.
    """
    os.nice(10)
    results = []
    with the_command(folder / f"command-{seeds[0]}") as fork_server:
        for seed in seeds:
            place = folder / f"seed-{seed}"
            place.mkdir()
            began = time.monotonic()
            try:
                assets = os.environ.get("KUBEBUILDER_ASSETS") if seed % REAL == 0 else None
                records: History = run(seed, fork_server, place, assets=Path(assets) if assets else None)
                wrong = violations(records)
                history.write(records, place / "history.jsonl")
            except Exception as error:  # one run that fails must not keep the others from being made
                records, wrong = [], [f"the run failed: {error!r}"]
                (place / "error.txt").write_text(traceback.format_exc())
            print(
                f"seed {seed}: {time.monotonic() - began:.1f} s, {len(records)} records, {'; '.join(wrong) or 'ok'}",
                flush=True,
            )
            results.append((seed, time.monotonic() - began, wrong, tally(records)))
            if not wrong:
                shutil.rmtree(place)
    return results


def tally(records: History) -> Counter[str]:
    """Counts what a history holds, so that a run in which nothing happens is seen."""
    count: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Request) and record.is_done and record.by != history.CLIENT:
            count[
                "bindings" if record.is_binding else "lease writes" if record.resource == "leases" else "other writes"
            ] += 1
        if isinstance(record, Request):
            count["copies"] += record.is_copy
            count["writes without an answer"] += not record.status
        count[type(record).__name__.lower()] += 1
    count["ends that a busy machine leaves open"] = sum(
        record.is_starved for record in records if isinstance(record, Ended)
    )
    times = {type(record): record.at for record in records if isinstance(record, Healed | Ended)}
    count[SETTLING] = round(times.get(Ended, 0) - times.get(Healed, 0))
    count["leaders"] = len(
        {record.by for record in records if isinstance(record, Request) and record.holder and record.is_done}
    )
    return count


def main() -> int:
    """Returns the exit code: 1 if any run has failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.jepsen", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--jobs", type=int, default=2, help="runs at one time")
    parser.add_argument(
        "--folder", type=Path, default=None, help="for histories and logs of runs that fail; a new one unless told"
    )
    flags = parser.parse_args()
    folder = flags.folder or Path(tempfile.mkdtemp(prefix="jepsen-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"clocks on the wall {'step' if FAKETIME else 'do not step: libfaketime is not installed'}", flush=True)
    seeds = [*range(flags.seed, flags.seed + flags.runs)]
    parts = [part for job in range(flags.jobs) if (part := seeds[job :: flags.jobs])]
    with ProcessPoolExecutor(len(parts)) as pool:
        results = [result for part in pool.map(many, parts, [folder] * len(parts)) for result in part]
    failed = sorted(seed for seed, _, wrong, _ in results if wrong)
    total = sum((count for *_, count in results), Counter[str]())
    faults = Counter(fault.kind.value for seed in seeds for fault in schedule(seed))
    seconds = sorted(seconds for _, seconds, _, _ in results)
    settled = sorted(count[SETTLING] for *_, count in results)
    del total[SETTLING]
    print(
        f"{len(results)} runs, {median(seconds):.1f} s each (longest {seconds[-1]:.1f} s); failed: {failed or 'none'}"
    )
    print(f"all in order {median(settled):.1f} s after the last fault (longest {settled[-1]} s)")
    print("faults: " + ", ".join(f"{kind} {number}" for kind, number in faults.most_common()))
    print("seen: " + ", ".join(f"{name} {number}" for name, number in total.most_common()))
    if failed:
        print(f"histories and logs are in {folder}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
