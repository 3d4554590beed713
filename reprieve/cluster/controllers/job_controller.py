"""Jobs: pods that run to completion, until enough of them have succeeded.

The annotation `reprieve.dev/runs-for` ends pods here, or whoever writes their status. A finished pod that is deleted
before its Job is done no longer counts, since pods have no finalizer of their Job.

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
"""By the final condition of a Job: the condition before it, the reason and the message."""


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
        job = self.cluster.get(JOBS, *key)
        if job is None or job.deleted:
            return
        content = job.content()
        spec, status = content["spec"], content.get("status") or {}
        if spec.get("managedBy", _OURSELVES) != _OURSELVES:
            return
        if any((condition(status.get("conditions"), kind) or {}).get("status") == "True" for kind in _ENDS):
            yield from self._expire(job, content)
            return
        group = self.cluster.pods_of(job.uid)
        phases = Counter(pod.phase for pod in group.pods.values())
        done = _completed(spec, group.pods.values())
        end = _end(spec, len(done), phases["Failed"], group.active)
        parallelism = 0 if end or spec.get("suspend") else _parallelism(spec, len(done), group.active)
        yield from self._write_status(
            job,
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
        if group.active > parallelism:
            active = [pod for pod in group.pods.values() if pod.is_active]
            nodes = Counter(pod.node for pod in active if pod.node)
            for pod in pods_to_delete(active, nodes, min(group.active - parallelism, BURST), self.now()):
                yield Delete(pod)
            return
        if spec.get("podReplacementPolicy") == "Failed":
            parallelism -= group.terminating
        busy = _busy_indexes(group.pods.values())
        indexes = (index for index in count() if index not in busy)
        for index in islice(indexes, max(min(parallelism - group.active, BURST), 0)):
            yield Create(PODS, job.namespace, _pod(content, index))

    def _write_status(self, job: Observed, content: Object, end: str, counts: Object) -> Steps:
        spec, old = content["spec"], content.get("status") or {}
        status = {name: value for name, value in old.items() if name not in counts}
        always = ("ready", "terminating")
        status |= {name: number for name, number in counts.items() if number or name in always}
        status.setdefault("uncountedTerminatedPods", {})
        stamp, conditions = timestamp(self.now()), list(old.get("conditions") or ())
        is_suspended = bool(spec.get("suspend"))
        if is_suspended or condition(conditions, "Suspended"):
            reason, word = ("JobSuspended", "suspended") if is_suspended else ("JobResumed", "resumed")
            new = {"type": "Suspended", "status": str(is_suspended), "reason": reason, "message": f"Job {word}"}
            conditions = with_condition(conditions, new, self.now())
        if not is_suspended:
            status.setdefault("startTime", stamp)
        if end:
            before, reason, message = _ENDS[end]
            for kind in (before, end):
                new = {"type": kind, "status": "True", "reason": reason, "message": message}
                conditions = with_condition(conditions, new, self.now())
        if end == "Complete":
            status["completionTime"] = stamp
        if conditions:
            status["conditions"] = conditions
        yield from changed_status(job, content, status)

    def _expire(self, job: Observed, content: Object) -> Steps:
        """Deletes a Job whose time to live after its end is over. Upstream: pkg/controller/ttlafterfinished."""
        seconds = content["spec"].get("ttlSecondsAfterFinished")
        ends = (condition(content["status"].get("conditions"), kind) for kind in _ENDS)
        since = seconds_since(next(end for end in ends if end)["lastTransitionTime"], self.now())
        if seconds is not None:
            remaining = seconds - (since or 0.0)
            yield RequeueAfter(remaining) if remaining > 0 else Delete(job)


def _end(spec: Object, succeeded: int, failed: int, active: int) -> str:
    """Returns the condition with which the Job ends; empty if it goes on."""
    if failed > spec.get("backoffLimit", 6):
        return "Failed"
    completions = spec.get("completions")
    is_enough = succeeded > 0 and not active if completions is None else succeeded >= completions
    return "Complete" if is_enough else ""


def _parallelism(spec: Object, succeeded: int, active: int) -> int:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is not None:
        return min(parallelism, int(completions) - succeeded)
    # Once a pod has succeeded, no new ones are started.
    return min(parallelism, active) if succeeded else parallelism


def _completed(spec: Object, pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """Returns the pods that succeeded; of an indexed Job one for each index."""
    succeeded = [pod for pod in pods if pod.phase == "Succeeded"]
    if spec.get("completionMode") != "Indexed":
        return succeeded
    return list({pod.labels.by_name.get(INDEX): pod for pod in succeeded}.values())


def _busy_indexes(pods: Iterable[ObservedPod]) -> set[int]:
    """Returns the indexes that need no further pod."""
    indexes = (pod.labels.by_name.get(INDEX, "") for pod in pods if pod.phase != "Failed" and not pod.deleted)
    return {int(index) for index in indexes if index.isdecimal()}


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
