"""Plays commands and the library as users do, from the environment that runs it: `python -m tools.play_commands` (or
`make test-commands PYTHON=python3.13`).

Only the standard library is imported here: the environment may have nothing but what running Reprieve needs.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SAID_BY: Final[Mapping[tuple[str, ...], str]] = {
    ("simulate", "examples/workloads/web-and-batch.yaml"): "holds  placed",
    ("replay", "tests/api/data/kept/recording"): "4 of 4 decisions the same",
    ("shadow", "report", "tests/api/data/kept/recording"): "100% of 4 clear decisions agree",
    ("verify", "examples/rules"): "rules hold",
    ("why", "shop/web-6", "--dump", "api/examples/cluster.yaml"): "shop/web-6",
}
"""Commands, and what each prints. A rule of `verify` is a story of a whole cluster, in virtual time."""


class PlayError(SystemExit):
    """A command or the library behaves differently. The text says which, with its output."""


def main() -> None:
    """Plays all with the programs beside this interpreter."""
    play(Path(sys.executable).parent)


def play(programs: Path) -> None:
    """Raises PlayError unless the commands of SAID_BY, `serve` and the page of the library work with these programs."""
    for command, words in SAID_BY.items():
        output = _output(str(programs / "reprieve"), *command)
        if words not in output:
            raise PlayError(f"reprieve {' '.join(command)} does not say {words!r}:\n{output}")
    _serve(programs)
    parts = dict.fromkeys(("python", "text"), "")
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(python|text)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        parts[language] += block
    with TemporaryDirectory() as folder:  # where a program is, Python looks for packages first
        program = Path(folder, "page.py")
        program.write_text(parts["python"], encoding="utf-8")
        output = _output(str(programs / "python"), str(program))
    if output != parts["text"]:
        raise PlayError(f"the program of docs/library.md does not print what the page says:\n{output}")


def _serve(programs: Path) -> None:
    """Asks a service, with a cluster of its own on ports that are free, and ends it."""
    command = [str(programs / "reprieve"), "serve", "--port", "0", "--kubernetes-port", "0"]
    with subprocess.Popen(  # noqa: S603 - ours
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as service:
        assert service.stdout is not None  # noqa: S101 - for the type checker
        output = ""
        while not (address := re.search(r"answers for .* on (http://[^/\s]+)", output)) and (
            line := service.stdout.readline()
        ):
            output += line
        pending = "" if address is None else _output(str(programs / "reprieve"), "pending", "--server", address[1])
        service.terminate()
        output += service.stdout.read()
    if "batch/train-3" not in pending or service.returncode != 0:
        raise PlayError(f"reprieve serve ended with {service.returncode}, and pending said {pending!r}:\n{output}")


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        raise PlayError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
