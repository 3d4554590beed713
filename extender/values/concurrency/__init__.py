"""Work in child processes, virtual time, and files that are replaced as a whole."""
