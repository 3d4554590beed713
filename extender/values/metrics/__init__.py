"""Metrics of scheduling. No decision depends on them, and they are not sent anywhere: they are collected on request."""

from extender.values.metrics.metrics import (
    ERROR,
    SAMPLED_CYCLES,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
    Histogram,
    Metrics,
    ObservePlugin,
    PluginMetrics,
    Unanswered,
    exponential,
)
