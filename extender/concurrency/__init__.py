"""Work in threads that ends when nobody waits for its result any more."""
