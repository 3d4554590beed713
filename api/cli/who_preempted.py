"""`reprieve who-preempted`: for which pods were pods evicted?"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer
from rich.console import Console

from api.cli import Options
from api.cli.names import completed
from api.cli.showing import (
    AllNamespacesOption,
    ListOutputOption,
    NoHeadersOption,
    WatchOption,
    age,
    name_of,
    print_losers,
    table,
    victims_table,
)
from api.cli.sources import Answers, Source, pod_named
from extender.answers.catalogue import PreemptionsQuestion
from extender.answers.overviews import Preemptions
from extender.answers.parts import PodName
from extender.answers.phrases import loss, plural
from extender.answers.stories import Preemption
from extender.values import limits
from extender.values.golang.times import rfc3339
from reprieve.errors import NegativeError, StartUpError

_SINCE: Final = re.compile(r"(\d{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def who_preempted(
    pod: Annotated[
        str,
        typer.Argument(
            help="[NAMESPACE/]POD, or the start of its name; without it, all pods.",
            metavar="[[NAMESPACE/][PREFIX]]",
            autocompletion=completed("pods", lambda: Source),
        ),
    ] = "",
    *,
    since: Annotated[str, typer.Option(help="Only preemptions within the last 90s, 30m, 1h, 2d.")] = "",
    source: Annotated[Source, Options.of(Source, only=("namespace", "server", "kubeconfig", "context", "token"))],
    all_namespaces: AllNamespacesOption = False,
    output: ListOutputOption = "table",
    no_headers: NoHeadersOption = False,
    watch: WatchOption = False,
) -> None:
    """Show which pods were evicted for which others, when, and why other nodes were spared.

    Only a running Reprieve service remembers this; events expire after an hour. Pods have names only in namespaces
    where you may list pods. One pod is shown in full, several in a line each; `-o wide` shows all in full, `-o name`
    prints the evicted pods.
    """
    _after(since)
    everywhere = source.only_namespace(all_namespaces=all_namespaces)
    namespace, prefix = (everywhere, "") if not pod else _namespace_and_prefix(pod, source)
    whose = f"{namespace}/{prefix}" if namespace else prefix
    none = f"no preemption of {whose} is known" if whose else "no preemption is known"

    async def ask(service: Answers) -> Preemptions:
        after = _after(since)
        preemptions = await _preemptions_of(service, namespace, prefix, after)
        if not preemptions.items and not watch:
            raise NegativeError(none + (f" since {after}" if after else ""))
        return preemptions

    def words(console: Console, preemptions: Preemptions, wide: bool) -> None:
        if not preemptions.items:
            console.print(none)
        elif output == "name":
            for victim in dict.fromkeys(
                victim.pod for preemption in preemptions.items for victim in preemption.victims
            ):
                if not victim.hidden:
                    console.print(name_of(victim))
        else:
            names = ({victim.pod.name for victim in preemption.victims} for preemption in preemptions.items)
            if wide or (prefix and all(prefix in victim_names for victim_names in names) and not no_headers):
                for place, preemption in enumerate(preemptions.items):
                    if place:
                        console.print()
                    print_preemption(console, preemption, wide=wide)
            else:
                _as_a_list(console, preemptions, has_head=not no_headers)

    source.show(ask, output, words, watch=watch, opens=source.open_service)


def _namespace_and_prefix(pod: str, source: Source) -> tuple[str, str]:
    """Returns the namespace and the beginning of the name; NAMESPACE/ is all pods of the namespace."""
    if pod.endswith("/") and pod.count("/") == 1 and len(pod) > 1:
        return pod[:-1], ""
    return pod_named(pod, source)


def _after(since: str) -> str:
    if not since:
        return ""
    match = _SINCE.fullmatch(since)
    if match is None:
        raise StartUpError(f"--since {since}: write a number and a unit, such as 90s, 30m, 1h or 2d")
    return rfc3339(datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])}))


async def _preemptions_of(service: Answers, namespace: str | None, prefix: str, after: str) -> Preemptions:
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


def _of_victims(preemptions: Preemptions, is_meant: Callable[[PodName], bool], after: str) -> Preemptions:
    return Preemptions(
        items=tuple(
            preemption
            for preemption in preemptions.items
            if preemption.time >= after and any(is_meant(victim.pod) for victim in preemption.victims)
        )
    )


def _as_a_list(console: Console, answer: Preemptions, *, has_head: bool) -> None:
    headings = ("age", "pod", "priority", "for", "for priority", "node")
    lines = table(*headings, less_important=("priority", "for priority", "node"), has_head=has_head)
    for preemption in answer.items:
        for victim in preemption.victims:
            names = name_of(victim.pod), str(victim.pod.priority), name_of(preemption.by), str(preemption.by.priority)
            lines.add_row(age(preemption.time), *names, preemption.node)
    console.print(lines)
    if len(answer.items) == limits.PREEMPTIONS_SEARCHED:
        console.print(f"only the last {limits.PREEMPTIONS_SEARCHED} preemptions were searched")


def print_preemption(console: Console, preemption: Preemption, *, wide: bool) -> None:
    """Prints who was evicted for whom, and why other nodes were spared."""
    preemptor = preemption.by
    uid = f", UID {preemptor.uid}" if wide and preemptor.uid else ""
    on_node = f" on {preemption.node}" if preemption.node else ""
    console.print(
        f"{preemption.time}  preempted{on_node} for {name_of(preemptor)} (priority {preemptor.priority}{uid})",
        style="bold",
    )
    if preemption.caller:
        console.print(f"when {preemption.caller} called the extender")
    console.print(victims_table(preemption.victims, wide=wide))
    if preemption.num_pdb_violations:
        console.print(f"against {plural(preemption.num_pdb_violations, 'PodDisruptionBudget violation')}")
    lost = loss(preemption)
    if lost:
        console.print(lost)
    if preemption.outcome == "failed":
        console.print("not all victims were evicted")
    num_others = _num_others(preemption)
    print_losers(console, preemption.candidates, preemption.node, num_others, wide=wide)
    if num_others and not any(candidate.node != preemption.node for candidate in preemption.candidates):
        other_nodes = plural(num_others, "other node")
        console.print(
            f"{other_nodes} could have been chosen; no details are stored, because there were many preemptions at once"
        )


def _num_others(preemption: Preemption) -> int:
    """Returns how many candidates were not chosen. Another scheduler or a plugin may choose none of them."""
    candidate_names = [candidate.node for candidate in preemption.candidates]
    # Where not all candidates are kept, a chosen node that is not listed is taken for one of the others.
    is_candidate = preemption.node in candidate_names or (
        bool(preemption.node) and len(candidate_names) < preemption.num_candidates
    )
    return max(preemption.num_candidates - is_candidate, 0)
