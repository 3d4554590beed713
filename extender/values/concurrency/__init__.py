"""Work in threads that stops when its result is no longer wanted."""
