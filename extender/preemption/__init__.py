"""Making room: which pods would have to go, and from where. Nothing is evicted in here; `extender.scheduler.executor` acts."""

from extender.preemption.candidates import pick_one_node_for_preemption
from extender.preemption.evaluator import Evaluator

__all__ = ["Evaluator", "pick_one_node_for_preemption"]
