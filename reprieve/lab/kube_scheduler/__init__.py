"""kube-scheduler itself, on a cluster in memory, with a rule of the user's as its extender. The server is not here."""

from reprieve.lab.kube_scheduler.conversation import Conversation
from reprieve.lab.kube_scheduler.program import KubeScheduler, RunningScheduler, alone, written_for

__all__ = ["Conversation", "KubeScheduler", "RunningScheduler", "alone", "written_for"]
