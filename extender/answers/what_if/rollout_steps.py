"""Rollouts, step by step, in a simulation. A pod that has a node counts as ready at once."""

from collections.abc import Mapping, Sequence
from typing import Literal, final

from extender.answers.phrases import plural
from extender.answers.what_if.rollouts import Rollout
from extender.answers.what_if.simulation import Simulation
from extender.values.objects.pod import Pod
from extender.values.workloads.deployments import Revision, rolled, scaled

_OLD, _NEW = "old", "new"


@final
class RunningRollout:
    """One rollout. State: its pods that exist, and those that are still to be created."""

    def __init__(
        self, simulation: Simulation, rollout: Rollout, successors: Sequence[Pod], additions: Sequence[Pod] = ()
    ) -> None:
        """Nothing has moved yet. Successors are not created yet; the additions are a StatefulSet's missing pods."""
        self._simulation = simulation
        self._rollout = rollout
        self._old = list(rollout.old)
        self._new = list(rollout.unchanged)
        self._created = list(additions)
        self._to_come = list(successors)

    def begin(self) -> None:
        """Takes the steps that do not wait for pods to be ready."""
        rollout = self._rollout
        if rollout.how == "recreate":
            self._shrink(self._old, 0, "replaced")
            return
        if rollout.how == "ordered":
            return
        number = len(self._old) + len(self._new)
        if not self._new:
            self._grow(self._rolled().get(_NEW, 0))
        if number == rollout.replicas:
            return
        # The Deployment was scaled as well.
        revisions = self._revision(_OLD, self._old), self._revision(_NEW, self._new)
        active = [revision for revision in revisions if revision.replicas]
        sizes = scaled(rollout.replicas, rollout.surge, active)
        self._shrink(self._old, sizes.get(_OLD, len(self._old)), "scaled down")
        self._shrink(self._new, sizes.get(_NEW, len(self._new)), "scaled down")

    def advance(self) -> bool:
        """Takes the next step once pods are placed as far as they fit; returns False if it has ended or is stuck."""
        rollout = self._rollout
        if rollout.how == "ordered":
            return self._advance_in_order()
        if rollout.how == "recreate":
            if len(self._new) >= rollout.replicas or not self._to_come:
                return False
            self._grow(rollout.replicas)
            return True
        before, sizes = (len(self._old), len(self._new)), self._rolled()
        self._shrink(self._old, sizes.get(_OLD, len(self._old)), "replaced")
        self._shrink(self._new, sizes.get(_NEW, len(self._new)), "scaled down")
        self._grow(sizes.get(_NEW, len(self._new)))
        return before != (len(self._old), len(self._new))

    @property
    def outcome(self) -> str:
        """A sentence that says how far the rollout gets, if old pods are left in the end; empty if it completes."""
        if not self._old:
            return ""
        stays = plural(len(self._old), "pod")
        return f"The rollout of {self._rollout.name} would stop there: {stays} of the old template would stay"

    def _advance_in_order(self) -> bool:
        if not self._old:
            return False
        waits_for = [*self._new, *self._created]
        if self._rollout.in_turn:
            waits_for += self._old
        if not all(map(self._has_node, waits_for)):
            return False
        old = self._old.pop(0)
        self._simulation.withdraw(old, "replaced")
        successor = next(pod for pod in self._to_come if pod.name == old.name)
        self._to_come.remove(successor)
        self._create(successor)
        return True

    def _grow(self, size: int) -> None:
        while len(self._new) < size and self._to_come:
            self._create(self._to_come.pop(0))

    def _create(self, pod: Pod) -> None:
        self._simulation.trial.changed(None, pod)
        self._simulation.submit(pod, "created")
        self._new.append(pod)

    def _shrink(self, pods: list[Pod], size: int, why: Literal["scaled down", "replaced"]) -> None:
        for pod in sorted(pods, key=self._has_node)[: max(len(pods) - max(size, 0), 0)]:
            self._simulation.withdraw(pod, why)
            pods.remove(pod)

    def _rolled(self) -> Mapping[str, int]:
        rollout, old, new = self._rollout, self._revision(_OLD, self._old), self._revision(_NEW, self._new)
        return rolled(rollout.replicas, rollout.surge, rollout.unavailable, new, [old])

    def _revision(self, name: str, pods: Sequence[Pod]) -> Revision:
        return Revision(name, len(pods), sum(map(self._has_node, pods)))

    def _has_node(self, pod: Pod) -> bool:
        return self._simulation.trial.cluster.cache.pod(pod.uid) is not None


async def run_all(simulation: Simulation, rollouts: Sequence[RunningRollout]) -> None:
    """Places all pods, and takes the rollouts as far as they get."""
    await simulation.run()
    # Each takes one step, whether or not another one has moved.
    while simulation.is_complete and sum(rollout.advance() for rollout in rollouts):
        await simulation.run()
