"""Agreement: how often a shadow decides as the scheduler that it follows does, and where it does not."""

from typing import Final, Literal, final

from extender.answers.catalogue import Limit, Question, Row
from extender.answers.parts import PodName
from extender.answers.types import Answer
from extender.engine.reporter import Decided

DifferenceKind = Literal[
    "elsewhere", "kept-waiting", "room", "freed-elsewhere", "would-evict", "would-not-evict", "spared"
]
"""What the shadow would have done about a pod: placed it on another node; found no node for it; found room where the
scheduler found none; preempted on another node; preempted where the scheduler did not; not preempted where it did; not
evicted it.
"""


@final
class Difference(Answer, frozen=True, kw_only=True):
    """A pod about which the shadow would have decided otherwise."""

    time: str
    pod: PodName
    kind: DifferenceKind
    shape: str
    """What the pod asks for besides resources, such as `spread + volumes`; `plain` if nothing."""
    plugin: str = ""
    """The plugin of the shadow's profile that made the difference; empty where none of them did."""
    reason: str = ""
    """One sentence: what that plugin says, or what the scheduler said."""
    theirs: Decided
    ours: Decided
    is_clear: bool = True
    """False where the shadow decides as the scheduler did if what happened within a second comes in another order."""
    victims: tuple[PodName, ...] = ()
    """The pods that are named in either decision."""
    preemptor: PodName | None = None
    """For whom a pod was evicted that the shadow would have spared."""


@final
class AgreementShare(Answer, frozen=True, kw_only=True):
    """How often the decisions of one sort agree."""

    name: str
    decisions: int
    same: int
    ties: int
    unclear: int
    different: int
    agreement: float | None
    """The part of 1 of the clear decisions that are the same or a tie; None if none is clear."""


@final
class ShadowCosts(Answer, frozen=True, kw_only=True):
    """What the shadow takes from the process."""

    seconds: float
    """Processor time spent deciding, in all."""
    per_decision: float
    """The same for each decision, looks at other orders of events included."""
    behind: float
    """For how many seconds the next change has waited beyond what it has to; nothing is decided by a shadow that is far
    behind.
    """
    waiting: int
    """Changes that wait to be looked at."""


@final
class Agreement(Answer, frozen=True, kw_only=True):
    """The answer of GET /v1/agreement: how far a shadow decides as the scheduler does."""

    configuration: str
    """What decides in the shadow: the path of a file, or `default`."""
    since: str
    """When the shadow began to compare."""
    until: str
    total: AgreementShare
    not_decided: int
    """Decisions that could not be compared; the notes say why."""
    by_kind: dict[str, int]
    """The differences by what the shadow would have done, unclear ones included."""
    by_plugin: tuple[AgreementShare, ...]
    """For each plugin, the decisions in which it had a say; different are those in which it made the difference."""
    by_shape: tuple[AgreementShare, ...]
    """By what the pods ask for."""
    by_reason: tuple[AgreementShare, ...]
    """The pods that the scheduler could not place, by the reason that it gave for most nodes; and those that it placed.
    """
    evicted: int
    """Pods that the scheduler evicted for others."""
    spared: int
    """Those of them that the shadow would have left alone."""
    differences: tuple[Difference, ...]
    """The last differences, with the newest first."""
    costs: ShadowCosts
    notes: tuple[str, ...] = ()


_NO_SHADOW: Final = ("agreements", "no decisions are compared: start the service with --shadow")


@final
@Row("GET /agreement", "agreement", "How often, and where not; newest differences first.", lacking=_NO_SHADOW)
class AgreementQuestion(Question[Agreement | None], frozen=True):
    """Would this configuration decide the same?

    Says how often the shadow decides as the scheduler of the cluster does, and about which pods it does not, and
    why.
    """

    limit: Limit = 100
