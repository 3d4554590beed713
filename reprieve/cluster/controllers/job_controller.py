"""Jobs: pods that run to their end, until enough of them have.

Pods end when something ends them: here the annotation `reprieve.dev/runs-for`, or whoever writes their status. A
finished pod that is deleted before its Job is done counts no more, since pods have no finalizer of their Job.

Upstream: pkg/controller/job/job_controller.go, syncJob, manageJob; indexed_job_utils.go.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import count, islice
from typing import Final, final

from extender.rules.api_resources import JOBS, PODS, Object
from extender.values.workloads.templates import pod_from_template
from reprieve.cluster.controllers.controller_loop import BURST, SETTLING, Controller, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, RequeueAfter, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod
from reprieve.cluster.controllers.replica_set_controller import changed_owners, pods_to_delete
from reprieve.cluster.registry.conditions import condition, seconds_since, timestamp, with_condition

INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""The label and annotation with the index of a pod."""

_OURSELVES: Final = "kubernetes.io/job-controller"
_ENDS: Final = {
    "Complete": ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"),
    "Failed": ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
}
"""How a Job ends: the condition before it, the reason and the message."""


@final
class Jobs(Controller):
    """Controls batch/v1 Jobs. Keys are those of Jobs."""

    name = "job"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.resource is JOBS:
            self.queue.add(new.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for key in changed_owners(old, new, JOBS):
            self.queue.add_after(key, SETTLING)

    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(JOBS, *key)
        if seen is None or seen.deleted:
            return
        content = seen.content()
        spec, status = content["spec"], content.get("status") or {}
        if spec.get("managedBy", _OURSELVES) != _OURSELVES:
            return
        if any((condition(status.get("conditions"), kind) or {}).get("status") == "True" for kind in _ENDS):
            yield from self._expire(seen, content)
            return
        group = self.cluster.pods_of(seen.uid)
        phases = Counter(pod.phase for pod in group.pods.values())
        done = _completed(spec, group.pods.values())
        end = _end(spec, len(done), phases["Failed"], group.active)
        wanted = 0 if end or spec.get("suspend") else _wanted(spec, len(done), group.active)
        yield from self._say(
            seen,
            content,
            end,
            {
                "active": group.active,
                "ready": group.ready,
                "terminating": group.terminating,
                "succeeded": len(done),
                "failed": phases["Failed"],
            },
        )
        if group.active > wanted:
            active = [pod for pod in group.pods.values() if pod.is_active]
            nodes = Counter(pod.node for pod in active if pod.node)
            for pod in pods_to_delete(active, nodes, min(group.active - wanted, BURST), self.now()):
                yield Delete(pod)
            return
        if spec.get("podReplacementPolicy") == "Failed":
            wanted -= group.terminating
        taken = _taken(group.pods.values())
        indexes = (each for each in count() if each not in taken)
        for index in islice(indexes, max(min(wanted - group.active, BURST), 0)):
            yield Create(PODS, seen.namespace, _pod(content, index))

    def _say(self, seen: Observed, content: Object, end: str, counts: Object) -> Steps:
        spec, old = content["spec"], content.get("status") or {}
        status = {name: value for name, value in old.items() if name not in counts}
        always = ("ready", "terminating")
        status |= {name: number for name, number in counts.items() if number or name in always}
        status.setdefault("uncountedTerminatedPods", {})
        at, conditions = timestamp(self.now()), list(old.get("conditions") or ())
        is_suspended = bool(spec.get("suspend"))
        if is_suspended or condition(conditions, "Suspended"):
            reason, word = ("JobSuspended", "suspended") if is_suspended else ("JobResumed", "resumed")
            said = {"type": "Suspended", "status": str(is_suspended), "reason": reason, "message": f"Job {word}"}
            conditions = with_condition(conditions, said, self.now())
        if not is_suspended:
            status.setdefault("startTime", at)
        if end:
            before, reason, message = _ENDS[end]
            for kind in (before, end):
                said = {"type": kind, "status": "True", "reason": reason, "message": message}
                conditions = with_condition(conditions, said, self.now())
        if end == "Complete":
            status["completionTime"] = at
        if conditions:
            status["conditions"] = conditions
        yield from changed_status(seen, content, status)

    def _expire(self, seen: Observed, content: Object) -> Steps:
        """Deletes a Job that ended long enough ago. Upstream: pkg/controller/ttlafterfinished."""
        seconds = content["spec"].get("ttlSecondsAfterFinished")
        ends = (condition(content["status"].get("conditions"), kind) for kind in _ENDS)
        since = seconds_since(next(each for each in ends if each)["lastTransitionTime"], self.now())
        if seconds is not None:
            left = seconds - (since or 0.0)
            yield RequeueAfter(left) if left > 0 else Delete(seen)


def _end(spec: Object, succeeded: int, failed: int, active: int) -> str:
    """How the Job has ended; empty if it goes on."""
    if failed > spec.get("backoffLimit", 6):
        return "Failed"
    completions = spec.get("completions")
    is_enough = succeeded > 0 and not active if completions is None else succeeded >= completions
    return "Complete" if is_enough else ""


def _wanted(spec: Object, succeeded: int, active: int) -> int:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is not None:
        return min(parallelism, int(completions) - succeeded)
    # Once one has succeeded, the others know that there is no more to do.
    return min(parallelism, active) if succeeded else parallelism


def _completed(spec: Object, pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """The pods that succeeded; of an indexed Job one for each index."""
    succeeded = [pod for pod in pods if pod.phase == "Succeeded"]
    if spec.get("completionMode") != "Indexed":
        return succeeded
    return list({pod.labels.of.get(INDEX): pod for pod in succeeded}.values())


def _taken(pods: Iterable[ObservedPod]) -> set[int]:
    """The indexes that need no pod."""
    kept = (pod.labels.of.get(INDEX, "") for pod in pods if pod.phase != "Failed" and not pod.deleted)
    return {int(each) for each in kept if each.isdecimal()}


def _pod(job: Object, index: int) -> Object:
    name = job["metadata"]["name"]
    pod = pod_from_template(job["spec"].get("template") or {}, job)
    metadata = pod["metadata"]
    metadata["generateName"] = f"{name}-"
    if job["spec"].get("completionMode") == "Indexed":
        metadata["generateName"] = f"{name}-{index}-"
        for part in ("labels", "annotations"):
            metadata[part] = {**(metadata.get(part) or {}), INDEX: str(index)}
        pod["spec"] = {**pod["spec"], "hostname": f"{name}-{index}"}
    return pod
