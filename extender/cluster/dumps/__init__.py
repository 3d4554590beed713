"""A cluster in a file: how it is read and written, and how its objects come into a registry."""
