"""Where clusters come from, for the library and the commands: dumps, manifests, API servers, and running services."""
