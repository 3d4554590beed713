"""`reprieve pending`: which pods wait, and for what?"""

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from api.cli.showing import (
    Output,
    OutputOption,
    WatchOption,
    first_of,
    heading,
    plural,
    table,
)
from api.cli.sources import Answers, SourceOptions
from extender.answers.catalogue import PendingQuestion
from extender.answers.pending import Pending, PendingWorkload

SHOWN_WORKLOADS = 8
"""Workloads of a reason that are listed without `-o wide`."""


def pending(
    *,
    source: SourceOptions,
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
) -> None:
    """List the pods that wait, by what keeps them from their nodes and by workload.

    `reprieve why` on one of them says more: what the nearest nodes lack, and what would help. -n leaves out other
    namespaces.
    """

    async def ask(asked: Answers) -> Pending:
        return within(await asked.ask(PendingQuestion()), source.namespace)

    source.show(ask, output, _in_words, watch=watch)


def within(answer: Pending, namespace: str | None) -> Pending:
    """Returns the part about a namespace; all of it without one."""
    if namespace is None:
        return answer
    reasons = []
    for reason in answer.reasons:
        workloads = tuple(each for each in reason.workloads if each.namespace == namespace)
        if workloads:
            reasons.append(replace(reason, workloads=workloads, pods=sum(each.pods for each in workloads)))
    return replace(answer, reasons=tuple(reasons), pods=sum(each.pods for each in reasons), lacking=())


def _in_words(console: Console, answer: Pending, wide: bool) -> None:
    if not answer.pods:
        console.print(Text("No pod waits.", style="bold green"))
        return
    reasons = plural(len(answer.reasons), "reason")
    console.print(
        Text(f"{plural(answer.pods, 'pod')} {'waits' if answer.pods == 1 else 'wait'}, for {reasons}", style="bold")
    )
    if answer.lacking:
        short = ", ".join(f"{each.resource} ({plural(each.pods, 'pod')})" for each in answer.lacking)
        console.print(f"short of: {short}")
    for reason in answer.reasons:
        console.print(heading(f"{plural(reason.pods, 'pod')}: {reason.reason}"))
        for claim in reason.claims:
            console.print(Text(f"note: {claim}", style="dim"))
        lines = table("pods", "workload", "priority", "since", "for example", less_important=("since", "priority"))
        shown = reason.workloads if wide else reason.workloads[:SHOWN_WORKLOADS]
        for each in shown:
            names = [pod.name for pod in each.first]
            lines.add_row(
                str(each.pods), _workload(each), str(each.priority), each.since or "", first_of(names, 5 if wide else 1)
            )
        console.print(lines)
        left_out = len(reason.workloads) - len(shown)
        if left_out:
            console.print(f"and {plural(left_out, 'more workload')}; -o wide lists all")


def _workload(each: PendingWorkload) -> str:
    if not each.namespace:
        return "(other namespaces)"
    kind, _, name = each.workload.partition("/")
    return f"{each.namespace}/{name} ({kind})" if each.workload else each.namespace
