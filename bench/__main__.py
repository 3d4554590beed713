"""`make bench`, or `python -m bench [NAME ...]`: all of them, or those that are named. `drain` has arguments
and runs alone.
"""

import sys
from collections.abc import Callable

from bench import (
    collections,
    decision,
    drain,
    embedded,
    explain,
    figures,
    gym,
    hostile,
    library,
    outage,
    pod_groups,
    preemption,
    queue,
    recording,
    reflector,
    shared_gpus,
    standalone,
    tab,
    verbs,
    what_if,
)

BENCHMARKS: dict[str, Callable[[], None]] = {
    "collections": collections.run,
    "decision": decision.run,
    "embedded": embedded.run,
    "explain": explain.run,
    "figures": figures.run,
    "gym": gym.run,
    "hostile": hostile.run,
    "large": decision.run_large,
    "library": library.run,
    "outage": outage.run,
    "pod_groups": pod_groups.run,
    "preemption": preemption.run,
    "queue": queue.run,
    "recording": recording.run,
    "reflector": reflector.run,
    "shared_gpus": shared_gpus.run,
    "standalone": standalone.run,
    "tab": tab.run,
    "verbs": verbs.run,
    "what_if": what_if.run,
}


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all."""
    if names[:1] == ["drain"]:
        sys.exit(drain.main(names[1:]))
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join([*BENCHMARKS, 'drain'])}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
        print()


main(sys.argv[1:])
