"""Runs the plugins of a profile, none of which it knows. The contract of a plugin is `extender.engine.framework`."""
