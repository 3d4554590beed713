"""How many pods each domain of a spread constraint has, and why the smallest one takes none."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from extender.answers.explain.advice import Asked, NodeFact
from extender.answers.phrases import all_of, plural
from extender.engine.framework import CycleState
from extender.engine.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE
from extender.engine.plugins.pod_topology_spread.filtering import Domains, decisive, measure
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.snapshot.axes import Index

_NAMED: Final = 10
_SMALLEST: Final = 3
_WORDS: Final = {"NodeUnschedulable": "cordoned", "TaintToleration": "tainted", "NodeResourcesFit": "full"}
"""What the nodes are that these plugins refuse, the first of them."""


def spreading_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each constraint of the pod or its profile its domains, and what is wrong with the smallest."""
    pod, snapshot = question.pod, question.snapshot
    plugin = question.framework.plugins.advice["PodTopologySpread"]
    if not isinstance(plugin, PodTopologySpread):
        return
    constraints = plugin.constraints(CycleState(), pod, snapshot.objects, DO_NOT_SCHEDULE)
    default = "" if pod.spec.topology_spread_constraints else ", by default of the profile"
    for domains in measure(snapshot, pod, decisive(snapshot, constraints)):
        key, skew = domains.constraint.topology_key, domains.constraint.max_skew
        num_unlabelled = int(np.count_nonzero(domains.column.codes < 0))
        if num_unlabelled:
            yield NodeFact(f"{plural(num_unlabelled, 'node')} without the label {key}, over which it spreads{default}")
        fewest = 0 if domains.is_too_few else domains.fewest
        ahead = domains.is_domain & (domains.counts + domains.self_match - fewest > skew)
        if ahead.any():
            yield NodeFact(f"maxSkew {skew} over {key}{default}: {_counts(domains)}{_why(domains, question)}")


def _counts(domains: Domains) -> str:
    codes = np.flatnonzero(domains.is_domain)
    codes = codes[np.argsort(domains.counts[codes], kind="stable")].tolist()
    texts = [f"{domains.column.values[code]} has {domains.counts[code]}" for code in codes[:_NAMED]]
    more = codes[_NAMED:]
    if more:
        smallest, largest = int(domains.counts[more[0]]), int(domains.counts[more[-1]])
        texts.append(f"{len(more)} more have {smallest}{f' to {largest}' if largest > smallest else ''}")
    return ", ".join(texts)


def _why(domains: Domains, question: Asked) -> str:
    """Returns why no pod goes to the smallest domains."""
    if domains.is_too_few:
        number = int(np.count_nonzero(domains.is_domain))
        min_domains = domains.constraint.min_domains
        return f"; there are {plural(number, 'domain')} and minDomains is {min_domains}, so the smallest counts as 0"
    smallest = np.flatnonzero(domains.is_domain & (domains.counts == domains.fewest))
    return "".join(_of_domain(domains, code, question) for code in smallest[:_SMALLEST].tolist())


def _of_domain(domains: Domains, code: int, question: Asked) -> str:
    places: Index = np.flatnonzero((domains.column.codes == code) & domains.included)
    going = sum(
        question.snapshot.pod_at(slot).metadata.deletion_timestamp is not None
        and question.snapshot.pod_at(slot).namespace == question.pod.namespace
        and domains.constraint.selector.matches(question.snapshot.pod_at(slot).labels)
        for place in places.tolist()
        for slot in question.snapshot.pods.on_node[place]
    )
    name, states, text = domains.column.values[code], _states(places, question), ""
    if states.total() == len(places):
        one = len(places) == 1
        how = [state if one else f"{count} {state}" for state, count in states.items()]
        text = f"; {name} takes none: its {'node is' if one else f'{len(places)} nodes are'} {all_of(how)}"
    if going:
        text += f"; {plural(going, 'terminating pod')} of {name} {'does' if going == 1 else 'do'} not count"
    return text


def _states(places: Index, question: Asked) -> Counter[str]:
    """Counts nodes that other plugins than spreading refuse, by what the first of these plugins says of them."""
    states: Counter[str] = Counter()
    by_plugin = question.refusals.by_plugin if question.refusals is not None else {}
    for place in places.tolist():
        refusing_plugins = [name for name, verdicts in by_plugin.items() if not verdicts.ok[place]]
        word = next((word for name, word in _WORDS.items() if name in refusing_plugins), "")
        other_plugins = [name for name in refusing_plugins if name != "PodTopologySpread"]
        if word or other_plugins:
            states[word or f"refused by {other_plugins[0]}"] += 1
    return states
