"""Completes an object before its validation: defaults, admission plugins, strategies. Nothing is stored here."""
