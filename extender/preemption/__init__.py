"""Making room: which pods would have to go, and from where. Nothing is evicted in here; the outcome is a value."""

from extender.preemption.candidates import Candidates, pick_one_node_for_preemption
from extender.preemption.evaluator import OUTCOME, Evaluator, PreemptionOutcome

__all__ = ["OUTCOME", "Candidates", "Evaluator", "PreemptionOutcome", "pick_one_node_for_preemption"]
