"""The shadow: what this configuration would decide beside the scheduler that decides. Nothing in here writes to the API
server.
"""

from extender.lab.shadow.recorded import agreement_over
from extender.lab.shadow.shadow import Shadow
