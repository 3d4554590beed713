"""Metrics of scheduling. No decision depends on them, and nothing is sent anywhere: they are collected when they are asked for."""

from extender.metrics.histogram import Histogram, exponential
from extender.metrics.metrics import ERROR, SAMPLED_CYCLES, SCHEDULED, UNSCHEDULABLE, Metrics, ObservePlugin, PluginMetrics

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
