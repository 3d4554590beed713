"""The gym environment, by the name under which it is registered: `extender.simulation.environment`."""

import sys

from extender.lab.simulation import environment

__all__ = ["environment"]

sys.modules[f"{__name__}.environment"] = environment
