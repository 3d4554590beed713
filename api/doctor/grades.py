"""The findings of an examination."""

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
    """One check of one verb, and its outcome."""

    verb: str
    check: str
    """What a healthy extender does, as a sentence."""
    grade: Grade
    detail: str = ""
    """What was seen instead."""
    advice: str = ""
    """What to do."""


def ok(verb: str, check: str, detail: str = "") -> Finding:
    return Finding(verb, check, Grade.OK, detail)


def bad(verb: str, check: str, detail: str, advice: str = "") -> Finding:
    return Finding(verb, check, Grade.BAD, detail, advice)


def warning(verb: str, check: str, detail: str, advice: str = "") -> Finding:
    """Returns a finding that should be mended, though kube-scheduler is not misled."""
    return Finding(verb, check, Grade.WARNING, detail, advice)


def skipped(verb: str, check: str, why: str) -> Finding:
    return Finding(verb, check, Grade.SKIPPED, why)
