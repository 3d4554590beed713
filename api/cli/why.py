"""`reprieve why`: why is this pod pending?"""

import asyncio
from typing import Final

from rich.console import Console
from rich.text import Text

from api.cli.pod_names import PodArgument, pod_named
from api.cli.showing import Output, OutputOption, first_of, heading, name_of, plural, show, table, victims_table
from api.cli.sources import Source, SourceOptions
from api.fatal_errors import StartUpError
from extender.answers.phrases import noun, why_no_room
from extender.answers.types import Attempt, Explanation, GroupOutcome, Lack, PreemptionAnswer, QueuePlace
from extender.objects.resource_amounts import in_words

SHOWN_MEMBERS: Final = 10
"""Members of a pod group that are listed without `-o wide`."""


def why(
    pod: PodArgument,
    *,
    source: SourceOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show why a pod is pending: what nodes lack, what the pod waits for, its last attempts, and what would help.

    `-o wide` adds each plugin's verdict about each node, and the scores.
    """
    key = pod_named(pod, source)
    answer = asyncio.run(_asked(source, *key, output is not Output.TABLE))
    if answer is None:
        raise StartUpError(f"there is no pod {'/'.join(key)}, and no recent decision about one")
    show(answer, output, _in_words)


async def _asked(source: Source, namespace: str, name: str, picture: bool) -> Explanation | None:
    async with source.open() as asked:
        return await asked.explain(namespace, name, picture=picture)


def _in_words(console: Console, answer: Explanation, wide: bool) -> None:
    console.print(Text.assemble((name_of(answer.pod), "bold"), f"  {_state(answer)}"))
    console.print(answer.summary)
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"))
    if answer.message:
        console.print(Text(answer.message, style="dim"))
    if answer.waterfall:
        console.print(heading(plural(answer.total_nodes, "node")))
        steps = table("refused", "left", "plugin", "reason")
        for step in answer.waterfall:
            for place, reason in enumerate(step.reasons):
                left = str(step.left) if place == len(step.reasons) - 1 else ""
                steps.add_row(str(reason.nodes), left, step.plugin if place == 0 else "", reason.reason)
        console.print(steps)
    if answer.nearest:
        console.print(heading("Nearest"))
        nearest = table("node", "lacks", "refused by", *(("reasons",) if wide else ()))
        for node in answer.nearest:
            lacks = ", ".join(map(_lack, node.lacks))
            nearest.add_row(node.node, lacks, ", ".join(node.plugins), *((", ".join(node.reasons),) if wide else ()))
        console.print(nearest)
    if answer.fixes:
        console.print(heading("It would fit if"))
        fixes = table("change", "nodes", "for example")
        for fix in answer.fixes:
            fixes.add_row(fix.text, str(fix.opens), first_of(fix.nodes))
        console.print(fixes)
    if answer.scores and (wide or not answer.node):
        console.print(heading("Best nodes now"))
        scores = table("node", "score", "by plugin")
        for score in answer.scores:
            scores.add_row(score.node, str(score.total), ", ".join(f"{plugin} {points}" for plugin, points in score.plugins.items()))
        console.print(scores)
    if answer.preemption is not None:
        _preemption(console, answer.preemption, wide=wide)
    if answer.group is not None:
        _group(console, answer.group, wide=wide)
    if answer.queue is not None:
        _queue(console, answer.queue)
    if answer.preempted_by is not None:
        made = answer.preempted_by
        console.print(heading("Preempted"))
        console.print(f"{made.time} on {made.node}, for {name_of(made.by)} (priority {made.by.priority})")
    if answer.attempts:
        _attempts(console, answer.attempts)
    if wide and answer.picture is not None:
        console.print(heading("Every node"))
        verdicts = table("node", *answer.picture.plugins)
        for name, cells in zip(answer.picture.nodes, answer.picture.cells, strict=True):
            words = [
                ", ".join(answer.picture.verdicts[cell].reasons) or answer.picture.verdicts[cell].code if cell >= 0 else ""
                for cell in cells
            ]
            verdicts.add_row(name, *words)
        console.print(verdicts)


def _lack(lack: Lack) -> str:
    asks, free, short = (in_words(lack.resource, amount) for amount in (lack.asks, lack.free, lack.short))
    return f"{short} {noun(lack)} (requests {asks}, {free} free)"


def _state(answer: Explanation) -> str:
    where = f" on {answer.node}" if answer.node else ""
    attempts = answer.queue.attempts if answer.queue is not None else 0
    return f"{answer.state}{where}" + (f" · {plural(attempts, 'attempt')}" if attempts else "")


def _group(console: Console, group: GroupOutcome, *, wide: bool) -> None:
    console.print(heading(f"Pod group {group.name}: {group.fits} of {plural(group.members, 'pod')} fit"))
    lines = table("pod", "node", "message")
    for member in group.pods if wide else group.pods[:SHOWN_MEMBERS]:
        lines.add_row(name_of(member.pod), member.node, member.message)
    console.print(lines)
    if not wide and len(group.pods) > SHOWN_MEMBERS:
        console.print(f"and {plural(len(group.pods) - SHOWN_MEMBERS, 'more pod')}; -o wide lists all")
    if group.evicts:
        console.print(f"{plural(len(group.evicts), 'pod')} would be evicted for it:")
        console.print(victims_table(group.evicts, wide=wide))


def _preemption(console: Console, answer: PreemptionAnswer, *, wide: bool) -> None:
    console.print(heading("Preemption"))
    if not answer.node:
        console.print(why_no_room(answer))
        for each in answer.not_helpful:
            console.print(Text(f"{plural(each.nodes, 'node')}: {each.reason}", style="dim"))
        return
    budget = f", {plural(answer.num_pdb_violations, 'PodDisruptionBudget violation')}" if answer.num_pdb_violations else ""
    console.print(f"{plural(len(answer.victims), 'pod')} on {answer.node} would be evicted{budget}:")
    console.print(victims_table(answer.victims, wide=wide))
    losers = [each for each in answer.candidates if each.node != answer.node]
    if losers:
        console.print(f"other candidates: {plural(answer.num_candidates - 1, 'node')}")
        others = table("node", "victims", "why not")
        for candidate in losers if wide else losers[:5]:
            others.add_row(candidate.node, str(len(candidate.victims)), candidate.why_not)
        console.print(others)


def _queue(console: Console, place: QueuePlace) -> None:
    console.print(heading("In the queue"))
    parts = [f"{place.queue}, number {place.position}" if place.position else place.queue]
    if place.gated_by:
        parts.append(f"gated by {place.gated_by}")
    if place.backoff_ends:
        parts.append(f"retried at {place.backoff_ends}")
    if place.refused_by:
        parts.append(f"refused by {', '.join(place.refused_by)}")
    console.print("; ".join(parts))
    if place.wakes_on:
        console.print("retried on " + ", ".join(f"{event.event} ({', '.join(event.plugins)})" for event in place.wakes_on))


def _attempts(console: Console, attempts: tuple[Attempt, ...]) -> None:
    console.print(heading("Attempts"))
    lines = table("time", "outcome", "node", "feasible", "triggered by", "message")
    for attempt in attempts:
        feasible = f"{attempt.feasible}/{attempt.evaluated}" if attempt.evaluated else ""
        lines.add_row(attempt.time, attempt.outcome, attempt.node, feasible, attempt.woken_by or attempt.caller, attempt.message)
    console.print(lines)
