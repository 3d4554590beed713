"""The Kubernetes API types, and reading objects by them. No rules about values here: see `validation`."""

from extender.embedded.schema.kinds import TABLE, find, lookup, type_name, type_of
from extender.embedded.schema.reading import WrongType, empty, kind_of, parse, read, read_as

__all__ = ["TABLE", "WrongType", "empty", "find", "kind_of", "lookup", "parse", "read", "read_as", "type_name", "type_of"]
