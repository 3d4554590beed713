"""What would become of pod groups, as parts of answers."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from extender.answers.explain.preemption import victim
from extender.answers.parts import PodName, Victim
from extender.answers.phrases import alone_would_evict, plural
from extender.answers.trial import Trial
from extender.answers.types import Capacity, GroupOutcome, MemberOutcome
from extender.engine.cache.cluster import Cluster
from extender.engine.preemption.minimal_victims import why_ignored
from extender.engine.runtime.framework import Framework
from extender.engine.scheduler.pod_group_trial import GroupResult
from extender.values import limits
from extender.values.objects.grouping import GroupKey
from extender.values.objects.pod import Pod


def gangs_in(cluster: Cluster, framework: Framework, pod: Pod, capacity: Capacity) -> Capacity:
    """Returns how many of a pod fit, with the number of gangs that this is."""
    key = framework.group_of(pod)
    group = None if key is None else cluster.cache.objects.pod_groups.get(key)
    size = 0 if group is None else group.min_count or 0
    if group is None or not size:
        return capacity
    pods: Counter[str] = Counter()
    for room in capacity.by_node:
        domain = cluster.nodes[room.node].labels.get(group.topology_key) if group.topology_key else ""
        if domain is not None:
            pods[domain] += room.pods
    return msgspec.structs.replace(capacity, gangs=sum(number // size for number in pods.values()), gang_size=size)


async def outcome_now(trial: Trial, key: GroupKey) -> GroupOutcome | None:
    """Returns what would become of the group now; None if no member waits, or too many to be tried for an answer."""
    cache = trial.cluster.cache
    pods = [
        pod for uid, pod in cache.group_members(key).items() if cache.pod(uid) is None and not pod.spec.scheduling_gates
    ]
    if not 0 < len(pods) <= limits.GROUP_MEMBERS:
        return None
    result, victims = await trial.try_group(key, sorted(pods, key=lambda pod: -pod.priority))
    now = trial.frameworks[pods[0].scheduler_name].now().timestamp()
    evicted, instead_of = (
        [victim(pod, now) for pod in candidate.victims] if candidate else []
        for candidate in (victims, result.without_policies)
    )
    return group_outcome(trial.cluster, key, len(pods), result, evicted, instead_of)


def group_outcome(
    cluster: Cluster,
    key: GroupKey,
    num_members: int,
    result: GroupResult,
    evicted: Sequence[Victim] = (),
    instead_of: Sequence[Victim] = (),
) -> GroupOutcome:
    """Returns the result as a part of an answer, with who was evicted before, and whom kube-scheduler would evict."""
    group = cluster.cache.objects.pod_groups.get(key)
    nearest = result.nearest or result
    fits = sum(member.failure is None for member in nearest.members)
    outcome = GroupOutcome(
        namespace=key[0],
        name=key[1],
        members=num_members,
        fits=fits,
        min_count=None if group is None else group.min_count,
        scheduled=result.status.is_success,
        topology_key="" if group is None else group.topology_key,
        placement=nearest.placement if group is not None and group.topology_key else "",
        message="" if result.status.is_success else result.status.message,
        evicts=tuple(evicted),
        without_policies=tuple(instead_of),
        pods=tuple(
            MemberOutcome(
                pod=PodName.of(member.pod),
                node="" if member.result is None else member.result.suggested_host,
                message="" if member.failure is None else member.failure.status.message,
            )
            for member in nearest.members
        ),
    )
    refusal = next(
        (
            # The first sentence is about the nodes; the others are about preemption.
            f"{member.pod.key}: {member.failure.status.message.partition('. ')[0].rstrip('.')}"
            for member in nearest.members
            if member.failure is not None
        ),
        "",
    )
    ignored = "" if group is None else why_ignored(group)
    return msgspec.structs.replace(outcome, text="; ".join(filter(None, [_sentence(outcome, refusal), ignored])))


def _sentence(outcome: GroupOutcome, refusal: str) -> str:
    """Returns the outcome in words; the refusal says why a member gets no node, and is empty if all do."""
    where = f" in {outcome.topology_key}={outcome.placement}" if outcome.topology_key and outcome.placement else ""
    name = f"PodGroup {outcome.namespace}/{outcome.name}"
    if outcome.scheduled and outcome.fits == outcome.members:
        alone = alone_would_evict(outcome)
        saving = f"; it evicts {plural(len(outcome.evicts), 'pod')}, where {alone}" if alone else ""
        return f"{name} would be scheduled as a whole{where}{saving}"
    needs = "" if outcome.min_count is None else f" (the gang needs {outcome.min_count})"
    verb = "be scheduled" if outcome.scheduled else "wait"
    why = f"; {refusal or outcome.message}" if refusal or outcome.message else ""
    return f"{name} would {verb}: {outcome.fits} of {outcome.members} pods fit{where}{needs}{why}"
