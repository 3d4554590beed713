"""Phrases that the command line, the page and the summaries share. They need no engine."""

from extender.answers.types import Lack, PreemptionAnswer
from extender.objects.preemption_messages import NO_VICTIMS, NOT_HELPFUL
from extender.objects.resource_names import PODS


def noun(lack: Lack) -> str:
    """Returns the word for what the node is short of: `cpu`, `pods`, but one `pod`."""
    return "pod" if lack.resource == PODS and lack.short == "1" else lack.resource


def why_no_room(preemption: PreemptionAnswer) -> str:
    """Returns half a sentence that says why evictions do not help this pod. It is not about pods with a higher priority."""
    if not preemption.eligible:
        return f"it may not preempt: {preemption.message.removesuffix('.')}"
    if preemption.num_candidates:
        return f"preemption failed: {preemption.message.removesuffix('.')}"
    reasons = {each.reason for each in preemption.not_helpful} - {NOT_HELPFUL}
    if not reasons:
        return "no eviction would make room"
    if reasons == {NO_VICTIMS}:
        return "no pod of lower priority is on a node where evictions could help"
    return "evicting all pods of lower priority would not make room"
