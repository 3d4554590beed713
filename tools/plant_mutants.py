"""Plants faults, one after the other, and says which of them no test catches: `python -m tools.plant_mutants [ID...]`.

tools/mutants.json has the text of a file, what takes its place, and the tests that have to notice: those of the folder
of the code. Each is planted in a worktree of the committed state. One whose text is not there exactly once is out of
date, which fails, too.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parents[1]
MUTANTS: Final = ROOT / "tools" / "mutants.json"


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
    if text.count(mutant.old) != 1:
        return "OUT OF DATE"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-n",
                "0",
                "-m",
                "not slow",
                "-p",
                "no:cacheprovider",
                *mutant.tests,
            ],
            cwd=tree,
            capture_output=True,
            check=False,
        )
    finally:
        path.write_text(text, encoding="utf-8")
    # 1: a test failed. Anything else but 0 is no answer, such as a folder that does not exist.
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout.decode()[-2000:])
    return "caught" if done.returncode else "SURVIVES"


def main() -> None:
    """Plants the mutants that are named, or all, and fails if one survives or is out of date."""
    chosen = [
        mutant for mutant in mutants() if (not sys.argv[1:] or mutant.id in sys.argv[1:]) and not mutant.equivalent
    ]
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree)], cwd=ROOT, check=True)  # noqa: S603, S607
        try:
            outcomes = []
            for mutant in chosen:
                outcomes.append(outcome(mutant, tree))
                print(f"{mutant.id:4} {outcomes[-1]:11} {mutant.file}", flush=True)  # noqa: T201
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)  # noqa: S603, S607
    print(f"{outcomes.count('caught')} of {len(outcomes)} are caught by the tests of their folder")  # noqa: T201
    sys.exit(min(1, len(outcomes) - outcomes.count("caught")))


if __name__ == "__main__":
    main()
