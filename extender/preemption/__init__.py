"""Preemption: on which node a pending pod would fit if pods of lower priority were evicted, and which pods those are.

This package decides and evicts nothing; `extender.scheduler.executor` performs the eviction.
"""

from extender.preemption.costs import pick_one_node_for_preemption
from extender.preemption.evaluator import Evaluator

__all__ = ["Evaluator", "pick_one_node_for_preemption"]
