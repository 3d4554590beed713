"""What an answer looks like: objects, tables, discovery and OpenAPI documents."""
