"""`reprieve who-preempted`: for which pod was this pod evicted?"""

import asyncio
from typing import Annotated

from rich.console import Console
from rich.text import Text

from api.cli.pod_names import PodArgument, pod_named
from api.cli.service_answers import from_service
from api.cli.showing import Output, OutputOption, heading, name_of, plural, show, table, victims_table
from api.cli.signatures import Options
from api.cli.sources import DEFAULT_SERVER, Source
from api.fatal_errors import StartUpError
from extender.answers.types import Preemption, Preemptions

MAX_SHOWN = 20


def who_preempted(
    pod: PodArgument,
    *,
    source: Annotated[Source, Options.of(Source, only=("namespace", "server", "token"))],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show for which pod a pod was evicted, when, and why not another one.

    A Reprieve service is asked, because only a service remembers, long after the events are gone. Names of pods are shown in namespaces
    whose pods you may list.
    """
    key = pod_named(pod, source)
    found = asyncio.run(_asked(source, "/".join(key)))
    of_victim = [made for made in found.items if any((victim.pod.namespace, victim.pod.name) == key for victim in made.victims)]
    if not of_victim:
        raise StartUpError(f"no preemption of {'/'.join(key)} is known")
    show(Preemptions(items=tuple(of_victim)), output, _in_words)


async def _asked(source: Source, pod: str) -> Preemptions:
    async with from_service(source.server, DEFAULT_SERVER, source.token) as service:
        return await service.preemptions_of(pod, MAX_SHOWN)


def _in_words(console: Console, answer: Preemptions, wide: bool) -> None:
    for place, made in enumerate(answer.items):
        if place:
            console.print()
        _one(console, made, wide=wide)


def _one(console: Console, made: Preemption, *, wide: bool) -> None:
    by = made.by
    uid = f", UID {by.uid}" if wide and by.uid else ""
    console.print(Text(f"{made.time}  preempted on {made.node} for {name_of(by)} (priority {by.priority}{uid})", style="bold"))
    if made.caller:
        console.print(f"as {made.caller} asked the extender about it")
    console.print(victims_table(made.victims, wide=wide))
    if made.num_pdb_violations:
        console.print(f"against {plural(made.num_pdb_violations, 'PodDisruptionBudget violation')}")
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
    """Returns how many candidates were not chosen. Another scheduler, an extender or a plugin may choose a node that is none of them."""
    kept = [candidate.node for candidate in made.candidates]
    # Where not all candidates are kept, a chosen node that is not listed is taken for one of the others.
    is_candidate = made.node in kept or (bool(made.node) and len(kept) < made.num_candidates)
    return max(made.num_candidates - is_candidate, 0)
