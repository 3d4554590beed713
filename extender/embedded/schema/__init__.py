"""What the Kubernetes API types say of their fields, and reading objects by it. No rules about values here: see `validation`."""

from extender.embedded.schema.kinds import KINDS, lookup, type_of
from extender.embedded.schema.reading import WrongType, empty, kind_of, parse, read, read_as

__all__ = ["KINDS", "WrongType", "empty", "kind_of", "lookup", "parse", "read", "read_as", "type_of"]
