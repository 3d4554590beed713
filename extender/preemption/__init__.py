"""Preemption: which pods would have to go for a pending pod, and on which node.

This package decides and evicts nothing; `extender.scheduler.executor` performs the eviction.
"""

from extender.preemption.costs import pick_one_node_for_preemption
from extender.preemption.evaluator import Evaluator

__all__ = ["Evaluator", "pick_one_node_for_preemption"]
