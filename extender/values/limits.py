"""Every bound on what comes in, in one table. `make docs` prints it as docs/reference/limits.md.

Inputs are bounded at four doors: objects of the cluster, bodies of the verbs, questions, and configuration. Inside the
doors code is plain: it bounds neither time nor memory again. The last two doors are what comes back from servers that
we call, and what an answer shows or keeps.

A `Limit` is an int, so that code compares with it: `if len(body) > limits.QUESTION_BYTES`.
"""

from enum import StrEnum
from typing import Final, final


class Door(StrEnum):
    """Where an input comes in."""

    OBJECTS = "Objects of the cluster"
    VERBS = "Bodies of the extender verbs"
    QUESTIONS = "Questions"
    CONFIGURATION = "Configuration and files"
    SERVERS = "Answers of servers that are called"
    ANSWERS = "What answers show, and what is kept"


@final
class Limit(int):
    """A bound, as a row of the table."""

    door: Door
    what: str
    """What is counted, with its unit."""
    told: str
    """What happens to an input beyond it, and what the caller is told."""

    def __new__(cls, door: Door, value: int, what: str, told: str) -> "Limit":
        limit = super().__new__(cls, value)
        limit.door, limit.what, limit.told = door, what, told
        return limit


# Objects of the cluster: informers and the API of the cluster of its own.

DEMANDS: Final = Limit(
    Door.OBJECTS,
    64 * 2**10,
    "bytes of what a waiting pod demands: the fields that plugins read, its claims included",
    "the pod stays pending, with an event that says so",
)

# Bodies of the verbs.

QUESTION_BYTES: Final = Limit(Door.QUESTIONS, 16 * 2**20, "bytes of the body of a question", "413 with the figures")
