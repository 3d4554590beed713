"""Objects as the tables that kubectl prints: columns and cells are made here, by upstream's rules. No selection or sorting here."""

from extender.embedded.responses.tables.table import IncludeObject, table

__all__ = ["IncludeObject", "table"]
