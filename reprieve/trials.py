"""A trial of a cluster: steps that place and move pods, each of which can be taken back."""

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, final

import numpy as np

from extender.answers import trial as engine
from extender.answers.explain.preemption import preemption_answer
from extender.answers.types import Capacity, Explanation, NodesLike, PreemptionAnswer
from extender.answers.what_if import capacity, manifests, pinned_pods, simulated_pods, what_if
from extender.answers.what_if.admission import Admits
from extender.engine.evaluation.evaluate import evaluate
from extender.values.near_names import did_you_mean
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import group_of
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from reprieve.arguments import (
    Objects,
    ReprieveError,
    in_words,
    line,
    names_of,
    outcome_of,
    plain,
    pods_or_objects,
    tainted,
    whole,
)
from reprieve.equal_pods import without_copies
from reprieve.results import Counted, NodeArrays, Placement, Placements, node_arrays, objects_of

if TYPE_CHECKING:
    from reprieve.lab.plan.plan_answer import PlanAnswer

__all__ = ["Trial"]


@final
class Trial(Counted):
    """A copy of a cluster in which things are tried; nothing leaves it. Decisions are those of the scheduler.

    Each call under `Steps` is a step, and none if it raises: `schedule`, `place`, `add`, `remove`, `evict`, `drain`,
    `cordon`, `taint`, `add_nodes`, and a block of `step`. `undo` takes steps back; the end of the `with` block drops
    all. No time passes: pods that are placed run, and evicted ones are gone, at once.

    All methods raise ReprieveError: there is no such pod, node or file, or an API server would refuse an object.

    Attributes:
        notes: sentences about objects of the last call that were left out, and about what was assumed.
    """

    def __init__(self, opened: AbstractContextManager[engine.Trial], admits: Admits) -> None:
        """Use `Cluster.trial`."""
        self._steps = ExitStack()
        self._trial = self._steps.enter_context(opened)
        self._items = self._trial.cluster.items
        # One that is left open, as in the cells of a notebook, ends before the interpreter does.
        weakref.finalize(self, self._steps.close)
        self._admits = admits
        self._done: list[ExitStack] | None = []
        self.notes: tuple[str, ...] = ()
        self._turns: dict[str, int] = {}
        """UID -> a number, the higher the later the pod became pending. One that is put back has its turn again."""
        self._next_turn = 0

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, *_: object) -> None:
        self._steps.close()
        self._done = None

    def fork(self) -> "Trial":
        """Opens a second trial that begins as this one is now: `with trial.fork() as other`. Both go on by themselves,
        and either may end first; `undo` of the second one takes back what was done in it. Plugins are made anew, and
        reserve again for pods what they have reserved. It costs what it costs to open a trial.
        """
        with self._step(is_kept=False):
            other = Trial(self._trial.fork(), self._admits)
            other._turns, other._next_turn = self._turns.copy(), self._next_turn
            return other

    def __reduce__(self) -> str:
        raise ReprieveError("a trial does not travel: send its Cluster, or trial.objects(), and open a trial there")

    def _words(self) -> str:
        return "it is over" if self._done is None else f"{super()._words()}; steps: {len(self._done)}"

    # What is there.

    @property
    def pods(self) -> dict[str, str]:
        """namespace/name -> the node of each pod; empty for pending ones."""
        with self._step(is_kept=False):
            on_nodes = {pod.key: pod.spec.node_name for pod in self._trial.cluster.cache.pods}
            return {pod.key: "" for pod in self._waiting()} | on_nodes

    def objects(self) -> list[dict[str, Any]]:
        """Returns all objects as they are now, as the API has them, with what the scheduler reads of them: pods with
        their nodes, and with what plugins wrote on them. `Cluster.load` takes them.
        """
        with self._step(is_kept=False):
            waiting = self._waiting()
            pending = {pod.uid for pod in waiting}
            placed = [item for item in self._trial.cluster.items() if item.metadata.uid not in pending]
            return objects_of([*placed, *waiting])

    def nodes(self, pod: Objects | None = None) -> NodeArrays:
        """Returns the nodes as arrays.

        Arguments:
            pod: one that is pending, or one that does not exist, for which nodes are filtered and scored.
        """
        with self._step(is_kept=False):
            pending_pod = None if pod is None else self._one(pod)
            evaluation = None if pending_pod is None else outcome_of(evaluate(self._trial.cycle(pending_pod)))
            return node_arrays(evaluation or self._trial.cluster.cache.update_snapshot())

    def fits(self, pod: Objects, limit: int | None = None, *, nodes: str | Iterable[str] | None = None) -> Capacity:
        """Returns how many more of a pod, or of a workload's pods, would be placed, one after the other and without
        evictions: `fits`, `by_node`, and why the next one would not, `stopped_by`. None of them stays.

        Arguments:
            limit: the most that are counted; None for 100,000, or 1,000 where they are placed one by one.
            nodes: the only nodes that may take them; None for all.
        """
        with self._step(is_kept=False), self._trial.among(self._candidates(nodes)):
            if limit is not None:
                limit = whole(limit, "pods cannot be counted", 0)
            names, objects = pods_or_objects(pod)
            if len(names) > 1:
                raise ReprieveError(f"copies of one pod are counted, and these are {len(names)}")
            if names:
                return capacity.capacity_with_gangs(self._trial, self._known(names)[0], limit)
            copies = [plain(obj) for obj in objects]
            obj = copies[0] if len(copies) == 1 else {"kind": "List", "items": copies}
            return capacity.capacity_of(self._trial, obj, self._admits, limit)

    def preempt(self, pod: Objects) -> PreemptionAnswer:
        """Returns who would be evicted for a pod that fits nowhere, `victims` on `node`, and why not elsewhere,
        `candidates` and `not_helpful`. Nobody is: `evict` and `schedule` do it. Without victims, but with a node, the
        pod fits. It is a pending one, or one that does not exist, and does not stay.
        """
        with self._step(is_kept=False):
            preemptor = self._one(pod)
            if why_not := self._why_not_tried(preemptor):
                return PreemptionAnswer(eligible=False, message=why_not)
            attempt = self._trial.schedule(preemptor)
            if attempt.refusal is None:
                return PreemptionAnswer(eligible=bool(attempt.node), node=attempt.node, message=attempt.message)
            outcome, message = outcome_of(self._trial.preempt(attempt))
            if outcome.preemption is None:
                return PreemptionAnswer(eligible=False, message=message)
            now = attempt.cycle.framework.now().timestamp()
            return preemption_answer(outcome.preemption, attempt.cycle.snapshot, preemptor, now)

    def why(self, pod: Objects) -> Explanation:
        """Returns why a pod is pending, in a `summary` and in the scheduler's `message`: what the `nearest` nodes lack,
        `facts` about others, whom `preemption` would evict, and `fixes`, changes that would help, each of them tried.
        It is a pending one, or one that does not exist, and does not stay.
        """
        from extender.answers.explain.explanation import explain, settled  # noqa: PLC0415 - most trials need no advice

        with self._step(is_kept=False):
            pending_pod = self._one(pod)
            if self._trial.frameworks.get(pending_pod.scheduler_name) is None:
                return settled(pending_pod, "NotOurs")
            cycle = self._trial.cycle(pending_pod)
            return outcome_of(explain(cycle.framework, cycle.snapshot, pending_pod, cycle.nominations))

    def free_nodes(self, count: int, *, of: str = "", same: str = "", max_moves: int = 20) -> "PlanAnswer":
        """Returns the `moves` of running pods, in their order, after which so many nodes are `free`, those counted that
        are already; `fits`, whether there are enough, and `kept`, what keeps others. No pod moves.

        Arguments:
            of: a resource, such as nvidia.com/gpu: nodes that offer it, free of pods that request it.
            same: the key of a label of which all these nodes have the same value.
        """
        from reprieve.lab.plan.plan import PlanRequest, nodes_plan  # noqa: PLC0415 - few trials search for plans

        with self._step(is_kept=False):
            resource, key = line(of, "a resource's name"), line(same, "a label's key")
            number, limit = whole(count, "nodes cannot be free", 1), whole(max_moves, "moves are no limit", 1)
            request = PlanRequest(free_nodes=number, of=resource, same=key, max_moves=limit)
            return nodes_plan(self._trial, request, next(iter(self._trial.frameworks.values())).now)

    # Steps.

    def schedule(
        self,
        what: Objects | None = None,
        *,
        nodes: str | Iterable[str] | None = None,
        scores: bool = False,
        stop_on_failure: bool = False,
    ) -> Placements:
        """Places pods where the scheduler would, in the order of its queue, each tried once and without evictions.
        Those that fit nowhere stay pending.

        Arguments:
            what: pending pods; or objects, which are created: pods, workloads, pod groups, and what they refer to.
                Workloads that exist are scaled, and pods that name their node run there. None for all pending pods.
            nodes: the only nodes that may take them; None for all.
            scores: whether placements have the scores of their nodes; it takes a quarter longer.
            stop_on_failure: whether the first pod, or pod group, that fits nowhere is the last one that is tried.

        Returns:
            What became of each pod, in the order in which they were tried; pending members of its group are tried with
            a pod.
        """
        with self._step():
            pods = self._waiting() if what is None else self._pods(what)
            with self._trial.among(self._candidates(nodes)):
                return self._placed(
                    pods, scores=scores, is_restricted=nodes is not None, stop_on_failure=stop_on_failure
                )

    def place(self, pod: Objects, node: str) -> Placement:
        """Places one pod on a node, if its Filters let it; otherwise it stays pending, and the message has their words.

        Arguments:
            pod: a pending pod, or an object, which is created. A member of a pod group is placed by itself.
        """
        with self._step():
            pending_pod, target = self._one(pod), self._node(node).name
            if why_not := self._why_not_tried(pending_pod):
                return Placement(pending_pod.key, message=why_not)
            simulated_pods.drop_leftover_claims(self._trial, [pending_pod])
            with self._trial.among([target]):
                attempt = self._trial.schedule(pending_pod)
            refusal = attempt.refusal
            message = attempt.message if refusal is None else refusal.diagnosis.statuses.of(target).message
            return self._settled(pending_pod, attempt.node, message or attempt.message, {})

    def add(self, what: Objects) -> list[str]:
        """Creates objects, as `schedule` does, and places no pod: returns the names of those that are pending then."""
        with self._step():
            return [pod.key for pod in self._pods(what, may_be_named=False)]

    def remove(self, *pods: str | Iterable[str], nodes: str | Iterable[str] = ()) -> list[str]:
        """Deletes pods for good, pending or not; and nodes, with the pods on them: those that a controller recreates
        are pending then. Budgets are not asked. Returns the names of pods that became pending.
        """
        with self._step() as step:
            leaving, recreated = self._known(dict.fromkeys(names_of(pods, "a pod's name"))), list[Pod]()
            going = [self._node(name) for name in dict.fromkeys(names_of([nodes], "a node's name"))]
            self._lose_turns(leaving, step)
            for pod in leaving:
                self._trial.remove(pod)
            for node in going:
                residents = [pod for pod in self._trial.cluster.cache.pods if pod.spec.node_name == node.name]
                for pod in residents:
                    if pod.is_terminating or engine.belongs_to_node(pod):
                        self._trial.remove(pod)
                recreated += self._off_their_nodes(
                    [pod for pod in residents if self._trial.cluster.cache.pod(pod.uid)], step
                )
                self._trial.changed(node, None)  # last, so that it is there again when its pods come back
            return [pod.key for pod in recreated]

    def cordon(self, *nodes: str | Iterable[str], is_on: bool = True) -> None:
        """Makes nodes unschedulable, or schedulable again with `is_on=False`. Their pods stay."""
        with self._step():
            for node in [self._node(name) for name in names_of(nodes, "a node's name")]:
                self._trial.changed(node, replaced(node, spec=replaced(node.spec, unschedulable=bool(is_on))))

    def taint(self, node: str, *taints: str) -> None:
        """Taints a node as `kubectl taint` does: `key=value:Effect`, or `key:Effect`, in place of one of the same key
        and effect; `key:Effect-` or `key-` takes it off. Pods that are there stay, also under NoExecute.
        """
        with self._step():
            target = self._node(node)
            remaining = tainted(target.spec.taints, names_of(taints, "a taint"))
            self._trial.changed(target, replaced(target, spec=replaced(target.spec, taints=remaining)))

    def evict(self, *pods: str | Iterable[str]) -> dict[str, Sequence[str]]:
        """Evicts pods, in this order. Those that a controller recreates are pending then, the others are gone.

        Returns:
            namespace/name -> the PodDisruptionBudgets that allow the eviction no more, for which a drain would wait.
        """
        with self._step() as step:
            leaving = self._known(names_of(pods, "a pod's name"))
            for pod in leaving:
                if not pod.spec.node_name:
                    raise ReprieveError(f"pod {pod.key} is pending: there is no node to evict it from")
            return self._evicted(leaving, step)

    def drain(self, node: str) -> dict[str, Sequence[str]]:
        """Cordons a node, and evicts its pods as `evict` does, but for those of DaemonSets and static ones."""
        with self._step() as step:
            target = self._node(node)
            self._trial.changed(target, replaced(target, spec=replaced(target.spec, unschedulable=True)))
            residents = [pod for pod in self._trial.cluster.cache.pods if pod.spec.node_name == node]
            leaving = [pod for pod in residents if not (pod.is_terminating or engine.belongs_to_node(pod))]
            return self._evicted(leaving, step)

    def add_nodes(self, *, like: str | Mapping[str, Any], count: int = 1) -> list[str]:
        """Adds up to 1,000 nodes of the size, labels and taints of one that exists, or of a node as an object; empty
        but for the pods of DaemonSets. Returns their names.
        """
        with self._step():
            number = whole(count, "nodes cannot be added", 1)
            model = like if isinstance(like, Mapping) else line(like, "a node's name")
            cluster = self._trial.cluster
            if isinstance(model, str):
                objects = what_if.nodes_like(cluster, [NodesLike(like=model, count=number)])
            else:
                objects = what_if.nodes_of(cluster, [(_as_node(model), number)])
            self._placed(manifests.apply_manifests(self._trial, objects, self._admits).daemons)
            return [obj["metadata"]["name"] for obj in objects]

    @contextmanager
    def step(self) -> Iterator["Trial"]:
        """Makes one step of all that are done in the `with` block, and none of them if it raises. Blocks may nest; in
        one, `undo` takes back what was done in it.
        """
        self._check_open()
        outer, inner = self._done, list[ExitStack]()
        self._done = inner
        try:
            yield self
        except BaseException:
            while self._done is inner and inner:
                inner.pop().close()
            raise
        finally:
            if self._done is inner:
                self._done = outer
        if outer is not None and self._done is outer:
            together = ExitStack()
            for undone in inner:
                together.callback(undone.close)
            outer.append(together)

    def undo(self, steps: int = 1) -> None:
        """Takes back the last steps. What is decided then is what would have been decided without them."""
        with self._step(is_kept=False):
            done = self._done or []
            steps = whole(steps, "steps cannot be taken back", 0)
            if steps > len(done):
                raise ReprieveError(f"{steps} steps cannot be taken back: {len(done)} were done")
        for _ in range(steps):
            done.pop().close()

    @contextmanager
    def _step(self, *, is_kept: bool = True) -> Iterator[ExitStack]:
        self._check_open()
        self.notes = ()
        with in_words(), ExitStack() as taken_back:
            self._take_turns()
            taken_back.callback(self._give_turns_back, self._next_turn)
            taken_back.enter_context(self._trial.transaction())
            yield taken_back
            if is_kept and self._done is not None:
                self._done.append(taken_back.pop_all())

    def _check_open(self) -> None:
        if self._done is None:
            raise ReprieveError("this trial is over: open another one with Cluster.trial()")

    # Pods and nodes by name.

    def _node(self, name: str) -> Node:
        node = self._trial.cluster.nodes.get(line(name, "a node's name"))
        if node is None:
            raise ReprieveError(f'node "{name}" not found{did_you_mean(name, self._trial.cluster.nodes)}')
        return node

    def _candidates(self, names: str | Iterable[str] | None) -> list[str] | None:
        return None if names is None else [self._node(name).name for name in names_of([names], "a node's name")]

    def _waiting(self) -> list[Pod]:
        self._take_turns()
        cluster, turns = self._trial.cluster, self._turns
        waiting = (pod for uid, pod in cluster.pending.items() if cluster.cache.pod(uid) is None)
        return sorted(waiting, key=lambda pod: turns[pod.uid])

    def _take_turns(self) -> None:
        """Gives pods that became pending since the last call their turns; the last ones that came are the last ones."""
        turns, pending = self._turns, self._trial.cluster.pending
        new = [*takewhile(lambda uid: uid not in turns, reversed(pending))]
        for uid in reversed(new):
            self._take_turn(uid)

    def _take_turn(self, uid: str) -> None:
        self._turns[uid] = self._next_turn
        self._next_turn += 1

    def _give_turns_back(self, before: int) -> None:
        """Forgets the turns that were taken later."""
        if self._next_turn > before:
            for uid in [uid for uid, turn in self._turns.items() if turn >= before]:
                del self._turns[uid]
            self._next_turn = before

    def _known(self, names: Iterable[str]) -> list[Pod]:
        pods = []
        for name in names:
            pod = self._trial.cluster.named(name if "/" in name else f"default/{name}")
            if pod is None:
                raise ReprieveError(f"pod {name if '/' in name else f'default/{name}'} not found")
            pods.append(pod)
        return pods

    def _one(self, what: Objects) -> Pod:
        pods = self._pods(what)
        if len(pods) != 1:
            raise ReprieveError(f"give one pod, not {len(pods)}")
        return pods[0]

    def _pods(self, what: Objects, *, may_be_named: bool = True) -> list[Pod]:
        names, objects = pods_or_objects(what)
        if names and not may_be_named:
            raise ReprieveError(f"{names[0]!r:.80} is a name: give objects, or a file")
        pods = self._known(names)
        if placed := [pod for pod in pods if pod.spec.node_name]:
            raise ReprieveError(f"pod {placed[0].key} is not pending: it is on {placed[0].spec.node_name}")
        if names:
            return pods
        equal = without_copies(objects, self._trial.cluster)
        firsts = [plain(first) for first in equal.firsts]
        applied = manifests.apply_manifests(self._trial, firsts, self._admits, most_pods=sys.maxsize)
        self.notes = applied.notes
        if applied.rollouts:
            name = applied.rollouts[0][0].name
            raise ReprieveError(f"{name} has pods of another template: `reprieve whatif` plays how they are replaced")
        refusals = pinned_pods.run_on_named_nodes(self._trial, applied.on_named_nodes)
        if not all(self._trial.cluster.cache.pod(pod.uid) for pod in applied.on_named_nodes):
            raise ReprieveError("; ".join(refusals))
        for pod in applied.surplus:
            self._trial.remove(self._trial.cluster.cache.pod(pod.uid) or pod)
        created = equal.made(applied.pods)
        for pod in created if equal.copies else ():
            if pod.key in equal.copies:
                self._trial.changed(None, pod)
            self._take_turn(pod.uid)
        return [*applied.daemons, *created]

    # Decisions.

    def _why_not_tried(self, pod: Pod) -> str:
        if self._trial.frameworks.get(pod.scheduler_name) is None:
            return f'no profile here for schedulerName "{pod.scheduler_name}"'
        if pod.is_terminating:
            return f"skip schedule deleting pod: {pod.key}"
        return self._trial.why_gated(pod)

    def _placed(
        self,
        pods: Sequence[Pod],
        *,
        scores: bool = False,
        is_restricted: bool = False,
        stop_on_failure: bool = False,
    ) -> Placements:
        trial, placements = self._trial, dict[str, Placement]()
        simulated_pods.drop_leftover_claims(trial, pods)
        for pod in pods:
            if why_not := self._why_not_tried(pod):
                placements[pod.uid] = Placement(pod.key, message=why_not)
        for pod in sorted((pod for pod in pods if pod.uid not in placements), key=self._turn):
            attempted = [pod]
            key = trial.frameworks[pod.scheduler_name].group_of(pod)
            if key is None:
                attempt = trial.schedule(pod)
                placements[pod.uid] = self._settled(
                    pod, attempt.node, attempt.message, _scores_of(attempt) if scores else {}
                )
            elif is_restricted:
                raise ReprieveError(f"pod {pod.key} is of a pod group, which is placed as a whole: give no nodes")
            elif pod.uid not in placements:
                pending = [
                    member for member in self._waiting() if group_of(member) == key and not self._why_not_tried(member)
                ]
                attempted = sorted(pending, key=lambda member: -member.priority)
                result, _ = outcome_of(trial.try_group(key, attempted, preempts=False))
                for member, outcome in zip(attempted, trial.place_group(result, len(attempted)), strict=True):
                    placements[member.uid] = self._settled(member, *outcome, {})
            if stop_on_failure and not all(placements[member.uid].node for member in attempted):
                break
        return Placements(placements.values())

    def _settled(self, pod: Pod, node: str, message: str, scores: Mapping[str, int]) -> Placement:
        if not node and pod.status.nominated_node_name:
            # As the scheduler does with a pod that fits nowhere.
            self._trial.changed(pod, replaced(pod, status=replaced(pod.status, nominated_node_name="")))
        return Placement(pod.key, node, message, scores)

    def _turn(self, pod: Pod) -> Any:
        return self._trial.frameworks[pod.scheduler_name].plugins.queue_sort.sort_key(pod, 0.0)

    def _evicted(self, pods: Sequence[Pod], step: ExitStack) -> dict[str, Sequence[str]]:
        budgets = self._trial.disrupt(pods)
        self._off_their_nodes(pods, step)
        return {pod.key: names for pod, names in zip(pods, budgets, strict=True)}

    def _off_their_nodes(self, pods: Sequence[Pod], step: ExitStack) -> list[Pod]:
        """Takes pods off their nodes; returns those that a controller recreates, which are the last in the queue."""
        self._lose_turns(pods, step)
        recreated = [self._trial.evict(pod) for pod in pods]
        return [pod for pod in recreated if pod is not None]

    def _lose_turns(self, pods: Sequence[Pod], step: ExitStack) -> None:
        turns = {pod.uid: self._turns.pop(pod.uid) for pod in pods if pod.uid in self._turns}
        step.callback(self._turns.update, turns)


def parts_of(trial: Trial) -> tuple[engine.Trial, list[Pod], Callable[[Pod], str]]:
    """Returns the engine's trial, its pending pods, and the function that says why a pod is not tried."""
    return trial._trial, trial._waiting(), trial._why_not_tried


def _scores_of(attempt: engine.TrialAttempt) -> Mapping[str, int]:
    choice = attempt.choice
    if choice is None:
        return {}
    scores = choice.scores_at(np.array([choice.chosen])).weighted
    return {plugin: int(of_node[0]) for plugin, of_node in scores.items()}


def _as_node(obj: Mapping[str, Any]) -> Node:
    if obj.get("kind") != "Node" or not isinstance(obj.get("metadata"), Mapping) or not obj["metadata"].get("name"):
        raise ReprieveError(f"{obj!r:.80} is no node with a name: give one as the API has it")
    return convert(Node, plain(obj))
