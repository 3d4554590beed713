"""Where clusters come from, for the library and the commands: dumps, manifests and API servers. No questions here."""
