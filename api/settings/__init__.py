"""How the service is set up: settings from flags and the environment, feature gates, and what both say over the
configuration.

A KubeSchedulerConfiguration is read in `extender.values.config`, not here.
"""
