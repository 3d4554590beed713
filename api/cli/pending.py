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

    async def ask(answers: Answers) -> Pending:
        return of_namespace(await answers.ask(PendingQuestion()), namespace)

    async def ask_names(answers: Answers) -> Queue:
        queue = await answers.ask(QueueQuestion())
        return replace(queue, items=tuple(place for place in queue.items if namespace in (None, place.pod.namespace)))

    if output == "name":
        source.show(ask_names, output, _names, watch=watch)
    else:
        source.show(ask, output, _in_rows if no_headers else partial(_in_words, namespace), watch=watch)


def of_namespace(answer: Pending, namespace: str | None) -> Pending:
    """Returns the part about a namespace; all of it without one."""
    if namespace is None:
        return answer
    reasons = []
    for reason in answer.reasons:
        workloads = tuple(workload for workload in reason.workloads if workload.namespace == namespace)
        if workloads:
            reasons.append(replace(reason, workloads=workloads, pods=sum(workload.pods for workload in workloads)))
    return replace(answer, reasons=tuple(reasons), pods=sum(reason.pods for reason in reasons), lacking=())


def _names(console: Console, queue: Queue, _: bool) -> None:
    for place in queue.items:
        if not place.pod.hidden:
            console.print(name_of(place.pod))


def _in_rows(console: Console, answer: Pending, wide: bool) -> None:
    pairs = ((workload, reason.reason) for reason in answer.reasons for workload in reason.workloads)
    rows = ((*_cells(workload, wide=wide), reason) for workload, reason in pairs)
    console.print(table(*[""] * 6, rows=rows, has_head=False))


def _in_words(namespace: str | None, console: Console, answer: Pending, wide: bool) -> None:
    if not answer.pods:
        console.print(f"No pending pods{f' in the namespace {namespace}' if namespace else ''}.", style="bold green")
        return
    reasons = plural(len(answer.reasons), "reason")
    console.print(f"{plural(answer.pods, 'pending pod')}, {reasons}", style="bold")
    if answer.lacking:
        short = ", ".join(f"{lack.resource} ({plural(lack.pods, 'pod')})" for lack in answer.lacking)
        console.print(f"short of: {short}")
    for reason in answer.reasons:
        console.print(heading(f"{plural(reason.pods, 'pod')}: {reason.reason}"))
        for claim in reason.claims:
            console.print(f"note: {claim}", style="dim")
        listed_workloads = reason.workloads if wide else reason.workloads[:SHOWN_WORKLOADS]
        rows = (_cells(workload, wide=wide) for workload in listed_workloads)
        headings = ("pods", "workload", "priority", age_or_time(wide), "for example")
        console.print(table(*headings, rows=rows, less_important=(age_or_time(wide), "priority")))
        left_out = len(reason.workloads) - len(listed_workloads)
        if left_out:
            console.print(f"and {plural(left_out, 'more workload')}; -o wide lists all")


def _cells(workload: PendingWorkload, *, wide: bool) -> tuple[str, ...]:
    examples = first_of([name_of(pod) for pod in workload.first], 5 if wide else 1)
    return (
        str(workload.pods),
        workload_words(workload),
        str(workload.priority),
        age(workload.since, wide=wide),
        examples,
    )


def workload_words(workload: PendingWorkload) -> str:
    """Returns namespace/name and the kind, as far as there is a controller and the caller may see it."""
    if not workload.namespace:
        return "(other namespaces)"
    kind, _, name = workload.workload.partition("/")
    return f"{workload.namespace}/{name} ({kind})" if workload.workload else f"{workload.namespace} (no controller)"
