"""Workloads to play, and expectations of their reports, such as `placed >= 95` or `allocated.cpu > 80%`."""

import gzip
import operator
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import msgspec

from extender.values.config.configuration import Configuration
from extender.values.reasons import InputError, in_one_line
from reprieve.lab.simulation.report import Assertion, SimulationReport
from reprieve.lab.simulation.scene import Scene

_FORM: Final = re.compile(
    r"\s*(?P<path>[A-Za-z_][\w./-]*)\s*(?P<relation><=|>=|==|<|>)\s*(?P<bound>\d+(?:\.\d+)?)\s*(?P<percent>%?)\s*"
)
_RELATIONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


class ExpectationError(ValueError):
    """It is no expectation, or is about a figure that no report has."""


@final
@dataclass(frozen=True, slots=True)
class ExpectedFigure:
    """A figure of the report, and its bound."""

    text: str
    path: str
    relation: str
    bound: float
    is_percent: bool = False
    """Whether the bound is a part of 1; of all pods, if the figure counts pods."""

    @staticmethod
    def read(text: str) -> "ExpectedFigure":
        """Returns the expectation that a text states. Raises ExpectationError if it states none."""
        match = _FORM.fullmatch(text) if len(text) <= 200 else None
        if match is None:
            raise ExpectationError(
                f"{text!r:.80} is not an expectation; write FIGURE, one of < <= == >= >, a number, as in `placed >= 95`"
            )
        first = match["path"].partition(".")[0]
        if first not in SimulationReport.__struct_fields__:
            raise ExpectationError(f"{text!r:.80}: a report has no figure {first!r:.40}")
        bound = float(match["bound"]) / (100 if match["percent"] else 1)
        return ExpectedFigure(text.strip(), match["path"], match["relation"], bound, bool(match["percent"]))

    def judge(self, report: SimulationReport) -> Assertion:
        """Returns whether the report is as expected. Raises ExpectationError if it has no such number."""
        first, _, rest = self.path.partition(".")
        value = msgspec.to_builtins(getattr(report, first))
        number = _number(value, rest)
        if number is None:
            raise ExpectationError(f"{self.text!r:.80}: the report has no number at {self.path!r:.80}")
        if self.is_percent and isinstance(value, int):
            number /= max(report.pods, 1)
        return Assertion(text=self.text, found=number, holds=_RELATIONS[self.relation](number, self.bound))


def _number(value: Any, path: str) -> float | None:
    """The number at the path. Names of resources contain dots, so that each beginning of the path may be a name."""
    if not path:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if not isinstance(value, dict):
        return None
    for end in [*(place for place, letter in enumerate(path) if letter == "."), len(path)]:
        if path[:end] in value:
            number = _number(value[path[:end]], path[end + 1 :])
            if number is not None:
                return number
    return None


GZIP_MAGIC: Final = b"\x1f\x8b"


class WorkloadError(InputError):
    """The workload cannot be played. The message is one line, with file and line where there is one."""


class Workload(ABC):
    """Nodes and pods, and when they come and go."""

    name: str
    labels: tuple[str, ...] = ()
    """The labels by which workloads of one file are chosen."""
    expectations: tuple[ExpectedFigure, ...] = ()
    own_configuration: Configuration | None = None
    """The configuration with which the workload is played if no other one is given; None for the default one."""

    def configured(self, configuration: Configuration) -> Configuration:
        """Returns the configuration with which the workload is to be played. Raises WorkloadError."""
        return configuration

    def half(self, *, is_later: bool) -> "Workload":
        """Returns one of two workloads, of which the later one tries what was learnt from the other. Raises
        WorkloadError. It is the whole workload where different seeds make different ones.
        """
        return self

    @abstractmethod
    async def play(self, scene: Scene) -> None:
        """Plays until all that the workload makes has happened, though pods may still wait. Raises WorkloadError."""


def lines_of(path: Path, limit: int) -> Iterator[str]:
    """Yields the lines of a text file, packed or not. Raises WorkloadError, also beyond the limit of unpacked bytes."""
    read = 0
    try:
        with open(path, "rb") as raw:
            is_packed = raw.peek(2)[:2] == GZIP_MAGIC
            with gzip.open(raw) if is_packed else raw as content:
                while line := content.readline(limit - read + 1):
                    read += len(line)
                    if read > limit:
                        raise WorkloadError(f"{path}: more than {limit} bytes")
                    yield line.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise WorkloadError(f"{path}: {in_one_line(exc)}") from exc
    except (EOFError, zlib.error) as exc:
        raise WorkloadError(f"{path}: not a complete gzip file") from exc
