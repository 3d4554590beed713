"""Where plugins count what only they know."""

from typing import Final

from extender.framework.cycle_state import StateKey
from extender.metrics import PluginMetrics

PLUGIN_METRICS: Final = StateKey[PluginMetrics]("PluginMetrics")
"""Of the plugins of all profiles, under `Handle.shared`."""
