"""Executor: makes the room that was promised. Victims leave, the last one last; lower promises on the node are taken back.

Other than upstream, the promise is written before the first victim is told to go, and a victim is deleted by its UID: a crash in between
loses neither a promise nor a pod that only has a victim's name.

Upstream: pkg/scheduler/framework/preemption/executor.go (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, final

from extender import framework as fwk
from extender.framework.pod_calls import PodCondition
from extender.klog.logger import Logger
from extender.objects.pod import Pod

MESSAGE: Final = "preempting to accommodate a higher priority pod"
IN_MEMORY: Final = " (in kube-scheduler memory)."

Tell = Callable[[Pod, str], None]
"""Records the event that a pod was preempted: the victim, and the note."""

_LOG: Final = Logger(__name__)


@final
class Preemptions:
    """Pods for which victims are leaving, by UID, each with its last victim once that one was told to. One for all profiles."""

    def __init__(self) -> None:
        self._last_victims: dict[str, Pod | None] = {}

    def begin(self, uid: str) -> None:
        """Victims are being told to leave for the pod."""
        self._last_victims[uid] = None

    def tell_last(self, uid: str, victim: Pod) -> None:
        """All others were told; now the last one is."""
        self._last_victims[uid] = victim

    def end(self, uid: str) -> None:
        """All were told, or it came to nothing. Idempotent."""
        self._last_victims.pop(uid, None)

    def is_running(self, uid: str, live: fwk.LiveCluster | None) -> bool:
        """Whether it is too early for the pod to be tried again. It is not any more once the last victim is on its way out."""
        if uid not in self._last_victims:
            return False
        victim = self._last_victims[uid]
        if victim is None or live is None:
            return True
        known = live.pod(victim.uid)
        return known is not None and not known.is_terminating


PREEMPTIONS: Final = fwk.StateKey[Preemptions]("Preemptions")


@final
class Executor:
    """Acts on what the Evaluator chose."""

    def __init__(self, dispatcher: fwk.Dispatcher, preempt_in_memory: Callable[[str], bool], tell: Tell, preemptions: Preemptions) -> None:
        """Nothing happens yet.

        Arguments:
            preempt_in_memory: takes the room of a pod (UID) away that was decided about and is not bound yet; False if it is none.
        """
        self._dispatcher = dispatcher
        self._preempt_in_memory = preempt_in_memory
        self._tell = tell
        self._preemptions = preemptions

    async def prepare(self, preemptor: Pod, victims: fwk.NodeVictims, lower: Sequence[Pod]) -> bool:
        """Let the victims go, once the promise to the preemptor is written.

        Arguments:
            lower: pods of lower priority that were promised room on the node; they must look elsewhere.

        Returns:
            False if not all could be told to leave; the preemptor is to be tried again then.
        """
        node = victims.node
        leaving = [pod for pod in victims.pods if not pod.is_terminating]
        for pod in victims.pods:
            if pod.is_terminating:
                about = {"preemptor": preemptor, "node": node, "victim": pod}
                _LOG.info(2, "Victim Pod is already being deleted, skipping the API call for it", **about)
        numbers = {"numVictims": len(victims.pods), "numVictimsToDelete": len(leaving)}
        _LOG.info(2, "Start the preemption asynchronously", preemptor=preemptor, node=node, **numbers)
        for pod in lower:
            self._dispatcher.submit(fwk.PatchPodStatus.of(pod, nominated_node_name=""))
        if not leaving:
            return True
        result = "error"
        *others, last = leaving
        try:
            results = await asyncio.gather(*(self._preempt(preemptor, pod, victims.node) for pod in others), return_exceptions=True)
            for failure in results:
                if failure is not None:
                    raise failure
            self._preemptions.tell_last(preemptor.uid, last)
            await self._preempt(preemptor, last, victims.node)
            result = "success"
        except fwk.CallError as exc:
            _LOG.error(exc, "Error occurred during async preemption", preemptor=preemptor, node=node)
            return False
        finally:
            self._preemptions.end(preemptor.uid)
            _LOG.info(2, "Async Preemption finished completely", preemptor=preemptor, node=node, result=result)
        return True

    async def _preempt(self, preemptor: Pod, victim: Pod, node: str) -> None:
        """Upstream: executor.go, PreemptPod."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        if self._preempt_in_memory(victim.uid):
            _LOG.info(2, "Preemptor pod preempted a waiting pod", preemptor=preemptor, waitingPod=victim, node=node)
            self._tell(victim, note + IN_MEMORY)
            return
        message = f"{preemptor.scheduler_name}: {MESSAGE}"
        condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", message, victim.metadata.generation)
        try:
            await self._dispatcher.perform(fwk.PatchPodStatus.of(victim, condition))
            await self._dispatcher.perform(fwk.DeletePod.of(victim))
        except (fwk.CallNotFound, fwk.CallConflict):
            # If another pod has its name, that one was not meant.
            _LOG.info(2, "Victim Pod is already deleted", preemptor=preemptor, victim=victim, node=node)
            return
        except fwk.CallError as exc:
            _LOG.error(exc, "Tried to preempted pod", pod=victim, preemptor=preemptor)
            raise
        _LOG.info(2, "Preemptor Pod preempted victim Pod", preemptor=preemptor, victim=victim, node=node)
        self._tell(victim, note)
