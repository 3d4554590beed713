"""Writes to the API server: queued, merged, sent and retried until their outcome is known."""
