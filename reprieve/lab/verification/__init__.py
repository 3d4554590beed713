"""Scheduling rules as tests: what a rule says, and whether it holds. No files are read here."""
