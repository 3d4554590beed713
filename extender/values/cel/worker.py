"""The worker process: reads an expression and the facts about a device per line, and writes a line with the result.

Run as `python -m extender.values.cel.worker` by `extender.values.cel.evaluation`. The kernel ends the process when an
evaluation takes too much CPU time.
"""

import json
import resource
import signal
import sys
from pathlib import Path

from extender.values import limits
from extender.values.cel.errors import CelError, CompileError
from extender.values.cel.functions import of_json
from extender.values.cel.selector import Facts, compiled


def main() -> None:
    """Answers until the standard input ends."""
    _limit_memory()
    for line in sys.stdin:
        # The timer counts the CPU time of this process only. Its signal is not handled, because C++ code would not be
        # interrupted by that.
        signal.setitimer(signal.ITIMER_PROF, limits.EXPRESSION_MILLISECONDS / 1000)
        answer = _answer(line)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answer(line: str) -> dict[str, object]:
    expression, variables, size = json.loads(line, object_hook=of_json)
    try:
        return {"matches": compiled(expression).matches(Facts(variables, size))}
    except CelError as exc:
        return {"error": str(exc), "is_invalid": isinstance(exc, CompileError)}


def _limit_memory() -> None:
    """Limits the address space, where the system says how large it is."""
    sizes = Path("/proc/self/statm")
    if sizes.exists():
        max_bytes = (
            int(sizes.read_text(encoding="ascii").split()[0]) * resource.getpagesize() + limits.EXPRESSION_MEMORY
        )
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


if __name__ == "__main__":
    main()
