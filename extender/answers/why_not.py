"""Why a node lost against the one that was chosen: the first criterion that tells the two apart, in words.

It takes numbers, so that a comparison can be put into words long after the victims are gone.
"""

from datetime import UTC, datetime
from typing import Final

from extender.golang.times import rfc3339
from extender.objects.pod import STARTED_NOW
from extender.preemption.costs import Costs

_LATEST: Final = int(datetime.max.replace(tzinfo=UTC).timestamp())


def why_not(lost: Costs, chosen: Costs, node: str) -> str:
    """Why a node with these costs was not chosen.

    Arguments:
        node: the name of the chosen one.
    """
    if lost.num_pdb_violations != chosen.num_pdb_violations:
        return f"{_violations(lost.num_pdb_violations)}, {chosen.num_pdb_violations or 'none'} on {node}"
    if lost.first_priority != chosen.first_priority:
        return f"its most important victim has priority {lost.first_priority}, on {node} it is {chosen.first_priority}"
    if lost.sum_of_priorities != chosen.sum_of_priorities:
        if lost.num_victims == chosen.num_victims:
            more = lost.sum_of_priorities - chosen.sum_of_priorities
            return f"the priorities of its victims add up to {more} more than on {node}"
        counted = "counted from the lowest there is"
        return f"the priorities of its {_pods(lost)}, {counted}, add up to more than of the {_pods(chosen)} on {node}"
    if lost.num_victims != chosen.num_victims:
        return f"{_pods(lost)} would have to go, on {node} {chosen.num_victims}"
    if lost.start_time != chosen.start_time:
        return f"its most important victims {_since(lost)}, those on {node} {_since(chosen)}"
    return f"ties with {node} on every criterion"


def _violations(count: int) -> str:
    return f"{count} PodDisruptionBudget violation{'' if count == 1 else 's'}"


def _pods(costs: Costs) -> str:
    return f"{costs.num_victims} pod{'' if costs.num_victims == 1 else 's'}"


def _since(costs: Costs) -> str:
    if costs.start_time == STARTED_NOW:
        return "have not started yet"
    # A time beyond what a calendar holds is still later than all others.
    return f"have run since {rfc3339(datetime.fromtimestamp(min(max(costs.start_time, 0), _LATEST), UTC))}"
