"""What is counted while scheduling goes on. Nothing here decides, and nothing is sent anywhere: who wants to see it collects it."""

from extender.metrics.histogram import Histogram, exponential
from extender.metrics.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Metrics
from extender.metrics.plugin_metrics import SAMPLED_CYCLES, ObservePlugin, PluginMetrics

__all__ = [
    "ERROR",
    "SAMPLED_CYCLES",
    "SCHEDULED",
    "UNSCHEDULABLE",
    "Histogram",
    "Metrics",
    "ObservePlugin",
    "PluginMetrics",
    "exponential",
]
