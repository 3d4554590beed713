"""The page, drawn from values: no service runs here."""
