"""Metrics of scheduling. No decision depends on them, and they are not sent anywhere: they are collected on request."""

from extender.values.metrics.metrics import (
    ERROR as ERROR,
    SAMPLED_CYCLES as SAMPLED_CYCLES,
    SCHEDULED as SCHEDULED,
    UNSCHEDULABLE as UNSCHEDULABLE,
    WAITING_ON_PREEMPTION as WAITING_ON_PREEMPTION,
    Histogram as Histogram,
    Metrics as Metrics,
    ObservePlugin as ObservePlugin,
    PluginMetrics as PluginMetrics,
    Unanswered as Unanswered,
    exponential as exponential,
)
