"""Plants faults, one after the other, and says which of them no test catches: `python -m tools.plant_mutants [ID...]`.

tools/mutants.json has the text of a file, what takes its place, and the tests that have to notice: those of the folder
of the code. Each is planted in a worktree of the committed state. One whose text is not there exactly once is out of
date, which fails, too. `--draw 40 --seed 1` plants faults that are drawn at random instead.
"""

import argparse
import difflib
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tools.draw_mutants import drawn

ROOT: Final = Path(__file__).resolve().parents[1]
MUTANTS: Final = ROOT / "tools" / "mutants.json"
HANGS: Final = 1800.0
"""Seconds after which a test counts as one that never ends."""


class Mutant(msgspec.Struct, frozen=True):
    """A fault: `old` becomes `new` in a file, and one of the `tests` fails."""

    id: str
    file: str
    old: str
    new: str
    tests: list[str]
    equivalent: str = ""
    """Why nobody can see it, if so: it is not planted."""


def mutants() -> list[Mutant]:
    """Returns the mutants of the file, in its order."""
    return msgspec.json.decode(MUTANTS.read_bytes(), type=list[Mutant])


def outcome(mutant: Mutant, tree: Path) -> str:
    """Returns `caught`, `SURVIVES` or `OUT OF DATE`; the tree is afterwards as it was."""
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(mutant.old) != 1 or not all((tree / test).exists() for test in mutant.tests):
        return "OUT OF DATE"
    return _planted(path, text.replace(mutant.old, mutant.new), mutant.tests, tree)


def _planted(path: Path, fault: str, tests: list[str], tree: Path) -> str:
    text = path.read_text(encoding="utf-8")
    path.write_text(fault, encoding="utf-8")
    options = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, check=False, timeout=HANGS)  # noqa: S603 - this interpreter
    except subprocess.TimeoutExpired:
        return "caught"
    finally:
        path.write_text(text, encoding="utf-8")
    # 0: all tests passed; 5: there is none. With any other code a test, or loading it, failed.
    return "SURVIVES" if done.returncode in (0, 5) else "caught"


def _tests_of(file: str) -> list[str]:
    """Returns the tests beside the code; files with the module's name come first."""
    folder = ROOT / "tests" / Path(file).parent
    while not list(folder.rglob("test_*.py")):
        folder = folder.parent
    by_name = sorted(folder.rglob(f"test_*{Path(file).stem}*.py"))
    return [str(path.relative_to(ROOT)) for path in [*by_name, folder]]


def _plant(options: argparse.Namespace, tree: Path) -> list[str]:
    outcomes = []
    for file, text, fault in drawn(options.draw, options.seed):
        outcomes.append(_planted(tree / file, fault, _tests_of(file), tree))
        lines = difflib.unified_diff(text.splitlines(), fault.splitlines(), n=0, lineterm="")
        changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        print(f"{outcomes[-1]:11} {file}", *changed, sep="\n    ", flush=True)  # noqa: T201
    for mutant in [] if options.draw else mutants():
        if (not options.ids or mutant.id in options.ids) and not mutant.equivalent:
            outcomes.append(outcome(mutant, tree))
            print(f"{mutant.id:4} {outcomes[-1]:11} {mutant.file}", flush=True)  # noqa: T201
    return outcomes


def main() -> None:
    """Plants the mutants that are named, or all, or drawn ones, and fails if one survives or is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.plant_mutants")
    parser.add_argument("ids", nargs="*", help="those of tools/mutants.json to plant; all of them if none is named")
    parser.add_argument("--draw", type=int, default=0, help="plant so many faults that are drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree)], cwd=ROOT, check=True)  # noqa: S603, S607
        try:
            outcomes = _plant(options, tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)  # noqa: S603, S607
    print(f"{outcomes.count('caught')} of {len(outcomes)} are caught by the tests of their folder")  # noqa: T201
    sys.exit(min(1, len(outcomes) - outcomes.count("caught")))


if __name__ == "__main__":
    main()
