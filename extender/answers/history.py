"""What was recorded, as answers: worked out of packed arrays when somebody asks."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import numpy as np

from extender.answers.explain.preemption import why_not
from extender.answers.explain.verdict_tables import reason_counts
from extender.answers.types import (
    Attempt,
    CandidateNode,
    NodePicture,
    NodeScore,
    PluginVerdict,
    PodName,
    PreemptionAnswer,
    PreemptionRecord,
    ReasonCount,
    Victim,
    WaterfallStep,
)
from extender.framework import Code
from extender.golang.times import rfc3339
from extender.preemption.costs import Costs
from extender.records.arrays import KeptVerdicts
from extender.records.kept import AttemptMade, Details, KeptAttempt, Leaving, PodId, PreemptionMade, Room
from extender.snapshot.axes import Mask

BEST_NODES: Final = 16
"""Scores shown of an attempt."""
EXTENDERS: Final = "extenders"
"""Stands for the extenders that the configuration names, in the place of a plugin."""


def attempt_answer(attempt: KeptAttempt, *, picture: bool = False) -> Attempt:
    """The attempt, with as much as is still kept of it.

    Arguments:
        picture: with the plugin that refused each node, too.
    """
    made, details = attempt.made, attempt.details or Details()
    best = details.scores.best(BEST_NODES, made.node) if details.scores is not None else details.best
    return Attempt(
        id=made.id,
        time=_time(made.time),
        pod=_pod(made.pod),
        profile=made.profile,
        number=made.number,
        outcome=made.outcome,
        node=made.node,
        message=made.message,
        evaluated=made.evaluated,
        feasible=made.feasible,
        seconds=round(made.seconds, 6),
        woken_by=made.woken_by,
        waterfall=_waterfall(details.verdicts, refuses_all=made.feasible == 0) if details.verdicts is not None else (),
        scores=tuple(NodeScore(node=node, total=total) for node, total in best),
        preemption=_preemption(made, attempt.preemption, details),
        picture=_picture(details.verdicts) if picture and details.verdicts is not None and details.verdicts.num_rows else None,
    )


def preemption_answer(made: PreemptionMade) -> PreemptionRecord:
    """The preemption, with the best of the nodes that were not chosen."""
    return PreemptionRecord(
        id=made.id,
        time=_time(made.time),
        by=_pod(made.by),
        node=made.node,
        victims=tuple(map(_victim, made.victims)),
        num_pdb_violations=made.num_pdb_violations,
        candidates=_candidates(made.candidates, made.node),
        num_candidates=made.num_candidates,
        outcome=made.outcome,
    )


# Verdicts.


def _waterfall(verdicts: KeptVerdicts, *, refuses_all: bool) -> tuple[WaterfallStep, ...]:
    """A step for each plugin that refused nodes; what was left in the end passed.

    Arguments:
        refuses_all: whatever the Filters let pass, extenders refused.
    """
    left = len(verdicts.nodes.names)
    if verdicts.pre_filter is not None:
        plugin, message, for_good = verdicts.pre_filter
        who = plugin or ", ".join(verdicts.narrowed_by)
        reasons = (ReasonCount(reason=message, nodes=left),) if message else ()
        return (WaterfallStep(plugin=who, reasons=reasons, refused=left, unresolvable=left if for_good else 0, left=0),)
    steps: list[WaterfallStep] = []
    outside, left = left - verdicts.num_rows, verdicts.num_rows
    if outside and verdicts.narrowed_by:  # or else nobody asked about them
        why = ReasonCount(reason=f"node(s) didn't satisfy plugin(s) [{' '.join(verdicts.narrowed_by)}]", nodes=outside)
        who = ", ".join(verdicts.narrowed_by)
        steps.append(WaterfallStep(plugin=who, reasons=(why,), refused=outside, unresolvable=outside, left=left))
    masks = [(reason, verdicts.mask(bits)) for reason, bits in verdicts.reasons]
    unresolvable = verdicts.mask(verdicts.unresolvable)
    for plugin, refused in _refused_first(verdicts):
        counts = Counter({reason: int((mask & refused).sum()) for reason, mask in masks})
        left -= (here := int(refused.sum()))
        hopeless = int((unresolvable & refused).sum())
        steps.append(WaterfallStep(plugin=plugin, reasons=reason_counts(+counts), refused=here, unresolvable=hopeless, left=left))
    if refuses_all and left and verdicts.by_extenders:
        counts = Counter({reason: nodes for reason, nodes, _ in verdicts.by_extenders})
        hopeless = min(left, sum(number for _, _, number in verdicts.by_extenders))
        steps.append(WaterfallStep(plugin=EXTENDERS, reasons=reason_counts(counts), refused=left, unresolvable=hopeless, left=0))
    return tuple(steps)


def _picture(verdicts: KeptVerdicts) -> NodePicture:
    """Every node, and the plugin that refused it: the first one, for the others were not asked then."""
    nodes, asked = verdicts.nodes.names, verdicts.asked()
    plugins = tuple(dict.fromkeys(plugin for plugin, _ in verdicts.refused_by))
    distinct: dict[tuple[str, str, tuple[str, ...]], int] = {}
    cells = [[-1] * len(plugins) for _ in nodes]
    reasons = [(reason, verdicts.mask(bits)) for reason, bits in verdicts.reasons]
    codes = _codes(verdicts)
    for plugin, refused in _refused_first(verdicts):
        column = plugins.index(plugin)
        for row in np.flatnonzero(refused).tolist():
            verdict = plugin, codes[row], tuple(reason for reason, mask in reasons if mask[row])
            cells[int(asked[row])][column] = distinct.setdefault(verdict, len(distinct))
    return NodePicture(
        plugins=plugins,
        nodes=nodes,
        verdicts=tuple(PluginVerdict(plugin=plugin, code=code, reasons=texts) for plugin, code, texts in distinct),
        cells=tuple(map(tuple, cells)),
    )


def _refused_first(verdicts: KeptVerdicts) -> Iterable[tuple[str, Mask]]:
    """(plugin, (B,) the nodes that it refused before any other did), each plugin once."""
    together: dict[str, Mask] = {}
    so_far = np.zeros(verdicts.num_rows, np.bool_)
    for plugin, bits in verdicts.refused_by:
        first = verdicts.mask(bits) & ~so_far
        so_far |= first
        together[plugin] = together[plugin] | first if plugin in together else first
    return together.items()


def _codes(verdicts: KeptVerdicts) -> list[str]:
    """(B,) what each node's refusal is called; that of nodes that passed means nothing."""
    codes = np.full(verdicts.num_rows, Code.UNSCHEDULABLE)
    codes[verdicts.mask(verdicts.unresolvable)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    if verdicts.pending is not None:
        codes[verdicts.mask(verdicts.pending)] = Code.PENDING
    return [str(Code(code)) for code in codes.tolist()]


# Preemption.


def _preemption(made: AttemptMade, found: PreemptionMade | None, details: Details) -> PreemptionAnswer | None:
    not_helpful = tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in details.not_helpful)
    if found is None:
        if made.may_preempt and not made.no_preemption:
            return None
        return PreemptionAnswer(eligible=made.may_preempt, message=made.no_preemption, not_helpful=not_helpful)
    return PreemptionAnswer(
        eligible=True,
        node=found.node,
        victims=tuple(map(_victim, found.victims)),
        num_pdb_violations=found.num_pdb_violations,
        candidates=_candidates(found.candidates, found.node),
        num_candidates=found.num_candidates,
        not_helpful=not_helpful,
    )


def _candidates(rooms: tuple[Room, ...], chosen: str) -> tuple[CandidateNode, ...]:
    won = next((room for room in rooms if room.node == chosen and room.costs), None)
    return tuple(
        CandidateNode(
            node=room.node,
            victims=tuple(map(_victim, room.victims)),
            num_pdb_violations=room.num_pdb_violations,
            why_not="" if won is None or room is won or not room.costs else why_not(Costs(*room.costs), Costs(*won.costs), chosen),
        )
        for room in rooms
    )


def _victim(leaving: Leaving) -> Victim:
    return Victim(
        pod=_pod(leaving.pod),
        started=leaving.started,
        owner=leaving.owner,
        violates=leaving.violates,
        cpu=leaving.cpu,
        memory=leaving.memory,
    )


def _pod(pod: PodId) -> PodName:
    return PodName(namespace=pod.namespace, name=pod.name, uid=pod.uid, priority=pod.priority)


def _time(seconds: float) -> str:
    """RFC 3339 with milliseconds: attempts come by the thousand a second."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC), "milliseconds")
