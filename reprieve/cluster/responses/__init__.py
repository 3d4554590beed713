"""Encodes answers: objects, tables, discovery and OpenAPI documents."""
