"""Metrics of scheduling. No decision depends on them, and nothing is sent anywhere: they are collected when they are asked for."""

from extender.metrics.metrics import (
    ERROR,
    SAMPLED_CYCLES,
    SCHEDULED,
    UNSCHEDULABLE,
    Histogram,
    Metrics,
    ObservePlugin,
    PluginMetrics,
    exponential,
)

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
