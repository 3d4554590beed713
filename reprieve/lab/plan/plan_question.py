"""The question for a plan."""

from typing import Any, Final, final

from extender.answers.catalogue import POD_EXAMPLE, Question, Row
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest

_EXAMPLES: Final = {
    "a pod that needs room": {"create": [POD_EXAMPLE], "maxMoves": 3},
    "two free nodes": {"freeNodes": 2},
}


@final
@Row("POST /plan", "plan", "The moves, in the order in which they have to be made.", body="request", examples=_EXAMPLES)
class PlanQuestion(Question[PlanAnswer], frozen=True):
    """Which pods would have to move, so that it fits?

    Looks for the fewest moves of running pods after which new pods fit, or so many whole nodes are free, budgets kept
    and nobody lost. Nothing is written.
    """

    request: PlanRequest

    def ask(self, answering: Any, **options: object) -> PlanAnswer:
        """Searches in the cluster that `answering`, a `Questions`, is about."""
        from reprieve.lab.plan.plan import plan  # noqa: PLC0415 - commands ask a service without the engine

        answer: PlanAnswer = answering.simulate(plan, self.request)
        return answer
