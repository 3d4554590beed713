"""Runs the plugins of a profile; knows none of them. What a plugin is, `extender.framework` says."""
