"""The Kubernetes API types, and reading objects by them. No rules about values here: see `validation`."""

from extender.embedded.schema.type_table import TABLE, find, lookup, read, type_name, type_of

__all__ = ["TABLE", "find", "lookup", "read", "type_name", "type_of"]
