"""The API described in OpenAPI 2 and 3."""
