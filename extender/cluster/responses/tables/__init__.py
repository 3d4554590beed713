"""Objects as the tables that kubectl prints, by upstream's rules. Nothing is selected or sorted here."""
