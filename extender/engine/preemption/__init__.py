"""Preemption: finds a node on which a pending pod fits once pods of lower priority are evicted, and these pods.

This package decides and evicts nothing; `extender.engine.scheduler.executor` performs the eviction.
"""

from extender.engine.preemption.evaluator import Evaluator
from extender.engine.preemption.rules import (
    RULES,
    V1_12,
    V1_17,
    V1_25,
    V1_36,
    rules_of,
)
