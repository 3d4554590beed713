"""kube-scheduler itself, on a cluster in memory, with a rule of the user's as its extender. The server is not here."""

from reprieve.lab.kube_scheduler.conversation import Attempt, Conversation
from reprieve.lab.kube_scheduler.program import KubeScheduler, RunningScheduler, written_for

__all__ = ["Attempt", "Conversation", "KubeScheduler", "RunningScheduler", "written_for"]
