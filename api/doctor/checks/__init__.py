"""The checks, a file a verb."""
