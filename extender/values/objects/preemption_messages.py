"""Upstream's messages about preemption: the evaluator writes them; records and answers recognise them.

Upstream: framework/preemption/preemption.go; framework/plugins/defaultpreemption/default_preemption.go (v1.36.2).
"""

from typing import Final

NO_VICTIMS: Final = "No preemption victims found for incoming pod"

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"

STILL_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
