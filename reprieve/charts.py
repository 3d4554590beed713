"""Charts: what becomes of their pods in a cluster, with assertions that say why they fail."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, final

from extender.answers.explain.explanation import explain, settled
from extender.answers.parts import workload_of
from extender.answers.phrases import for_people, noun, plural
from extender.answers.questions import Questions
from extender.answers.trial import Trial
from extender.answers.types import Explanation, WhatIfRequest
from extender.answers.what_if.admission import Admits
from extender.answers.what_if.simulation import Simulation
from extender.answers.what_if.what_if import play
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import in_words as amount_in_words
from reprieve.arguments import ReprieveError, in_words, line, whole
from reprieve.errors import StartUpError
from reprieve.lab.verification.rules import Spread
from reprieve.lab.verification.verification import evicted_in_words, uneven
from reprieve.sources.manifest_files import check_subject, manifests_in, placed

__all__ = ["Chart"]

_EXPLAINED: Final = 3
"""The number of workloads of which a pod is explained."""


@final
class Chart:
    """What becomes of a chart in a cluster, as `reprieve whatif -f` plays it: workloads that run there are scaled or
    rolled out, and pods preempt others. Each assertion returns True, or raises an AssertionError that says why not.

    Attributes:
        pods: namespace/name -> the node of each of its pods, those included that run already; empty for pending ones.
        evictions: the pods that are preempted, with `victim.pod.key`, `node`, `by` and `lands_on`.
        notes: sentences about objects that are left out, and about what is assumed.
    """

    def __init__(self, questions: Questions, manifests: str | Path, namespace: str) -> None:
        """Use `Cluster.chart`."""
        # What is played runs loops of its own, and the caller's thread may run one.
        with in_words(), ThreadPoolExecutor(1) as thread, questions.trial() as trial:
            objects = manifests_in(manifests)
            self._name = "the chart" if "\n" in str(manifests) else Path(manifests).name
            check_subject(objects, [self._name], is_about_pods=True)
            thread.submit(self._play, trial, questions.admits, placed(objects, None, namespace)).result()

    def _play(self, trial: Trial, admits: Admits, objects: list[dict[str, Any]]) -> None:
        cluster, why = trial.cluster, dict[str, Explanation]()
        simulation = Simulation(trial, before_eviction=partial(_explain, trial, why))
        play_notes, notes = play(simulation, WhatIfRequest(create=objects), admits)
        heads = ((obj["kind"], obj["metadata"]) for obj in objects)
        workloads = {(metadata.get("namespace"), f"{kind}/{metadata.get('name')}") for kind, metadata in heads}
        uids = {placement.pod.uid for placement in simulation.placements}
        for pod in [*cluster.pending.values()]:
            if pod.uid not in uids and (pod.namespace, workload_of(pod)) in workloads:
                simulation.submit(pod, "pending")
        asyncio.run(simulation.run())
        if not simulation.is_complete:
            raise StartUpError(f"{self._name}: the simulation reached its limit: try fewer pods")
        submitted = {placement.pod.uid for placement in simulation.placements if placement.cause != "evicted"}
        pods = {pod.uid: pod for pod in (*cluster.pending.values(), *cluster.cache.pods) if not pod.is_terminating}
        self._pods = [
            pod for pod in pods.values() if pod.uid in submitted or (pod.namespace, workload_of(pod)) in workloads
        ]
        self.pods = {pod.key: pod.spec.node_name for pod in self._pods}
        if not self.pods:
            raise StartUpError(f"{self._name}: no pod comes of it: its workloads want none now")
        self._why_evicting, self._why_pending = why, dict[str, Explanation]()
        for pod in self._pods:
            if not pod.spec.node_name:
                asyncio.run(_explain(trial, self._why_pending, pod))
        self._nodes = cluster.nodes
        self.evictions = tuple(eviction for eviction in simulation.evictions if eviction.why == "preempted")
        self.notes = (*notes, *play_notes)

    def __repr__(self) -> str:
        return f"<Chart {self._name}: {plural(len(self.pods), 'pod')}, {len(self.evictions)} evicted>"

    def will_fit(self) -> Literal[True]:
        """Asserts that all of its pods get nodes, if need be by preemption."""
        __tracebackhide__ = True
        pending = [name for name, node in self.pods.items() if not node]
        if pending:
            problem = f"{len(pending)} of {plural(len(self.pods), 'pod')} would be pending"
            raise self._failure([problem], self._why_pending)
        return True

    def evicts_nobody(self) -> Literal[True]:
        """Asserts that no pod is preempted."""
        __tracebackhide__ = True
        if self.evictions:
            raise self._failure([evicted_in_words(self.evictions)], self._why_evicting)
        return True

    def spreads_over(
        self, topology_key: str, *, min_domains: int = 2, max_skew: int | None = None, workload: str = ""
    ) -> Literal[True]:
        """Asserts that each workload of several pods, but for DaemonSets, is spread over the values of a node label.

        Arguments:
            topology_key: the label; `zone`, `region` and `hostname` stand for the well-known ones.
            min_domains: the least number of values that have pods of it.
            max_skew: the most pods by which one value may exceed another, of all values that nodes have.
            workload: the only one that is meant: `Deployment/web`.
        """
        __tracebackhide__ = True
        number = Counter(map(workload_of, self._pods))
        several = [name for name in number if name and number[name] > 1 and not name.startswith("DaemonSet/")]
        names = [name for name in number if name == workload] if workload else several
        if not names:
            raise ReprieveError(f"{self._name} has no pods of {workload or 'a workload with several'}")
        skew = None if max_skew is None else whole(max_skew, "is no skew", 0)
        domains = whole(min_domains, "values cannot be asked for", 0)
        spread = Spread(by=line(topology_key, "a node label"), max_skew=skew, min_domains=domains)
        running = [pod for pod in self._pods if pod.spec.node_name in self._nodes]
        pods_of = {name: [pod for pod in running if workload_of(pod) == name] for name in names}
        unmet = [violation for name, pods in pods_of.items() for violation in uneven(name, spread, pods, self._nodes)]
        if unmet:
            why = {name: answer for name, answer in self._why_pending.items() if name in names}
            raise self._failure([f"{violation.expected}, but {violation.happened}" for violation in unmet], why)
        return True

    def _failure(self, problems: Sequence[str], why: Mapping[str, Explanation]) -> AssertionError:
        lines = [
            f"{self._name}: {problems[0]}",
            *problems[1:],
            *(line for explanation in why.values() for line in _why(explanation)),
        ]
        return AssertionError("\n".join(map(for_people, (*lines, *(f"note: {note}" for note in self.notes)))))


async def _explain(trial: Trial, explained: dict[str, Explanation], pod: Pod) -> None:
    key = workload_of(pod) or pod.key
    if key in explained or len(explained) == _EXPLAINED:
        return
    explained[key] = settled(pod, "NotOurs")
    if trial.frameworks.get(pod.scheduler_name) is not None:
        cycle = trial.cycle(pod)
        explained[key] = await explain(cycle.framework, cycle.snapshot, pod, cycle.nominations)


def _why(answer: Explanation) -> Iterator[str]:
    """Yields what `reprieve why` says."""
    yield from ("", f"{answer.pod.key}: {answer.summary}", answer.message)
    lacks = (
        (node.node, lack, amount_in_words(lack.resource, lack.short)) for node in answer.nearest for lack in node.lacks
    )
    yield from (f"  {node} lacks {short} {noun(lack)}" for node, lack, short in lacks)
    yield from (
        f"  {', '.join(fact.nodes[:_EXPLAINED])}{': ' if fact.nodes else ''}{fact.text}" for fact in answer.facts
    )
    yield from (f"  it would fit if you {fix.text} ({plural(fix.opens, 'node')})" for fix in answer.fixes)
    losers = answer.preemption.candidates if answer.preemption is not None else ()
    yield from (f"  {loser.node} is not the one to evict from: {loser.why_not}" for loser in losers if loser.why_not)
