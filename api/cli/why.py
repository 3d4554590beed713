"""`reprieve why`: why is this pod pending?"""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Final, Literal, final

import typer
from rich.console import Console
from rich.text import Text

from api.cli.names import completed
from api.cli.showing import (
    WatchOption,
    age,
    age_or_time,
    first_of,
    heading,
    name_of,
    print_losers,
    table,
    victims_table,
)
from api.cli.sources import Answers, Source, SourceOptions, pod_named, workload_named
from api.cli.who_preempted import print_preemption
from extender.answers.catalogue import ExplainOfQuestion, ExplainQuestion, FindQuestion, PodsQuestion
from extender.answers.overviews import PodList
from extender.answers.phrases import alone_would_evict, guess, happened, its_scheduler, loss, noun, plural, why_no_room
from extender.answers.stories import Story
from extender.answers.types import Answer, Explanation, GroupOutcome, Lack, PreemptionAnswer, QueuePlace
from extender.values import limits
from extender.values.objects.resource_amounts import in_words
from reprieve.errors import NegativeError, StartUpError

SHOWN_MEMBERS: Final = 10
"""Pods of a group or of a workload that are listed without `-o wide`."""


@final
class ExplainedPods(Answer, frozen=True, kw_only=True):
    """Pods of a workload or with certain labels, and why the first of them is pending, or on its node."""

    pods: PodList
    first: Explanation | None


def why(
    pod: Annotated[
        str | None,
        typer.Argument(
            help="[NAMESPACE/]POD, or KIND/NAME of a workload: deploy/web, job/train.",
            metavar="[NAME]",
            autocompletion=completed("pods", lambda: Source),
        ),
    ] = None,
    *,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Pods with these labels, such as app=web, in one namespace.")
    ] = "",
    filename: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", help="A pod or workload that does not exist yet; - reads standard input."),
    ] = None,
    source: SourceOptions,
    output: Annotated[
        Literal["table", "wide", "json", "yaml", "html"],
        typer.Option("--output", "-o", help="table, wide, json, yaml, or html: one file, for an incident."),
    ] = "table",
    watch: WatchOption = False,
) -> None:
    """Show why a pod is pending: what nodes lack, what the pod waits for, what would help, and what happened to it.

    Also of a pod that is gone. For a workload or a selector, the first pending pod is explained and the others are
    listed. `-o wide` adds what each plugin says of each node, each plugin's scores, and the events that make the
    scheduler try the pod again; `-o html` makes a page of its own.
    """
    if [pod is not None, bool(selector), bool(filename)].count(True) != 1:
        raise StartUpError(
            "give a pod, a workload (deploy/NAME), labels (-l app=web) or a file (-f pod.yaml): one of them"
        )
    in_words = _in_html if output == "html" else _in_words
    picture, workload = output != "table", None if pod is None else workload_named(pod)
    if workload is not None or selector:
        if output == "html":
            raise StartUpError("-o html shows one pod: give its name")
        kind_and_name = "" if workload is None else "/".join(workload)
        several = partial(
            _of_several, namespace=source.default_namespace, workload=kind_and_name, selector=selector, picture=picture
        )
        source.show(several, output, _several_in_words, watch=watch)
    elif filename:
        objects = source.objects(filename)
        listed = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
        question = ExplainOfQuestion(obj=listed, picture=picture)
        source.in_namespace_of(objects[0]).show(lambda answers: answers.ask(question), output, in_words, watch=watch)
    else:
        namespace, name = pod_named(pod or "", source)
        source = replace(source, namespace=namespace)
        of_one = partial(_of_one, namespace=namespace, name=name, picture=picture)
        source.show(of_one, output, in_words, watch=watch)


async def _of_one(answers: Answers, namespace: str, name: str, *, picture: bool) -> Explanation:
    answer = await answers.ask(
        ExplainQuestion(namespace=namespace, pod=name, picture=picture, events=not answers.remembers)
    )
    if answer is None:
        elsewhere = await _elsewhere(answers, "pod", name)
        raise NegativeError(f"there is no pod {namespace}/{name}, and no recent decision about one{elsewhere}")
    return answer


async def _elsewhere(answers: Answers, kind: str, name: str) -> str:
    """Returns in which other namespaces there is such a thing, or which pod may be meant, as a part of a sentence."""
    matches = await answers.ask(FindQuestion(query=name.rpartition("/")[2]))
    namespaces = [match.namespace for match in matches.items if (match.kind, match.name) == (kind, name)]
    if namespaces:
        return f"; there is one in {first_of(namespaces)}: -n {namespaces[0]}"
    return guess(matches, kind, "", name) if kind == "pod" else ""


async def _of_several(
    answers: Answers, namespace: str, workload: str, selector: str, *, picture: bool
) -> ExplainedPods:
    question = PodsQuestion(namespace=namespace, workload=workload, selector=selector, limit=limits.PODS_LISTED)
    pod_list = await answers.ask(question)
    if not pod_list.items and workload:
        elsewhere = await _elsewhere(answers, "workload", workload)
        raise NegativeError(f"there is no pod of {workload} in the namespace {namespace}{elsewhere}")
    if not pod_list.items:
        raise NegativeError(f"no pod in {namespace} matches {selector}")
    first = pod_list.items[0].pod
    why_first = ExplainQuestion(
        namespace=first.namespace, pod=first.name, picture=picture, events=not answers.remembers
    )
    return ExplainedPods(pods=pod_list, first=await answers.ask(why_first))


def _several_in_words(console: Console, answer: ExplainedPods, wide: bool) -> None:
    waiting = [row for row in answer.pods.items if not row.node]
    # Pods that wait come first, so that those that are not listed have nodes.
    total = plural(answer.pods.total, "pod")
    who = (
        f"{len(waiting)} of {total} {'is' if len(waiting) == 1 else 'are'} pending"
        if waiting
        else f"None of the {total} is pending"
    )
    console.print(who, style="bold red" if waiting else "bold green")
    lines = table("pod", "node", "workload", age_or_time(wide), less_important=(age_or_time(wide), "workload"))
    listed_pods = answer.pods.items if wide else answer.pods.items[:SHOWN_MEMBERS]
    for row in listed_pods:
        node = row.node or Text("pending", style="red")
        lines.add_row(name_of(row.pod), node, row.workload, age(row.since, wide=wide))
    console.print(lines)
    if len(listed_pods) < answer.pods.total:
        console.print(
            f"and {plural(answer.pods.total - len(listed_pods), 'more pod')}; -o wide lists up to {limits.PODS_LISTED}"
        )
    if answer.first is not None:
        console.print()
        _in_words(console, answer.first, wide)


def _in_words(console: Console, answer: Explanation, wide: bool) -> None:
    console.print(Text.assemble((name_of(answer.pod), "bold"), f"  {_state(answer)}"))
    console.print(answer.summary)
    if its := its_scheduler(answer):
        console.print(f"its scheduler: {its}")
    for note in answer.notes:
        console.print(f"note: {note}", style="dim")
    if answer.message:
        console.print(answer.message, style="dim")
    if answer.waterfall:
        console.print(heading(plural(answer.total_nodes, "node")))
        steps = table("refused", "left", "plugin", "reason")
        for step in answer.waterfall:
            for place, reason in enumerate(step.reasons):
                nodes_left = str(step.left) if place == len(step.reasons) - 1 else ""
                steps.add_row(str(reason.nodes), nodes_left, step.plugin if place == 0 else "", reason.reason)
        console.print(steps)
    if answer.nearest:
        console.print(heading("Nearest"))
        nearest = table("node", "lacks", "refused by", *(("reasons",) if wide else ()), less_important=("refused by",))
        for node in answer.nearest:
            lacks = ", ".join(map(_lack, node.lacks))
            nearest.add_row(node.node, lacks, ", ".join(node.plugins), *((", ".join(node.reasons),) if wide else ()))
        console.print(nearest)
    if answer.facts:
        console.print(heading("What is lacking"))
        lines = ((first_of(fact.nodes), fact.text, fact.plugin) for fact in answer.facts)
        console.print(table("node", "what", "plugin", rows=lines, less_important=("plugin",)))
    if answer.fixes:
        console.print(heading("It would fit if"))
        rows = ((fix.text, str(fix.opens), first_of(fix.nodes)) for fix in answer.fixes)
        console.print(table("change", "nodes", "for example", rows=rows, less_important=("for example",)))
    if answer.choice:
        console.print(answer.choice)
    if answer.scores and (wide or not answer.node):
        _scores(console, answer, wide=wide)
    if answer.preemption is not None:
        _preemption(console, answer.preemption, wide=wide)
    if answer.group is not None:
        _group(console, answer.group, wide=wide)
    if answer.queue is not None:
        _queue(console, answer.queue, wide=wide)
    if answer.story is not None and (wide or any(step.what != "created" for step in answer.story.steps)):
        _story(console, answer.story, is_told=answer.story.text == answer.summary, wide=wide)
    if wide and answer.picture is not None:
        console.print(heading("Every node"))
        picture = answer.picture
        # The last of these is for cells of -1, where nothing was refused.
        words = [*(", ".join(verdict.reasons) or verdict.code for verdict in picture.verdicts), ""]
        verdicts = table("node", *picture.plugins)
        for name, cells in zip(picture.nodes, picture.cells, strict=True):
            verdicts.add_row(name, *(words[cell] for cell in cells))
        console.print(verdicts)


def _scores(console: Console, answer: Explanation, *, wide: bool) -> None:
    console.print(heading("Best nodes when it was decided" if answer.scores_of == "decision" else "Best nodes now"))
    if not wide:
        scores = table("node", "score", "by plugin")
        for score in answer.scores:
            by_plugin = ", ".join(f"{name} {part.weighted}" for name, part in score.plugins.items())
            scores.add_row(score.node, str(score.total), by_plugin)
        console.print(scores)
        return
    parts = table("node", "score", "plugin", "raw", "normalized", "weight", "weighted")
    for score in answer.scores:
        parts.add_row(score.node, str(score.total), "", "", "", "", "")
        for name, part in score.plugins.items():
            parts.add_row("", "", name, *map(str, (part.raw, part.normalized, part.weight, part.weighted)))
        if score.others:
            parts.add_row("", "", "others", "", "", "", str(score.others))
    console.print(parts)


def _lack(lack: Lack) -> str:
    asks, free, short = (in_words(lack.resource, amount) for amount in (lack.asks, lack.free, lack.short))
    return f"{short} {noun(lack)} (requests {asks}, {free} free)"


def _state(answer: Explanation) -> str:
    where = f" on {answer.node}" if answer.node else ""
    attempts = answer.queue.attempts if answer.queue is not None else 0
    return f"{answer.state}{where}" + (f" · {plural(attempts, 'attempt')}" if attempts else "")


def _group(console: Console, group: GroupOutcome, *, wide: bool) -> None:
    console.print(heading(f"Pod group {group.name}: {group.fits} of {plural(group.members, 'pod')} fit"))
    listed_members = group.pods if wide else group.pods[:SHOWN_MEMBERS]
    rows = ((name_of(member.pod), member.node, member.message) for member in listed_members)
    console.print(table("pod", "node", "message", rows=rows))
    if not wide and len(group.pods) > SHOWN_MEMBERS:
        console.print(f"and {plural(len(group.pods) - SHOWN_MEMBERS, 'more pod')}; -o wide lists all")
    if group.evicts:
        alone = alone_would_evict(group)
        console.print(f"{plural(len(group.evicts), 'pod')} would be evicted for it{f' ({alone})' if alone else ''}:")
        console.print(victims_table(group.evicts, wide=wide))


def _preemption(console: Console, answer: PreemptionAnswer, *, wide: bool) -> None:
    console.print(heading("Preemption"))
    if not answer.node:
        console.print(why_no_room(answer))
        for refusal in answer.not_helpful:
            console.print(f"{plural(refusal.nodes, 'node')}: {refusal.reason}", style="dim")
        return
    budget = (
        f", {plural(answer.num_pdb_violations, 'PodDisruptionBudget violation')}" if answer.num_pdb_violations else ""
    )
    console.print(f"{plural(len(answer.victims), 'pod')} on {answer.node} would be evicted{budget}:")
    console.print(victims_table(answer.victims, wide=wide))
    lost = loss(answer)
    if lost:
        console.print(lost)
    print_losers(console, answer.candidates, answer.node, answer.num_candidates - 1, wide=wide)


def _queue(console: Console, place: QueuePlace, *, wide: bool) -> None:
    console.print(heading("In the queue"))
    parts = [f"{place.queue}, number {place.position}" if place.position else place.queue]
    if place.gated_by:
        parts.append(f"gated by {place.gated_by}")
    if place.backoff_ends:
        parts.append(f"retried at {place.backoff_ends}")
    if place.refused_by:
        parts.append(f"refused by {', '.join(place.refused_by)}")
    console.print("; ".join(parts))
    if wide and place.wakes_on:
        console.print(
            "retried on " + ", ".join(f"{event.event} ({', '.join(event.plugins)})" for event in place.wakes_on)
        )


def _story(console: Console, story: Story, *, is_told: bool, wide: bool) -> None:
    console.print(heading("What happened"))
    if not is_told:
        console.print(story.text)
    rows = ((happened(step, partial(age, wide=wide)), step.text) for step in story.steps)
    console.print(table(age_or_time(wide), "what happened", rows=rows))
    for note in story.notes:
        console.print(f"note: {note}", style="dim")
    for preemption in {
        step.preemption.id: step.preemption for step in story.steps if step.preemption is not None
    }.values():
        console.print()
        print_preemption(console, preemption, wide=wide)


def _in_html(_: Console, answer: Explanation, __: bool) -> None:
    from api.ui.pages import story_file  # noqa: PLC0415 - nobody else needs templates

    print(story_file(answer, datetime.now(UTC)))
