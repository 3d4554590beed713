"""The shadow: what this configuration would decide beside the scheduler that decides. Nothing in here writes to the API
server.
"""

from reprieve.lab.shadow.recorded import agreement_over
from reprieve.lab.shadow.shadow import Shadow
