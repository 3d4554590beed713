"""`reprieve who-preempted`: for which pods were pods evicted?"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from api.cli import Options
from api.cli.showing import (
    Output,
    OutputOption,
    WatchOption,
    heading,
    name_of,
    plural,
    show,
    show_until_interrupted,
    table,
    victims_table,
)
from api.cli.sources import Answers, Source, pod_named
from api.fatal_errors import MisuseError, StartUpError
from extender.answers.catalogue import PreemptionsQuestion
from extender.answers.parts import PodName
from extender.answers.phrases import loss
from extender.answers.types import Preemption, Preemptions
from extender.values import limits
from extender.values.golang.times import rfc3339

_SINCE: Final = re.compile(r"(\d{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def who_preempted(
    pod: Annotated[
        str,
        typer.Argument(
            help="[NAMESPACE/]POD, or the beginning of its name; nothing for all pods.",
            metavar="[[NAMESPACE/][PREFIX]]",
        ),
    ] = "",
    *,
    since: Annotated[str, typer.Option(help="Only the last while: 90s, 30m, 1h, 2d.")] = "",
    source: Annotated[Source, Options.of(Source, only=("namespace", "server", "kubeconfig", "context", "token"))],
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
) -> None:
    """Show for which pods pods were evicted, when, and why not others.

    A Reprieve service is asked, because only a service remembers, long after the events are gone. Names of pods are
    shown in namespaces whose pods you may list. Of one pod everything is told, of several a line each; `-o wide` tells
    everything of all.
    """
    _after(since)
    namespace, prefix = (source.namespace, "") if not pod else _named(pod, source)
    with suppress(*(KeyboardInterrupt,) if watch else ()):
        asyncio.run(_shown(source, namespace, prefix, since, output, watch=watch))


async def _shown(
    source: Source, namespace: str | None, prefix: str, since: str, output: Output, *, watch: bool
) -> None:
    whose = f"{namespace}/{prefix}" if namespace else prefix
    none = f"no preemption of {whose} is known" if whose else "no preemption is known"

    def words(console: Console, found: Preemptions, wide: bool) -> None:
        if not found.items:
            console.print(none)
        elif _is_of_one(found, prefix):
            _in_words(console, found, wide)
        else:
            _as_a_list(console, found, wide)

    async with source.open_service(keeps_asking=watch) as service:
        if watch:
            await show_until_interrupted(lambda: _asked(service, namespace, prefix, _after(since)), output, words)
        after = _after(since)
        found = await _asked(service, namespace, prefix, after)
    if not found.items:
        raise StartUpError(none + (f" since {after}" if after else ""))
    show(found, output, words)


def _named(pod: str, source: Source) -> tuple[str, str]:
    """Returns the namespace and the beginning of the name; NAMESPACE/ is all pods of the namespace."""
    if pod.endswith("/") and pod.count("/") == 1 and len(pod) > 1:
        return pod[:-1], ""
    return pod_named(pod, source)


def _after(since: str) -> str:
    """Returns the moment in the form that answers have; empty without one."""
    if not since:
        return ""
    found = _SINCE.fullmatch(since)
    if found is None:
        raise MisuseError(f"--since {since}: write a number and a unit, such as 90s, 30m, 1h or 2d")
    return rfc3339(datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: int(found[1])}))


async def _asked(service: Answers, namespace: str | None, prefix: str, after: str) -> Preemptions:
    """Returns the preemptions whose victims are meant: the pod that is named in full, if there is one."""
    if namespace and prefix:
        of_one = await service.ask(PreemptionsQuestion(pod=f"{namespace}/{prefix}", limit=limits.PREEMPTIONS_TOLD))
        exact = _of_victims(of_one, lambda victim: victim.name == prefix, after)
        if exact.items:
            return exact
    every = await service.ask(PreemptionsQuestion(limit=limits.PREEMPTIONS_SEARCHED))
    return _of_victims(
        every, lambda victim: victim.name.startswith(prefix) and namespace in (None, victim.namespace), after
    )


def _is_of_one(found: Preemptions, name: str) -> bool:
    """Returns whether all victims are the one pod that was named in full."""
    return bool(name) and all(any(victim.pod.name == name for victim in each.victims) for each in found.items)


def _of_victims(found: Preemptions, is_meant: Callable[[PodName], bool], after: str) -> Preemptions:
    return Preemptions(
        items=tuple(
            made for made in found.items if made.time >= after and any(is_meant(victim.pod) for victim in made.victims)
        )
    )


def _as_a_list(console: Console, answer: Preemptions, wide: bool) -> None:
    if wide:
        _in_words(console, answer, wide)
        return
    lines = table(
        "time", "pod", "priority", "for", "priority ", "node", less_important=("priority", "priority ", "node")
    )
    for made in answer.items:
        for victim in made.victims:
            names = name_of(victim.pod), str(victim.pod.priority), name_of(made.by), str(made.by.priority)
            lines.add_row(made.time, *names, made.node)
    console.print(lines)
    if len(answer.items) == limits.PREEMPTIONS_SEARCHED:
        console.print(f"older ones than the last {limits.PREEMPTIONS_SEARCHED} were not looked at")


def _in_words(console: Console, answer: Preemptions, wide: bool) -> None:
    for place, made in enumerate(answer.items):
        if place:
            console.print()
        _one(console, made, wide=wide)


def _one(console: Console, made: Preemption, *, wide: bool) -> None:
    by = made.by
    uid = f", UID {by.uid}" if wide and by.uid else ""
    console.print(
        Text(
            f"{made.time}  preempted{f' on {made.node}' if made.node else ''} for {name_of(by)} (priority "
            f"{by.priority}{uid})",
            style="bold",
        )
    )
    if made.caller:
        console.print(f"as {made.caller} asked the extender about it")
    console.print(victims_table(made.victims, wide=wide))
    if made.num_pdb_violations:
        console.print(f"against {plural(made.num_pdb_violations, 'PodDisruptionBudget violation')}")
    lost = loss(made)
    if lost:
        console.print(lost)
    if made.outcome == "failed":
        console.print("not all victims were evicted")
    losers = [candidate for candidate in made.candidates if candidate.node != made.node]
    num_others = _num_others(made)
    if losers:
        console.print(heading(f"Other candidates: {plural(num_others, 'node')}"))
        not_chosen = table("node", "victims", "why not")
        for candidate in losers if wide else losers[:5]:
            not_chosen.add_row(candidate.node, str(len(candidate.victims)), candidate.why_not)
        console.print(not_chosen)
    elif num_others:
        others = plural(num_others, "other node")
        console.print(f"{others} could have been chosen; no more is known, since there were many preemptions at once")


def _num_others(made: Preemption) -> int:
    """Returns how many candidates were not chosen. Another scheduler, an extender or a plugin may choose a node that is
    none of them.
    """
    kept = [candidate.node for candidate in made.candidates]
    # Where not all candidates are kept, a chosen node that is not listed is taken for one of the others.
    is_candidate = made.node in kept or (bool(made.node) and len(kept) < made.num_candidates)
    return max(made.num_candidates - is_candidate, 0)
