"""Reads a request: its subject, query parameters, accepted forms, and body. Nothing is looked up."""
