"""The checks of `reprieve doctor`: an extender in any language, asked from the outside as kube-scheduler would ask it.

Nothing here knows which extender answers. A finding says what kube-scheduler 1.36 would make of the answer.
"""

import enum
from dataclasses import dataclass
from typing import final


@final
class Grade(enum.StrEnum):
    """The outcome of a check."""

    OK = "ok"
    WARNING = "warning"
    """It works, and may hurt some day."""
    BAD = "bad"
    """kube-scheduler gets no answer, or another one than was meant."""
    SKIPPED = "skipped"


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One check, and its outcome."""

    verb: str
    """The verb that was asked; empty of the connection and the configuration."""
    check: str
    """What a healthy extender does, as a sentence."""
    grade: Grade
    detail: str = ""
    """What was seen instead."""
    advice: str = ""

    @property
    def words(self) -> str:
        return f"{self.check}: {self.detail}" if self.detail else self.check


def ok(check: str, detail: str = "") -> Finding:
    return Finding("", check, Grade.OK, detail)


def bad(check: str, detail: str, advice: str = "") -> Finding:
    return Finding("", check, Grade.BAD, detail, advice)


def warning(check: str, detail: str, advice: str = "") -> Finding:
    """Returns a finding that should be mended, though kube-scheduler is not misled."""
    return Finding("", check, Grade.WARNING, detail, advice)


def skipped(check: str, why: str) -> Finding:
    return Finding("", check, Grade.SKIPPED, why)


def judged(check: str, wrong: str, advice: str, grade: Grade = Grade.BAD) -> Finding:
    """Returns a finding about what is wrong; a good one if that is empty."""
    return Finding("", check, grade, wrong, advice) if wrong else ok(check)
