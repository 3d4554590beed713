"""`reprieve pending`: which pods wait, and for what?"""

from functools import partial

from msgspec.structs import replace
from rich.console import Console

from api.cli.showing import (
    AllNamespacesOption,
    ListOutputOption,
    NoHeadersOption,
    WatchOption,
    age,
    age_or_time,
    first_of,
    heading,
    name_of,
    table,
)
from api.cli.sources import Answers, SourceOptions
from extender.answers.catalogue import PendingQuestion, QueueQuestion
from extender.answers.pending import Pending, PendingWorkload
from extender.answers.phrases import plural
from extender.answers.types import Queue

SHOWN_WORKLOADS = 8
"""Workloads of a reason that are listed without `-o wide`."""


def pending(
    *,
    all_namespaces: AllNamespacesOption = False,
    source: SourceOptions,
    output: ListOutputOption = "table",
    no_headers: NoHeadersOption = False,
    watch: WatchOption = False,
) -> None:
    """List the pods that wait, by what keeps them from their nodes and by workload.

    `reprieve why` on one of them says more: what the nearest nodes lack, and what would help. -n shows one
    namespace. `-o name` prints the pods, as `why` takes them.
    """
    namespace = source.only_namespace(all_namespaces=all_namespaces)

    async def ask(asked: Answers) -> Pending:
        return within(await asked.ask(PendingQuestion()), namespace)

    async def ask_names(asked: Answers) -> Queue:
        queue = await asked.ask(QueueQuestion())
        return replace(queue, items=tuple(each for each in queue.items if namespace in (None, each.pod.namespace)))

    if output == "name":
        source.show(ask_names, output, _names, watch=watch)
    else:
        source.show(ask, output, _in_rows if no_headers else partial(_in_words, namespace), watch=watch)


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


def _names(console: Console, queue: Queue, _: bool) -> None:
    for each in queue.items:
        if not each.pod.hidden:
            console.print(name_of(each.pod))


def _in_rows(console: Console, answer: Pending, wide: bool) -> None:
    found = ((each, reason.reason) for reason in answer.reasons for each in reason.workloads)
    rows = ((*_cells(each, wide=wide), reason) for each, reason in found)
    console.print(table(*[""] * 6, rows=rows, has_head=False))


def _in_words(namespace: str | None, console: Console, answer: Pending, wide: bool) -> None:
    if not answer.pods:
        console.print(f"No pending pods{f' in the namespace {namespace}' if namespace else ''}.", style="bold green")
        return
    reasons = plural(len(answer.reasons), "reason")
    console.print(f"{plural(answer.pods, 'pending pod')}, {reasons}", style="bold")
    if answer.lacking:
        short = ", ".join(f"{each.resource} ({plural(each.pods, 'pod')})" for each in answer.lacking)
        console.print(f"short of: {short}")
    for reason in answer.reasons:
        console.print(heading(f"{plural(reason.pods, 'pod')}: {reason.reason}"))
        for claim in reason.claims:
            console.print(f"note: {claim}", style="dim")
        shown = reason.workloads if wide else reason.workloads[:SHOWN_WORKLOADS]
        rows = (_cells(each, wide=wide) for each in shown)
        headings = ("pods", "workload", "priority", age_or_time(wide), "for example")
        console.print(table(*headings, rows=rows, less_important=(age_or_time(wide), "priority")))
        left_out = len(reason.workloads) - len(shown)
        if left_out:
            console.print(f"and {plural(left_out, 'more workload')}; -o wide lists all")


def _cells(each: PendingWorkload, *, wide: bool) -> tuple[str, ...]:
    examples = first_of([name_of(pod) for pod in each.first], 5 if wide else 1)
    return str(each.pods), workload_words(each), str(each.priority), age(each.since, wide=wide), examples


def workload_words(each: PendingWorkload) -> str:
    """Returns namespace/name and the kind, as far as there is a controller and the caller may see it."""
    if not each.namespace:
        return "(other namespaces)"
    kind, _, name = each.workload.partition("/")
    return f"{each.namespace}/{name} ({kind})" if each.workload else f"{each.namespace} (no controller)"
